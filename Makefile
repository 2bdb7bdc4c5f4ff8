# Two commands on a fresh machine: `make demo` (no torch) and `make test` (all extras).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
EXTRAS := train,tensorboard,parquet,formula,cluster,docs,test,bench
# tests run in parallel processes: one thread in each
ONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
JOBS ?= 2
comma := ,

# lowest versions: without torch, so without the tests that train or import it
LOW := parquet,formula,tensorboard,cluster
NO_TORCH := --ignore-glob='tests/test_training_*' --ignore-glob='tests/test_exporters_*' \
  --ignore=tests/test_schedule_shapes.py --ignore=tests/test_evidence.py \
  --deselect tests/test_packaged_training_logs.py::test_the_first_rows_come_back \
  --ignore=tests/test_docs_build.py --ignore=tests/test_layout.py --ignore=tests/test_guides.py

.PHONY: help demo test test-slow test-lowest test-newest lint format docs build clean
help:
	@echo "make demo       the main job on the packaged training runs (no torch), writes convexlaw-demo/report.html"
	@echo "make test       all extras, then the fast test suite"
	@echo "make test-slow  the long test suites"
	@echo "make test-lowest  the fast suite, but for torch, with the lowest versions that pyproject.toml allows"
	@echo "make test-newest  the fast suite with the newest versions there are, not those of constraints.txt"
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

.venv-lowest/.all: pyproject.toml .ci/lowest
	@$(PYTHON) -m venv --clear .venv-lowest
	@$(PYTHON) .ci/lowest $(subst $(comma), ,$(LOW)) > .venv-lowest/lowest.txt
	@.venv-lowest/bin/python -m pip install --disable-pip-version-check -q -c .venv-lowest/lowest.txt \
	  -e '.[$(LOW)]' pytest pytest-mpl pytest-xdist hypothesis sortedl1
	@touch $@

.venv-newest/.all: pyproject.toml
	@$(PYTHON) -m venv --clear .venv-newest
	@.venv-newest/bin/python -m pip install --disable-pip-version-check -q -e '.[$(EXTRAS)]'
	@touch $@

demo: .venv/.core
	@$(BIN)/convexlaw demo --out convexlaw-demo

test: .venv/.all
	$(ONE) $(BIN)/python -m pytest -n $(JOBS) -m "not slow" --doctest-modules --pyargs convexlaw tests

test-slow: .venv/.all
	$(ONE) $(BIN)/python -m pytest -n $(JOBS) -m slow

# old packages beside new ones warn of each other: warnings are no errors there; pictures are not compared, fonts differ
test-lowest: .venv-lowest/.all
	.venv-lowest/bin/convexlaw demo --out .venv-lowest/demo
	$(ONE) NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/numba .venv-lowest/bin/python -m pytest -n $(JOBS) -m "not slow" \
	  -o filterwarnings=default -o addopts=--import-mode=importlib $(NO_TORCH) tests

test-newest: .venv-newest/.all
	$(ONE) NUMBA_CACHE_DIR=$(CURDIR)/.venv-newest/numba .venv-newest/bin/python -m pytest -n $(JOBS) -m "not slow" tests

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
