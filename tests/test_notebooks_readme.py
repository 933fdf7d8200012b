"""notebooks/README.md: it lists every notebook, and every answer points at a cell that is there."""

import re

import nbformat
import pytest
from support_notebooks import FOLDER, NOTEBOOKS

README = (FOLDER / "README.md").read_text(encoding="utf-8")
QUESTIONS, ANSWERS = README.split("## Twenty questions")[1].split("<details>")
NUMBERED = re.compile(r"^(\d+)\. (.+)$", re.M)
POINTER = re.compile(r'(?:\[(\d+)\]\(([^)]+)\), )?at "([^"]+)"')


def cells(name):
    return [" ".join(cell.source.split()) for cell in nbformat.read(FOLDER / name, 4).cells]


def pointers(answer):
    """Where an answer sends its reader: the number of a notebook, its file, and words in a cell."""
    number = name = ""
    for match in POINTER.finditer(answer.partition("→")[2]):
        number, name = match[1] or number, match[2] or name  # "and at": in the same one
        yield number, name, match[3]


def test_every_notebook_is_listed_in_order_under_its_title():
    titles = [
        (nbformat.read(path, 4).cells[0].source.split("\n")[0].removeprefix("# "), path.name)
        for path in NOTEBOOKS
    ]
    assert re.findall(r"^\| \[(.+?)\]\((.+?)\) \|", README, re.M) == titles


def test_there_are_twenty_questions_and_an_answer_to_each():
    numbers = [str(number) for number in range(1, 21)]
    assert [number for number, _ in NUMBERED.findall(QUESTIONS)] == numbers
    assert [number for number, _ in NUMBERED.findall(ANSWERS)] == numbers


@pytest.mark.parametrize("number, answer", NUMBERED.findall(ANSWERS))
def test_answer_points_at_words_that_stand_in_a_cell(number, answer):
    found = list(pointers(answer))
    assert found
    for notebook, name, words in found:
        assert name.startswith(f"{int(notebook):02}_")
        assert [cell for cell in cells(name) if words in cell], f"{name}: {words!r}"


@pytest.mark.parametrize(
    "number, words",
    [
        ("1", "Host, client, server"),
        ("2", "language model"),
        ("3", "not MCP"),
        ("8", "in a terminal, and nothing happens"),
        ("9", "`print`"),
        ("10", "`asyncio.run`"),
        ("19", "`command`"),
    ],
)
def test_what_confuses_learners_is_among_the_questions(number, words):
    """B093, B096, B097, B098, B099, B100, B101."""
    assert words in dict(NUMBERED.findall(QUESTIONS))[number]
