"""Everything that the pages say in a block is run, and what it prints is compared.

What may stand in a block, and what happens to it, is told in `support_docs.py`.
"""

import importlib
import json
import re
from importlib import util

import pytest
from support_docs import ROOT, blocks, build, pages, problems, site, small_tree
from support_skips import need

pytestmark = pytest.mark.timeout(300)  # whoever needs the site first, builds it
NAMES = [path.relative_to(ROOT).as_posix() for path in pages()]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_what_its_blocks_do(name):
    assert problems((ROOT / name).read_text(encoding="utf-8"), name) == []


def test_the_site_builds_without_a_warning():
    _, done = site()
    assert done.returncode == 0, done.stderr


def test_no_page_asks_for_a_drawing_from_elsewhere():
    """The theme would fetch Mermaid; our diagrams are drawn here."""
    drawn = [name for name in NAMES for block in blocks((ROOT / name).read_text(encoding="utf-8"))
             if block.language == "mermaid"]  # fmt: skip
    assert drawn == []


def test_every_trouble_has_a_block_that_makes_it_happen_and_shows_its_words():
    text = (ROOT / "site" / "troubleshooting.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", text, flags=re.M)[1:]
    assert len(sections) >= 20
    for section in sections:
        heading, _, rest = section.partition("\n")
        shown = [block for block in blocks(rest) if block.language in ("pycon", "console")]
        assert shown, heading
        words = heading.strip("`") if heading.startswith("`") else ""
        assert any(words in block.body for block in shown), heading


# What was measured is shown in one way, wherever it comes from.

RECORD = {
    "title": "How fast?",
    "command": "make fast",
    "date": "2026-11-30",
    "versions": {"python": "3.11", "minimcp": "0.1.0"},
    "figures": {
        "calls": 100_000,
        "none lost": True,
        "by wire": {"stdio": 0.25, "HTTP": 1234.5},
        "slowest": [{"call": "a|b", "ms": 7}, {"call": "c", "ms": 12}],
    },
    "note": "The machine was busy.",
}
SHOWN = """\
### How fast?

Recorded on 2026-11-30 with python 3.11, minimcp 0.1.0.

| what | figure |
| --- | ---: |
| calls | 100,000 |
| none lost | yes |

| by wire |  |
| --- | ---: |
| stdio | 0.25 |
| HTTP | 1,234 |

slowest:

| call | ms |
| --- | ---: |
| a\\|b | 7 |
| c | 12 |

The machine was busy.

Measured with `make fast`."""


def test_recorded_figures_are_shown_as_tables(tmp_path, monkeypatch):
    need(util.find_spec("mkdocs"), "no mkdocs here: pip install -e '.[docs]'")
    monkeypatch.syspath_prepend(ROOT / "site" / "hooks")
    generated = importlib.import_module("generated")
    monkeypatch.setattr(generated, "RESULTS", tmp_path)
    others = {"untitled": {"rows": [{"x": 1}]}, "elsewhere": {**RECORD, "page": "conformance"}}
    for name, record in {"fast": RECORD, **others}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    assert generated.figures("evidence") == generated.figures("conformance") == SHOWN
    assert generated.section("untitled") == "### Untitled\n\n| x |\n| ---: |\n| 1 |"
    assert generated.section("missing") == "Nothing has been recorded yet."


# Does all this notice? A planted mistake of every kind has to be seen.

RIGHT = """\
```pycon
>>> 1 + 1
2
>>> {"a": [1, 2, 3]}
{'a': ...}
```

```python
print("one")
print(1 + 1)
```

```text
one
2
```

```console
$ echo one; echo two >&2
one
two
$ python -c "print(6 * 7)"
42
```

```bash
true
```

```console exec="1" returncode="3"
$ exit 3
```

```python title="six.py"
six = 6
```

```console
$ python -c "import six; print(six.six, six.__file__)"
6 .../six.py
$ ls minimcp/no-such-file
ls: cannot access 'minimcp/no-such-file': No such file or directory
```

    ```json
    {"indented": true}
    ```

```json
{"one": "value"}
{"a": "line"}
```

<!-- not run: it would install something on the machine -->
```console
$ pip install everything
```
"""
WRONG = {
    "```pycon\n>>> 1 + 1\n3\n```": "Expected:",
    "```pycon\n>>> 1 / 0\n0\n```": "ZeroDivisionError",
    "```pycon\nnothing here\n```": "without a prompt",
    "```python\nassert 1 + 1 == 3\n```": "AssertionError",
    "```python\nprint(2)\n```": "the page says",
    "```python\nprint(2)\n```\n\n```text\n3\n```": "the page says",
    '```python exec="1"\n1 / 0\n```': "ZeroDivisionError",
    "```console\n$ echo one\ntwo\n```": "the page says",
    "```console\n$ exit 3\n```": "exit code 3",
    '```console exec="1" returncode="1"\n$ exit 3\n```': "exit code 3",
    '```console returncode="3"\n$ exit 3\n```': "because of returncode",
    "```console\necho one\n```": "begins with a `$ ` and a command",
    "```bash\nfalse | true\n```": "exit code 1",
    "```bash\necho one\n```\n```text\ntwo\n```": "the page says",
    '```json\n{"a": }\n```': "no JSON",
    "```json\nnothing\n```": "no JSON",
    "```py\nprint(1)\n```": "shown and not run",
    "```\nprint(1)\n```": "shown and not run",
    "<!-- not run: no -->\n```python\n1 / 0\n```": "why is it not run?",
    "    ```python\n    1 / 0\n    ```": "ZeroDivisionError",
}


def test_a_page_without_a_mistake_has_no_problems():
    assert problems(RIGHT, "right.md") == []
    assert len(blocks(RIGHT)) == 10


@pytest.mark.parametrize("text", WRONG)
def test_a_planted_mistake_is_seen_and_its_line_is_named(text):
    [found] = problems(f"# A page\n\n{text}\n", "wrong.md")
    assert WRONG[text] in found
    line = 5 if text.startswith("<!--") else 4
    assert found.startswith(f"wrong.md:{line}: ")


CANARY = """\
# A page with mistakes

[Nowhere](nowhere.md)

[No such part](index.md#no-such-part)

<!-- generated: nothing -->

```python exec="1"
raise ValueError("planted")
```
"""


def test_a_build_fails_over_a_planted_block_link_and_table(tmp_path):
    """B094: a block that failed was shown, and the build stayed green."""
    page = tmp_path / "site" / "index.md"
    page.parent.mkdir()
    page.write_text(CANARY, encoding="utf-8")
    config = small_tree(tmp_path)
    done = build(tmp_path / "built", config)
    assert done.returncode == 1
    records = re.split(r"^(?=[A-Z]+ +-)", done.stderr, flags=re.M)
    warnings = [record for record in records if record.startswith("WARNING")]
    for planted in ("nowhere.md", "#no-such-part", "generated: nothing", "ValueError: planted"):
        assert any(planted in warning for warning in warnings), planted
    assert len(warnings) == 4
    page.write_text(CANARY.partition("[")[0], encoding="utf-8")
    done = build(tmp_path / "built", config)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
