# Needs python3 (3.10 or newer, with venv) and make. Everything lands in .venv/.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo:                       ## no install, no network: the core is standard library only
	@$(PYTHON) -m minimcp.client

.venv/.done: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

test: .venv/.done           ## everything: linters, types, the suite with its real peers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

clean:
	rm -rf .venv _site .cache tests/node/node_modules
