# Two commands: `make run` sets everything up and runs the main scenario, `make test` sets up and
# passes all tests. Both make a virtual environment in .venv and need only Python 3.11 to 3.13.

VENV ?= .venv
SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && { echo $$p; break; }; done)
# Without a C compiler the one that ziglang brings by pip compiles the programs.
ZIG = $(shell command -v $${CC:-cc} >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || \
	command -v clang >/dev/null 2>&1 || echo ,zig)
BIN = $(VENV)/bin

.PHONY: run test lint unit docs bench wheel clean

run: $(VENV)/.run
	$(BIN)/cosim run stages/lander.usda

test: lint unit

lint: $(VENV)/.test
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo --verbose >/dev/null || $(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

docs: $(VENV)/.test
	$(BIN)/python docs/generate.py

unit: $(VENV)/.test
	$(BIN)/python -m pytest -q -n auto --dist loadfile

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

wheel: $(VENV)/.test
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist *.egg-info runs

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "cosim needs Python 3.11, 3.12 or 3.13; give one with: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c '$(SUPPORTED)' || { echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[view$(ZIG)]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[view,table,test$(ZIG)]"
	@touch $@ $(VENV)/.run
