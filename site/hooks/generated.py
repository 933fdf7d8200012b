"""Tables that are read from the code, the tests and the records; nobody types them.

A page asks for one with a line of its own: `<!-- generated: errors -->`. A name that is not in
`TABLES` is a warning, and so ends a strict build.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import facts
from facts import FIGURES, ROOT, read_by, size, stamp
from weave import docstring, pieces

log = logging.getLogger("mkdocs.hooks.generated")
MARK = re.compile(r"^<!-- generated: (\S+) -->$", re.M)
LONG = 12  # rows; a longer table is folded away
TEST = re.compile(r"<code>test_\w{16,}</code>")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
RESULTS = ROOT / "site" / "results"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace every mark by its table."""

    def table_of(match: re.Match[str]) -> str:
        try:
            return made(match[1], repr(stamp(*read_by(match[1]))))
        except Exception as error:
            log.warning("%s: %s: %r", page.file.src_uri, match[0], error)
            return match[0]

    return "".join(p if is_code else MARK.sub(table_of, p) for is_code, p in pieces(markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the name of a test, which is a sentence, be broken between its words."""
    if "<code>test_" not in html:
        return html
    return TEST.sub(lambda match: match[0].replace("_", "_<wbr>"), html)


@cache
def made(name: str, stamp: str) -> str:
    """A table; `stamp` is other when a file is that it is read from."""
    kind, _, record = name.partition(":")
    return section(record) if kind == "figures" else TABLES[name]()


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; `head` has its titles with bars between them, `>` before a number."""
    titles = [title.strip() for title in head.split("|")]
    rule = ["---:" if title.startswith(">") else "---" for title in titles]
    cells = [[cell_of(cell) for cell in row] for row in rows]
    lines = [[title.removeprefix(">") for title in titles], rule, *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def about(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text, _ = docstring(path.read_text(encoding="utf-8"))
    return text.partition("\n")[0].rstrip(".")


def cell_of(value: object) -> str:
    """What stands in a cell; a date is not broken at its hyphens."""
    text = str(value).replace("|", "\\|").replace("\n", " ")
    return f'<span class="whole">{text}</span>' if DATE.fullmatch(text) else text


# ## The source


def lines() -> str:
    """Every page of the package: what it is about, how long it is and how long it may be."""
    counted = {path.stem: size(path) for path in ROOT.glob("minimcp/*.py")}
    rows = []
    for path in facts.reading_order():
        linked = f"[`{path.name}`](../minimcp/{path.name})"
        rows.append([linked, about(path), counted[path.stem], FIGURES[path.stem]])
    pair, whole = counted["server"] + counted["client"], sum(counted.values())
    rows.append(["**`server.py` and `client.py`**", "", f"**{pair}**", "**300**"])
    rows.append(["**all of `minimcp/`**", "", f"**{whole:,}**", ""])
    return table("page | the one idea | >lines of code | >at most", rows)


# ## Reference

ERRORS = {  # what is wrong
    "PARSE_ERROR": "The line is not strict JSON",
    "INVALID_REQUEST": "It is JSON, but no request or notification",
    "METHOD_NOT_FOUND": "Nobody serves this method in this era",
    "INVALID_PARAMS": "The parameters are wrong: no such tool, a bad cursor, no `_meta`",
    "INTERNAL_ERROR": "A handler failed; the operator finds out why on stderr",
    "HEADER_MISMATCH": "An HTTP header does not say what the body says",
    "MISSING_CAPABILITY": "The client did not declare a capability that this needs",
    "UNSUPPORTED_VERSION": "The server does not speak this revision",
}


def errors() -> str:
    """The codes that the package knows; the module decides which, not this table."""
    from minimcp import protocol
    from minimcp.http import STATUS

    codes = {name: value for name, value in vars(protocol).items() if is_code(name, value)}
    if codes.keys() != ERRORS.keys():
        raise ValueError(f"not described, or not there: {codes.keys() ^ ERRORS.keys()}")
    rows = []
    for name, code in sorted(codes.items(), key=lambda item: -item[1]):
        whose = "MCP" if code in protocol.MCP_ERRORS else "JSON-RPC"
        unread = code == protocol.PARSE_ERROR  # so nobody knows the era
        http = [400, 400] if unread else [STATUS.get(code, 200), 200]
        rows.append([f"`{code}`", f"`{name}`", ERRORS[name], whose, *http])
    heads = "code | name in `minimcp.protocol` | what is wrong | defined by | HTTP | HTTP, legacy"
    return table(heads, rows)


def is_code(name: str, value: object) -> bool:
    return name.isupper() and type(value) is int and value < -32000


def methods() -> str:
    """The dispatch table of a server that has tools, in both eras."""
    from minimcp import protocol
    from minimcp.demo import server

    names = list(dict.fromkeys(name for era in server.methods.values() for name in era))
    rows = []
    for name in sorted(names):
        handlers = {era: table.get(name) for era, table in server.methods.items()}
        handler = next(filter(None, handlers.values()))
        where = f"{handler.__module__}.{handler.__qualname__}".removeprefix("minimcp.")
        served = ["yes" if one else "" for one in handlers.values()]
        named = f"`params.{protocol.NAMED[name]}`" if name in protocol.NAMED else ""
        kept = "yes" if name in protocol.CACHEABLE else ""
        rows.append([f"`{name}`", *served, named, kept, f"`{where}`" if "<" not in where else ""])
    return table(f"method | {' | '.join(server.methods)} | named by | cacheable | handler", rows)


def named(text: str) -> list[str]:
    """The names of notifications in a text; `f"…/{kind}/…"` stands for one of each kind."""
    from minimcp.protocol import LISTS

    whole = re.findall(r'"(notifications/[a-z_/]+[a-z])"', text)
    for ending in ("list_changed", "updated") if 'f"notifications/{kind}/"' in text else ():
        kinds = LISTS if ending == "list_changed" else ("resources",)
        whole += [f"notifications/{kind}/{ending}" for kind in kinds]
    return whole


def notifications() -> str:
    """The notifications whose names stand in the package, and the module that sends or hears."""
    found: dict[str, list[str]] = {}
    for path in facts.reading_order():
        text = path.read_text(encoding="utf-8")
        for name in named(text):
            found.setdefault(name, [])
            if path.name not in found[name]:
                found[name].append(path.name)
    rows = [[f"`{name}`", ", ".join(f"`{one}`" for one in where)] for name, where in found.items()]
    return table("notification | where it stands", sorted(rows))


# ## Decisions, evidence, notebooks, examples


def decisions() -> str:
    found = [facts.decision(path) for path in facts.adrs()]
    rows = [[f"[{one.number}](../adr/{one.path.name})", one.decision, one.status] for one in found]
    return table("ADR | decision | status", rows)


def spikes() -> str:
    """The experiments, with the verdict that each recorded."""
    if not facts.spikes():
        return "No experiment has been recorded yet."
    rows = []
    for path in facts.spikes():
        record = path.with_suffix(".json")
        known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        linked = f"[{facts.title_of(path)}](spikes/{path.name})"
        rows.append([linked, known.get("verdict", ""), known.get("date", "")])
    return table("question | verdict | measured", rows)


def notebooks() -> str:
    if not facts.notebooks():
        return "The notebooks are not there yet."
    rows = []
    for path in facts.notebooks():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        first = " ".join("".join(cells[0]["source"]).split())
        time = re.search(r"\*\*Time\*\* about (\d+) minutes", first)
        built = re.search(r"\*\*At the end you will have built\*\* (.+?)[;.](?: |$)", first)
        if not time or not built:
            raise ValueError(f"{path.name} does not say what it builds, and in which time")
        link = f"[{facts.title_of(path)}](../notebooks/{path.name})"
        rows.append([link, built[1], time[1]])
    return table("notebook | you will have built | >minutes", rows)


def examples() -> str:
    rows = []
    for path in facts.examples():
        rows.append([f"[`{path.name}`](../examples/{path.name})", about(path), size(path)])
    return table("example | what it shows | >lines of code", rows)


# ## Conformance


def groups() -> dict[str, str]:
    """What the groups of the ledger are about: its own headings."""
    text = (ROOT / "tests" / "requirements.toml").read_text(encoding="utf-8")
    return dict(re.findall(r"^# ([A-Z]+): (.+)$", text, re.M))


def requirement_counts() -> str:
    counted, about = facts.ledger().counts(), groups()
    names = ("proven", "later", "not")
    rows = [
        [group, about[group], *(found[name] or "" for name in names)]
        for group, found in counted.items()
    ]
    sums = [sum(found[name] for found in counted.values()) for name in names]
    rows.append(["", "**in all**", *(f"**{number}**" for number in sums)])
    return table("group | about | >proven | >later | >left out", rows)


def requirements() -> str:
    """Every row of the ledger, with the tests that carry its id."""
    ledger, about = facts.ledger(), groups()
    proofs = ledger.carried()
    found: dict[str, list[list[str]]] = {}
    for id, row in ledger.LEDGER.items():
        group = "MATRIX" if id.startswith("MATRIX") else id.split("-")[1]
        found.setdefault(group, []).append(proof_row(id, row, proofs))
    head = "id | level | era | what | proof"
    return "\n".join(
        folded(f"{group}: {about[group]}, {len(rows)} rows", table(head, rows))
        for group, rows in found.items()
    )


def folded(title: str, text: str) -> str:
    """Something long that the reader opens."""
    inside = "\n".join(f"    {line}".rstrip() for line in text.splitlines())
    return f'??? note "{title}"\n\n{inside}\n'


def proof_row(id: str, row: dict[str, Any], proofs: dict[str, list[str]]) -> list[str]:
    tests = [f"`{one.removesuffix('.py')}`" for one in proofs.get(id, [])]
    shown = [test.replace(".py::", "`<br>`", 1) for test in tests[:3]]
    more = [f"and {len(tests) - 3} more"] if len(tests) > 3 else []
    proof = "<br>".join([*shown, *more]) or f"{row['status']}: {row['why']}"
    return [f"`{id}`", row["level"].replace("*", "\\*"), row["era"], row["text"], proof]


# ## Figures
#
# Anything that was measured is shown if it lies in `site/results/` as NAME.json, in this shape:
#
#     {"title": "How hard it was tried to break it", "command": "make fuzz", "date": "2026-11-30",
#      "versions": {"hypothesis": "6.140"}, "figures": {"inputs": 100000, "crashes": 0}}
#
# A figure is a number or a few words; or an object of such, and then it is a table of its own with
# its name on top; or a list of objects with the same members, and then it is a table with those as
# columns. `"note"` is a paragraph below. Only `title` and `figures` must be there; if there is only
# one table, `rows` will do.
#
# It is shown on the page about evidence, or with `"page": "conformance"` on that one. With another
# word for the page, or without a title, it is shown where a page asks for it, and nowhere else:
# `<!-- generated: figures:NAME -->`.


def figures(page: str) -> str:
    """All records of figures that belong on a page, one section each."""
    found = {path.stem: recorded(path.stem) or {} for path in sorted(RESULTS.glob("*.json"))}
    here = [name for name, record in found.items() if "title" in record]
    wanted = [name for name in here if found[name].get("page", "evidence") == page]
    return "\n\n".join(map(section, wanted))


def section(name: str) -> str:
    """One record: when and with what, its tables, and how to measure it again."""
    record = recorded(name)
    if record is None:
        return "Nothing has been recorded yet."
    plain, parts = {}, [f"### {record.get('title', name.capitalize())}", when(record).strip()]
    for label, figure in record.get("figures", {"": record.get("rows")}).items():
        if not isinstance(figure, (dict, list)) or not figure:
            plain[label] = figure
        elif isinstance(figure, dict):
            parts.append(table(f"{label} | >", pairs(figure)))
        else:
            parts.append(rows_of(label, figure))
    if plain:
        parts.insert(2, table("what | >figure", pairs(plain)))
    command = f"Measured with `{record['command']}`." if "command" in record else ""
    return "\n\n".join(filter(None, [*parts, record.get("note", ""), command]))


def rows_of(label: str, rows: list[dict[str, Any]]) -> str:
    """A table with a row for each object, folded away if it is long."""
    drawn = table(columns(rows[0]), (map(shown, one.values()) for one in rows))
    if len(rows) > LONG:
        return folded(f"{label or 'All of it'}, {len(rows)} rows", drawn)
    return f"{label}:\n\n{drawn}" if label else drawn


def pairs(figures: dict[str, Any]) -> list[list[str]]:
    return [[label, shown(figure)] for label, figure in figures.items()]


def columns(row: dict[str, Any]) -> str:
    """The titles of columns; numbers stand at the right of theirs."""
    titles = [f">{name}" if isinstance(one, (int, float)) else name for name, one in row.items()]
    return " | ".join(titles)


def shown(figure: Any) -> str:
    """A figure as a person writes it."""
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    if isinstance(figure, float):
        return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"
    if isinstance(figure, list):
        return ", ".join(map(shown, figure))
    return f"{figure:,}" if isinstance(figure, int) else str(figure)


def recorded(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


NOTHING = "Nothing has been recorded yet; `python tests/record.py` does it."


def when(record: dict[str, Any]) -> str:
    versions = record.get("versions", {})
    told = f" with {', '.join(map(' '.join, versions.items()))}" if versions else ""
    return f"Recorded on {record['date']}{told}.\n\n" if "date" in record else ""


def conformance() -> str:
    """What the official suite said, when it was last recorded."""
    record = recorded("conformance")
    if record is None:
        return NOTHING
    keys = ("passed", "warned", "failed")
    sums: dict[tuple[str, str], list[int]] = {}
    for one in record["rows"]:
        total = sums.setdefault((one["leg"], one["revision"]), [0, 0, 0, 0])
        total[:] = [had + new for had, new in zip(total, [1, *map(one.get, keys)], strict=True)]
    rows = [[*one, *total] for one, total in sums.items()]
    head = "side | revision | >scenarios | >checks passed | >warned | >failed"
    every = [[*map(one.get, ("leg", "revision", "scenario", *keys))] for one in record["rows"]]
    details = table("side | revision | scenario | >passed | >warned | >failed", every)
    left_out = [[f"`{one['scenarios']}`", one["why"]] for one in record["left_out"]]
    return "\n\n".join(
        [
            when(record) + table(head, rows),
            folded("Every scenario", details),
            "Scenarios that are not in these rows:\n\n" + table("scenarios | why", left_out),
        ]
    )


def peers() -> str:
    """Who talked to whom, when it was last recorded."""
    record = recorded("peers")
    if record is None:
        return NOTHING
    names = ("client", "server", "transport", "asked", "negotiated")
    rows = []
    for one in record["rows"]:
        cells = [str(one[name]).removeprefix("@modelcontextprotocol/") for name in names]
        rows.append([*cells, one["tools"], "yes" if one["ok"] else "**no**"])
    right = sum(one["ok"] for one in record["rows"])
    head = "client | server | wire | asked for | negotiated | >tools | right"
    left_out = [
        f"{one['client']} over {one['transport']}: {one['why']}" for one in record["left_out"]
    ]
    return "\n\n".join(
        [
            when(record) + f"{right} of {len(rows)} conversations were right in every answer.",
            folded("Every conversation", table(head, rows)),
            "Left out: " + "; ".join(left_out) + "." if left_out else "",
        ]
    )


TABLES: dict[str, Callable[[], str]] = {
    "lines": lines,
    "errors": errors,
    "methods": methods,
    "notifications": notifications,
    "decisions": decisions,
    "spikes": spikes,
    "notebooks": notebooks,
    "examples": examples,
    "requirement-counts": requirement_counts,
    "requirements": requirements,
    "conformance": conformance,
    "peers": peers,
    "figures-evidence": lambda: figures("evidence"),
    "figures-conformance": lambda: figures("conformance"),
}
