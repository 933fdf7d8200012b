"""Does it run where you are?

The specification says UTF-8, and the machine says whatever it likes: an old locale, no locale,
streams that are set to ASCII, lines that end as on Windows. The hypothesis: every interpreter from
3.10 to 3.15, in every such place, sends the very same bytes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lab

QUESTION = "Does it run where you are?"
CONTROL = "a server that reads `sys.stdin` and prints, as a first sketch does"
ADRS = ["0001", "0007"]
PACKAGES = ["minimcp-reference"]
ROUNDS, QUICK = 1, 0
HERE, SUM = "place", "in all"
OLD = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
PLACES = {
    "a UTF-8 locale": {"LC_ALL": "C.UTF-8"},
    "the C locale, and no UTF-8": {"LC_ALL": "C", **OLD},
    "a locale that does not exist": {"LC_ALL": "xx_YY.ISO-8859-15", **OLD},
    "no locale": {"LC_ALL": "", "LANG": "", "LC_CTYPE": "", **OLD},
    "streams set to ASCII": {"PYTHONIOENCODING": "ascii"},
    "streams set to a Windows code page": {"PYTHONIOENCODING": "cp1252"},
    "every warning an error": {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
}
SKETCH = """
import sys
for line in sys.stdin:
    reply = server.handle_line(line)
    if reply:
        print(reply, flush=True)
"""

# ## Experiments
#
# One session has it all: a byte order mark, lines that end with CRLF, an empty one, two and three
# and four bytes a letter, the same letter as escapes, and a last line that does not end.

TEXT = "naïve € 🙂 日本 \u2028 end"


def session() -> bytes:
    """What a client on Windows might send."""
    escaped = lab.call(2, "echo", text=TEXT)
    plain = json.dumps(json.loads(escaped), ensure_ascii=False).encode() + b"\n"
    lines = [b"\xef\xbb\xbf" + lab.call(1), escaped, b"\n", plain, lab.call(3)]
    return b"".join(line.replace(b"\n", b"\r\n") for line in lines).rstrip()


def interpreters() -> Iterator[tuple[str, str]]:
    """The Pythons of this machine that the package is made for, and this one."""
    versions = Path.home() / ".pyenv" / "versions"
    for minor in range(10, 16):
        name = f"3.{minor}"
        near = [str(path) for path in versions.glob(f"{name}.*/bin/python3")]
        path = sys.executable if sys.version_info[1] == minor else shutil.which(f"python{name}")
        for found in (path, *near):
            if found and works(found, name):
                yield name, found
                break


def works(path: str, name: str) -> bool:
    """Whether it starts, and is what its name says."""
    asked = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip() == name


def answers(python: str, source: str, env: dict[str, str]) -> bytes:
    """All bytes that a server sends in this session."""
    done = subprocess.run(  # noqa: S603
        [python, "-c", source],
        input=session(),
        env={**os.environ, "PYTHONPATH": str(lab.ROOT), **env},
        capture_output=True,
    )
    return done.stdout


def measure(rounds: int, control: bool = False) -> lab.Groups:
    """Each interpreter in each place; a short run has this interpreter only."""
    found = dict(interpreters()) if rounds else {"this": sys.executable}
    source = lab.OURS + SKETCH if control else lab.SERVER
    wanted = answers(sys.executable, lab.SERVER, {"PYTHONUTF8": "1"})
    groups: lab.Groups = {HERE: {}}
    right = 0
    for place, env in PLACES.items():
        lab.progress(place)
        same = [name for name, path in found.items() if answers(path, source, env) == wanted]
        right += len(same)
        groups[HERE][place] = ", ".join(same) or "none"
    cells = len(found) * len(PLACES)
    groups[SUM] = {
        "interpreters": ", ".join(found),
        "sessions": cells,
        "with the right bytes": right,
    }
    groups[SUM] |= {"replies in each": wanted.count(b"\n"), "bytes": len(wanted)}
    texts = [json.loads(line)["result"]["content"][0]["text"] for line in wanted.splitlines()]
    groups[SUM]["every letter as it was sent"] = texts == ["42", TEXT, TEXT, "42"]
    return groups


def verdict(groups: lab.Groups) -> tuple[bool, str]:
    """Every session, and each with all its replies."""
    known = groups[SUM]
    right, cells = known["with the right bytes"], known["sessions"]
    said = f"{right} of {cells} sessions gave the very same {known['bytes']} bytes: Python "
    said += f"{known['interpreters']}, each in {len(groups[HERE])} places."
    return right == cells and known["every letter as it was sent"], said
