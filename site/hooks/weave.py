"""Show a file of the repository as a page: its margin comments as prose, the rest as code.

In a Python file the docstring of the module and the comments at the left margin become Markdown;
everything else stays code, with its real line numbers. Any other file is one block of code. So a
page about the source cannot drift from it: it is the source.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".sh": "bash", ".c": "c"}
LANGUAGES |= {".mjs": "javascript", ".yml": "yaml", ".conf": "nginx", ".md": "markdown"}


def weave(path: Path, name: str) -> str:
    """A file as the Markdown of a page; `name` is its path in the repository."""
    source = path.read_text(encoding="utf-8")
    language = language_of(path, source)
    if language == "python":
        return python_page(source, name)
    return f"# `{name}`\n\n{numbered(source, language, 1)}\n"


def language_of(path: Path, source: str) -> str:
    """Named by the suffix, or by the interpreter that the first line calls."""
    if path.suffix in LANGUAGES:
        return LANGUAGES[path.suffix]
    called = source.partition("\n")[0] if source.startswith("#!") else ""
    return next((one for one in ("python", "bash", "perl", "ruby") if one in called), "bash")


def python_page(source: str, name: str) -> str:
    """A Python file: title, docstring, then prose and code in turn."""
    documentation, first = docstring(source)
    title, _, more = documentation.partition("\n")
    front = "---\nhide: [toc]\n---\n\n"
    parts = [f"# `{Path(name).name}`: {title.rstrip('.')}" if title else f"# `{name}`"]
    parts += [bare_links(more.strip("\n").rstrip())] if more.strip() else []
    margins, lines = margin_comments(source), source.splitlines()
    rows = enumerate(lines[first:], first + 1)
    for is_prose, group in itertools.groupby(rows, key=lambda row: row[0] in margins):
        if is_prose:
            parts.append("\n".join(text.removeprefix("#").removeprefix(" ") for _, text in group))
        elif block := code(list(group)):
            parts.append(block)
    return front + "\n\n".join(parts) + "\n"


def docstring(source: str) -> tuple[str, int]:
    """The docstring of a module and the number of lines up to its end."""
    tree = ast.parse(source)
    text = ast.get_docstring(tree)
    return (text, tree.body[0].end_lineno or 0) if text else ("", 0)


def margin_comments(source: str) -> set[int]:
    """The lines that are nothing but a comment at the left margin; strings do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT
        and token.start[1] == 0
        and not token.string.startswith("#!")
    }


def code(rows: list[tuple[int, str]]) -> str:
    """Numbered lines as a block, without blank ones around them."""
    while rows and not rows[0][1].strip():
        rows.pop(0)
    while rows and not rows[-1][1].strip():
        rows.pop()
    return numbered("\n".join(line for _, line in rows), "python", rows[0][0]) if rows else ""


def numbered(text: str, language: str, first: int) -> str:
    return fence(text, f'{language} linenums="{first}"')


def fence(text: str, info: str) -> str:
    """A fenced block that no fence in the text can close."""
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{ticks}{info}\n{text.rstrip()}\n{ticks}"


def bare_links(text: str) -> str:
    """Addresses that stand alone in a docstring, as links."""
    return re.sub(r"(?<![(<`\[])(https://\S+)", r"<\1>", text)


def pieces(markdown: str) -> Iterator[tuple[bool, str]]:
    """Markdown cut at its fenced blocks: whether a piece is one, and the piece."""
    at = 0
    for match in FENCED.finditer(markdown):
        yield False, markdown[at : match.start()]
        yield True, match[0]
        at = match.end()
    yield False, markdown[at:]


FENCED = re.compile(r"^( *)(`{3,})[^`\n]*\n.*?^\1\2 *$", re.M | re.S)
