"""Every notebook runs, still shows what is stored in it, and teaches what it says it teaches.

While a notebook runs, the solution of each exercise is tried in its place, just as a reader would
type it there; what follows must come out as if it had not been.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from support_notebooks import FIRST_CELL, FOLDER, NOTEBOOKS, ROOT, code_cells, joined, run, shown

sys.path.insert(0, str(FOLDER))

from minimcp import Client, Server
from teach import Exercise, Recording, Table, agree, need, progress
from teach.diagram import draw

CHECK = re.compile(r"^check_(\w+)\((.+)\)$", re.M)
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
EXERCISES = [
    pytest.param(check, id=f"{path.stem[:2]}-{check.name}")
    for path in NOTEBOOKS
    for check in vars(import_module(f"teach.n{path.stem[:2]}")).values()
    if isinstance(check, Exercise)
]
each_exercise = pytest.mark.parametrize("check", EXERCISES)


def stored(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def stubs(notebook: Any) -> list[Any]:
    """The cells in which the reader writes."""
    return [cell for cell in code_cells(notebook) if "# TODO" in cell.source]


def text_of(cell: Any) -> str:
    """All that a cell shows, as text."""
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        parts += [*data.values(), output.get("text", ""), *output.get("traceback", [])]
    return "\n".join(parts)


# ## Running


def try_solutions(notebook: Any) -> None:
    """After each stub: the solution, checked by the same line; then the stub again."""
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "code" and "# TODO" in cell.source:
            name, answer = CHECK.search(cell.source).groups()
            tried = [
                f"exec(check_{name}.solution, globals())",
                f"print('{name}', check_{name}({answer}).passed)",
            ]
            extra = {"tags": ["extra"]}
            for source in ("\n".join(tried), cell.source):
                cells.append(nbformat.v4.new_code_cell(source, metadata=extra))
    notebook.cells = cells


@each_notebook
def test_notebook_shows_what_is_stored_in_it_and_accepts_the_solutions(path):
    fresh = run(path, try_solutions)
    extra = [cell for cell in code_cells(fresh) if "extra" in cell.metadata.get("tags", [])]
    ours = [cell for cell in code_cells(fresh) if cell not in extra]
    for now, then in zip(ours, code_cells(stored(path)), strict=True):
        assert shown(now) == shown(then), f"{then.id}: python tests/refresh.py {path.name[:2]}"
    answers = [joined(cell.outputs)[-1]["text"] for cell in extra[::2]]
    names = [CHECK.search(cell.source)[1] for cell in stubs(stored(path))]
    assert answers == [f"{name} True\n" for name in names]
    assert fresh.seconds < 60  # under ten on a machine with nothing else to do


# ## Opened alone, as on Colab: one file in an empty folder, and an address to clone


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The repository as it stands here, where `git clone` finds it."""
    place = tmp_path_factory.mktemp("published")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for order in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *order], cwd=place, check=True)
    return place.as_uri()


@pytest.mark.parametrize("number", ["01", "05", "09", "13"])
def test_a_notebook_opened_alone_fetches_the_rest_and_shows_the_same(tmp_path, published, number):
    [path] = [path for path in NOTEBOOKS if path.name.startswith(number)]
    alone = Path(shutil.copy(path, tmp_path))
    where = "import minimcp; print(minimcp.__file__)"

    def adapt(notebook):
        first = code_cells(notebook)[0]
        first.source = first.source.replace('REPOSITORY = ""', f"REPOSITORY = {published!r}")
        notebook.cells.append(nbformat.v4.new_code_cell(where))

    *cells, last = code_cells(run(alone, adapt))
    assert Path(text_of(last).strip()).parts[: len(tmp_path.parts)] == tmp_path.parts
    for now, then in zip(cells, code_cells(stored(path)), strict=True):
        assert shown(now) == shown(then)


def test_a_notebook_opened_alone_says_what_it_needs(tmp_path):
    alone = Path(shutil.copy(NOTEBOOKS[0], tmp_path))
    with pytest.raises(CellExecutionError, match="set REPOSITORY above"):
        run(alone)


# ## What each notebook has


@each_notebook
def test_notebook_begins_and_ends_as_all_of_them_do(path):
    cells = stored(path).cells
    first, last = cells[0].source, cells[-1].source
    assert first.startswith(f"# {int(path.stem[:2])} · ")
    for word in ("**Goal.**", "**You need**", "**Time**", "**At the end you will have built**"):
        assert word in first
    assert cells[1].source == FIRST_CELL
    for word in ("**Where this stands in the package.**", "**Left out.**"):
        assert word in last


@each_notebook
def test_notebook_is_20_to_40_cells_with_2_to_4_diagrams_and_exercises(path):
    notebook = stored(path)
    diagrams = [cell for cell in code_cells(notebook) if "<svg" in text_of(cell)]
    assert 20 <= len(notebook.cells) <= 40
    assert 2 <= len(diagrams) <= 4
    assert not [cell.id for cell in diagrams if "nothing was sent" in text_of(cell)]
    assert 2 <= len(stubs(notebook)) <= 4


@each_notebook
def test_no_code_is_shown_without_a_sentence_before_it(path):
    cells = stored(path).cells
    for number, cell in enumerate(cells[2:], 2):
        kinds = {one.cell_type for one in cells[number - 2 : number + 1]}
        assert "markdown" in kinds, f"three code cells in a row, up to {cell.id}"


@each_notebook
def test_the_code_grown_in_the_text_agrees_with_the_package(path):
    shown = [text_of(cell) for cell in code_cells(stored(path))]
    assert any("agree on every reply." in text for text in shown)


@each_notebook
def test_each_stub_fails_its_check(path):
    for cell in stubs(stored(path)):
        name = CHECK.search(cell.source)[1]
        assert cell.outputs[-1]["data"]["text/plain"].startswith(f"✗ {name}: "), cell.id


@each_notebook
def test_each_exercise_of_the_module_is_in_the_notebook(path):
    module = vars(import_module(f"teach.n{path.stem[:2]}"))
    names = [check.name for check in module.values() if isinstance(check, Exercise)]
    assert [CHECK.search(cell.source)[1] for cell in stubs(stored(path))] == names


@each_notebook
def test_nothing_stored_depends_on_where_and_when_it_ran(path):
    notebook = stored(path)
    cells = code_cells(notebook)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert cell.outputs == joined(cell.outputs)
        found = re.search(r"(/home|/tmp|/usr|/work|/root)/|0x[0-9a-f]{6,}|:\d{5}\b", text_of(cell))
        assert found is None, f"{cell.id} shows {found}"


@each_notebook
def test_links_of_a_notebook_lead_somewhere(path):
    for cell in stored(path).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", cell.source):
                assert (path.parent / target).exists(), f"{cell.id}: {target}"


def test_the_notebooks_are_numbered_without_a_gap():
    numbers = [int(path.stem[:2]) for path in NOTEBOOKS]
    assert numbers == list(range(1, len(NOTEBOOKS) + 1)) != []


# ## Exercises


@each_exercise
def test_solution_passes_and_is_shown(check):
    report = check(check.answer(check.solution))
    assert report.passed
    assert check.solution in report.text


@each_exercise
def test_two_or_more_planted_mistakes_fail_and_each_is_recognised(check):
    assert len(check.mistakes) >= 2
    for code, says in check.mistakes:
        report = check(check.answer(code))
        assert not report.passed, says
        assert f"it looks as if  {says}" in report.text


@each_exercise
def test_exercise_has_several_inputs_and_two_hints_that_come_one_by_one(check):
    assert len(check.cases) >= 4
    assert len(check.hints) >= 2
    check.failed = 0
    for count in range(1, len(check.hints) + 1):
        text = check(lambda *arguments: object()).text
        assert [hint for hint in check.hints if f"  {hint}" in text] == check.hints[:count]
    assert f"check_{check.name}.solution" in text


# ## The first cell


def first_cell(folder: Path, source: str = FIRST_CELL) -> subprocess.CompletedProcess[str]:
    code = source + "\nimport minimcp\nprint(minimcp.__file__)"
    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", code]  # -S: the package is not installed here
    return subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True)


@pytest.mark.parametrize("folder", [ROOT, FOLDER, FOLDER / "teach"])
def test_first_cell_finds_the_package_from(folder):
    done = first_cell(folder)
    assert (done.stdout.strip(), done.stderr) == (str(ROOT / "minimcp" / "__init__.py"), "")


def test_first_cell_says_what_is_missing_when_the_notebook_is_alone(tmp_path):
    done = first_cell(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "This notebook needs the repository around it; set REPOSITORY above.\n"


def test_first_cell_clones_the_repository_when_it_is_told_from_where(tmp_path):
    (tmp_path / "origin").mkdir()
    files = ["minimcp", "notebooks/teach"]
    for command in (
        ["git", "init", "--quiet"],
        ["cp", "-r", "--parents", *files, str(tmp_path / "origin")],
        ["git", "add", "."],
        ["git", "-c", "user.name=t", "-c", "user.email=t", "commit", "--quiet", "-m", "all"],
    ):
        where = ROOT if command[0] == "cp" else tmp_path / "origin"
        subprocess.run(command, cwd=where, check=True)
    alone = tmp_path / "alone"
    alone.mkdir()
    address = (tmp_path / "origin").as_uri()
    source = FIRST_CELL.replace('REPOSITORY = ""', f'REPOSITORY = "{address}"')
    for _ in range(2):  # the second time it is there already
        done = first_cell(alone, source)
        assert done.stdout.strip().startswith(str(alone)), done.stderr


def test_first_cell_makes_the_package_importable_in_servers_too(tmp_path):
    code = FIRST_CELL + "\nimport os\nprint(os.environ['PYTHONPATH'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True)
    assert str(ROOT) in done.stdout.strip().split(os.pathsep)


# ## The library


def test_diagram_draws_each_message_with_its_kind_and_number():
    log = Recording()
    handle = log.through(lambda line: '{"jsonrpc":"2.0","id":1,"result":{}}')
    handle('{"jsonrpc":"2.0","id":1,"method":"ping"}')
    handle("gar\x00bage <b>")
    log.note("the end")
    assert repr(log).splitlines() == [
        "client --> server  ping #1",
        "server ==> client  result #1  {}",
        r'client --> server  no message  "gar\u0000bage <b>"',
        "server ==> client  result #1  {}",
        "  (the end)",
    ]


def test_diagram_is_well_formed_whatever_was_sent():
    from xml.etree import ElementTree

    log = Recording("<client>", "server")
    for what in (
        "\x00\x1b",
        '"\ud800"',
        {"id": "&", "method": "<>"},
        "[1]",
        "[" * 100_000,
        {"error": 5},
        {},
    ):
        log("server", what)
    title = ElementTree.fromstring(log._repr_svg_()).attrib["aria-label"]
    assert title.startswith("server --> <client>  no message  ")


def test_diagram_of_several_clients_has_a_lane_for_each():
    log = Recording("model", "host")
    for server in ("git", "files"):
        log.between("host", server)("client", {"id": 1, "method": "ping"})
    assert log.lanes == ["model", "host", "git", "files"]
    assert [event[:2] for event in log.events] == [("host", "git"), ("host", "files")]
    assert draw(log.lanes, log.events).count("<g>") == 2


def test_recording_in_which_nothing_is_yet_is_a_trace_all_the_same():
    log = Recording()
    with Client(Server("empty"), trace=log):
        pass
    assert repr(log).startswith("client --> server  server/discover #1")


def test_part_of_a_recording_is_a_recording():
    log = Recording()
    for number in range(4):
        log("client", {"id": number, "method": "ping"})
    assert repr(log[3:]) == "client --> server  ping #3"


def test_agreement_shows_who_differs():
    table = [("a", {"id": 1, "error": {"code": -1}}), ("b", None)]
    right = {"a": '{"id": 1, "error": {"code": -1, "message": "whatever"}}', "b": None}
    wrong = {"a": '{"id": true, "error": {"code": -1}}', "b": None}
    assert agree(table, yours=right.get, package=right.get).holds
    differing = agree(table, yours=wrong.get, package=right.get)
    assert not differing.holds
    assert "yours: {'id': True, 'error': {'code': -1}}" in repr(differing)


def test_missing_helper_is_named_in_one_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Exception, match="needs jq, which is not on the PATH") as caught:
        need("jq")
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_table_keeps_a_cell_one_cell():
    table = Table(["a", "b"], [["x|y", "<z>"]])
    assert table._repr_markdown_().splitlines()[-1] == r"| x\|y | &lt;z> |"
    assert repr(table).splitlines() == ["a    b", "---  ---", "x|y  <z>"]


def test_progress_hands_out_every_item():
    assert list(progress([1, 2, 3], "numbers")) == [1, 2, 3]
