# Two commands on a fresh machine: `make demo` (no torch) and `make test` (all extras).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
EXTRAS := train,tensorboard,parquet,formula,cluster,docs,test,bench
# tests run in parallel processes: one thread in each
ONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
JOBS ?= 2

.PHONY: help demo test test-slow lint format docs build clean
help:
	@echo "make demo       the main job on the packaged training runs (no torch), writes convexlaw-demo/report.html"
	@echo "make test       all extras, then the fast test suite"
	@echo "make test-slow  the long test suites"
	@echo "make lint       ruff, import layers, mypy"
	@echo "make docs       the documentation into docs/_build/html"
	@echo "make build      wheel and sdist into dist/"

# the stamps make a repeated command start at once
.venv/.core: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing the core dependencies into .venv (once)"
	@$(PIP) -e .
	@touch $@

.venv/.all: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing all extras into .venv (once)"
	@$(PIP) -e '.[$(EXTRAS)]'
	@touch .venv/.core $@

demo: .venv/.core
	@$(BIN)/convexlaw demo --out convexlaw-demo

test: .venv/.all
	$(ONE) $(BIN)/python -m pytest -n $(JOBS) -m "not slow" --doctest-modules --pyargs convexlaw tests

test-slow: .venv/.all
	$(ONE) $(BIN)/python -m pytest -n $(JOBS) -m slow

lint: .venv/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: .venv/.all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.all
	$(ONE) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo docs/_build/html/index.html

build: .venv/.all
	$(BIN)/python -m build --no-isolation -o dist .

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
