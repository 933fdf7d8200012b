"""What the notebooks teach with: diagrams of recorded messages, exercises that answer, tables.

    Recording              what was said, drawn as a sequence diagram           diagram.py
    Exercise, Mistake      a checker with cases, hints and a solution           exercise.py
    agree                  your code and the package over one table of lines    agreement.py
    line, call, HANDSHAKE  lines to send                                        lines.py
    Table, progress,       things to look at                                    display.py
    breaks
    need, save, python     helpers on the PATH, servers as files                setup.py
    until                  wait for another thread                              setup.py

The exercises of a notebook are in a module of its number, `n01.py` and so on. How to write a
notebook: README.md.
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 (said before anything newer is read)
    raise ImportError("the notebooks need Python 3.10 or newer; choose another kernel")

from .agreement import Agreement, agree
from .diagram import Recording
from .display import Progress, Table, breaks, progress
from .exercise import Exercise, Mistake, Report
from .lines import HANDSHAKE, call, line
from .setup import ROOT, Missing, folder, need, python, quiet, ready, save, until

__all__ = [
    "HANDSHAKE",
    "ROOT",
    "Agreement",
    "Exercise",
    "Missing",
    "Mistake",
    "Progress",
    "Recording",
    "Report",
    "Table",
    "agree",
    "breaks",
    "call",
    "folder",
    "line",
    "need",
    "progress",
    "python",
    "quiet",
    "ready",
    "save",
    "until",
]
