"""Run notebooks and store what they show: `python tests/refresh.py`, or with numbers, `… 01 05`."""

from __future__ import annotations

import sys

import nbformat
from support_notebooks import NOTEBOOKS, run, tidy


def main(numbers: list[str]) -> None:
    for path in NOTEBOOKS:
        if not numbers or path.name[:2] in numbers:
            notebook = run(path)
            print(f"{path.name}  {notebook.seconds:.1f} s")
            tidy(notebook, path)
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1:])
