# Needs python3 (3.10 or newer, with venv) and make. Everything lands in .venv/.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test site clean

demo:                       ## no install, no network: the core is standard library only
	@$(PYTHON) -m minimcp.client

.venv/.done: pyproject.toml
	$(PYTHON) -m venv --upgrade-deps .venv
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	touch $@

test: .venv/.done           ## everything: style, types, the suite with its real peers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses=auto --max-worker-restart=0

site: .venv/.done           ## the documentation, at http://127.0.0.1:8000
	-@$(BIN)/python tests/node_tools.py tests/pyodide  # Python for the playground; goes without
	$(BIN)/mkdocs serve

notebooks: .venv/.done      ## the notebooks, in JupyterLab
	$(BIN)/python -m pip install --quiet --editable '.[notebooks]'
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf .venv _site .cache tests/node/node_modules tests/pyodide/node_modules
.PHONY: notebooks

spikes: .venv/.done         ## all experiments once more: some minutes, on a machine that is left alone
	$(BIN)/python site/spikes/lab.py
.PHONY: spikes

load: .venv/.done           ## a million calls over each wire: half an hour, on a machine that is left alone
	$(BIN)/python tests/load_stdio.py
	$(BIN)/python tests/load_http.py
.PHONY: load

coverage: .venv/.done       ## which lines and branches of the package the tests run: a quarter of an hour
	$(BIN)/python -m pip install --quiet --editable '.[trust]'
	$(BIN)/python tests/measure_coverage.py
.PHONY: coverage

FUZZ_SECONDS ?= 60
FUZZ_RUNS ?= 0
fuzz: .venv/.done           ## look for crashes, for FUZZ_SECONDS in all or FUZZ_RUNS inputs to each target
	$(BIN)/python -m pip install --quiet --editable '.[trust]'
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS) --runs $(FUZZ_RUNS)
.PHONY: fuzz

scale: .venv/.done          ## several workers behind nginx, renewed and killed under load
	$(BIN)/python tests/support_scale.py
everywhere: .venv/.done     ## the core tests on every Python that is here, and where it is unkind
	$(BIN)/python -m pip install --quiet --editable '.[trust]'
	$(BIN)/nox
audit: .venv/.done          ## known holes in what is installed; it needs the network
	$(BIN)/python -m pip install --quiet --editable '.[trust]'
	$(BIN)/nox --session audit
.PHONY: scale everywhere audit

need: .venv/.done           ## take statements of the core away, and see what misses each: an hour
	$(BIN)/python tests/measure_need.py
.PHONY: need

mutation: .venv/.done       ## change the core in small ways, and see which changes no test notices: an hour
	$(BIN)/python -m pip install --quiet --editable '.[trust]'
	$(BIN)/python tests/measure_mutation.py
.PHONY: mutation
