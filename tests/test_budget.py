"""The budget: code lines per module, counted by tokens, and the order of the modules."""

import ast
import io
import json
import statistics
import subprocess
import sys
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "minimcp"
README = PACKAGE.parent / "README.md"

# Reading order, and how many lines of code each page may have (ADR-0012).
FIGURES = {
    "protocol": 90,
    "schema": 110,
    "hints": 140,
    "context": 105,
    "envelope": 35,
    "eras": 115,
    "tools": 130,
    "server": 130,
    "connection": 110,
    "client": 175,
    "stdio": 120,
    "child": 110,
    "cli": 95,
    "demo": 25,
    "dialects": 115,
    "mrtr": 70,
    "listen": 60,
    "http_headers": 80,
    "http": 270,
    "http_exchange": 125,
    "http_client": 160,
}
STDIO_NEEDS = list(FIGURES)[: list(FIGURES).index("child") + 1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def docstring_lines(tree):
    """The numbers of the lines that docstrings take."""
    found = set()
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            found.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def code_lines(source):
    """The numbers of the lines that hold code: no comments, docstrings or blanks."""
    rows = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            rows.update(range(token.start[0], token.end[0] + 1))
    return rows - docstring_lines(ast.parse(source))


def sources():
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.glob("*.py"))}


def counts():
    return {name: len(code_lines(source)) for name, source in sources().items()}


def table():
    """The pages in reading order with their lines, as the README shows them."""
    counted = counts()
    rows = ["| page | the one idea | lines |", "|---|---|---|"]
    for name in FIGURES:
        idea = ast.get_docstring(ast.parse(sources()[name])).splitlines()[0].rstrip(".")
        rows.append(f"| [{name}.py](minimcp/{name}.py) | {idea} | {counted[name]} |")
    return "\n".join(rows)


def function_lengths():
    """Code lines of every function, its `def` line included."""
    lengths = {}
    for name, source in sources().items():
        rows = code_lines(source)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = rows.intersection(range(node.lineno, node.end_lineno + 1))
                lengths[f"{name}.{node.name}:{node.lineno}"] = len(inside)
    return lengths


def runs_at_another_time(node):
    """The body of a function, what only a type checker reads, what only `python -m` runs."""
    if isinstance(node, ast.If):
        return any(word in ast.unparse(node.test) for word in ("TYPE_CHECKING", "__main__"))
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def imports_at_import_time(source):
    """Modules of the package that a module imports when it is imported itself."""
    pending, found = list(ast.parse(source).body), set()
    while pending:
        node = pending.pop()
        if runs_at_another_time(node):
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name.removeprefix("minimcp.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix("minimcp").removeprefix(".")
            if node.level or (node.module or "").startswith("minimcp"):
                found.update([module] if module else [alias.name for alias in node.names])
        pending.extend(ast.iter_child_nodes(node))
    return found.intersection(FIGURES)


def report_of(script):
    """What a fresh interpreter prints as JSON when it runs `script` next to the package."""
    command = [sys.executable, "-c", script]
    return json.loads(subprocess.check_output(command, cwd=PACKAGE.parent, timeout=60))


def with_counts(readme):
    """The README with the table of today (`python tests/test_budget.py` writes it)."""
    head, mark, rest = readme.partition("<!-- counts -->\n")
    _, end, tail = rest.partition("<!-- /counts -->")
    return f"{head}{mark}{table()}\n{end}{tail}"


def test_the_readme_shows_the_lines_as_they_are():
    readme = README.read_text(encoding="utf-8")
    assert with_counts(readme) == readme


def test_the_counter_counts_code_and_nothing_else():
    source = (
        '"""Doc\nstring."""\n# note\n\nx = """two\nlines"""\n\n\ndef f():\n    "doc"\n    y = (\n'
    )
    source += "        1\n    )  # note\n    return y\n"
    assert sorted(code_lines(source)) == [5, 6, 9, 11, 12, 13, 14]


def test_every_module_has_its_place_in_the_reading_order():
    assert set(counts()) - {"__init__"} <= set(FIGURES)


def test_every_module_stays_within_its_figure():
    counted = counts()
    over = {}
    print()
    for name, figure in FIGURES.items():
        lines = counted.get(name, 0)
        print(f"{name:14}{lines:5} of {figure:5}")
        if lines > figure:
            over[name] = lines
    print(f"{'stdio needs':14}{sum(counted[name] for name in STDIO_NEEDS):5}")
    print(f"{'in all':14}{sum(counted.values()):5}")
    assert over == {}


def test_the_server_and_the_client_are_three_hundred_lines():
    counted = counts()
    assert counted["server"] + counted["client"] <= 300


def test_half_of_the_functions_have_at_most_eight_lines_and_none_has_over_thirty():
    lengths = function_lengths()
    assert {name: length for name, length in lengths.items() if length > 30} == {}
    assert statistics.median(lengths.values()) <= 8


def test_one_line_holds_one_statement():
    doubled = []
    for name, source in sources().items():
        rows = [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
        doubled += [f"{name}:{row}" for row in sorted(set(rows)) if rows.count(row) > 1]
    assert doubled == []


def test_no_module_imports_what_comes_later_in_the_reading_order():
    order = list(FIGURES)
    backwards = []
    for name, source in sources().items():
        if name in order:
            later = order[order.index(name) :]
            backwards += [f"{name} imports {m}" for m in imports_at_import_time(source) & {*later}]
    assert backwards == []


def test_the_import_finder_sees_every_form_and_skips_what_runs_later():
    source = (
        "import minimcp.server\nfrom .client import Client\nfrom . import stdio\n"
        "from minimcp import child\nfrom minimcp.http import app\n"
        "if TYPE_CHECKING:\n    from .demo import x\ndef f():\n    from .mrtr import y\n"
        "if __name__ == '__main__':\n    from .cli import main\n"
    )
    assert imports_at_import_time(source) == {"server", "client", "stdio", "child", "http"}


def test_importing_the_package_imports_only_the_standard_library():
    script = (
        "import json, sys\nbefore = set(sys.modules)\nimport minimcp\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    foreign = set(report_of(script)) - set(sys.stdlib_module_names) - {"minimcp"}
    assert foreign == set()


def test_importing_the_package_leaves_the_slow_modules_alone():
    script = "import json, sys\nimport minimcp\nprint(json.dumps(sorted(sys.modules)))"
    slow = {"asyncio", "inspect", "hmac", "queue", "http.client", "jsonschema", "regex", "uvicorn"}
    assert slow.intersection(report_of(script)) == set()


def test_importing_the_package_starts_no_thread_and_no_process():
    script = (
        "import json, sys, threading\nseen = []\n"
        "starts = ('_thread.start_new_thread', 'subprocess.Popen', 'os.fork', 'os.posix_spawn')\n"
        "sys.addaudithook(lambda event, arguments: event in starts and seen.append(event))\n"
        "import minimcp\nprint(json.dumps([seen, threading.active_count()]))"
    )
    assert report_of(script) == [[], 1]


if __name__ == "__main__":
    README.write_text(with_counts(README.read_text(encoding="utf-8")), encoding="utf-8")
