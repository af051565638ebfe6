# `make search` and `make test` need Python 3.11 or newer, git and make; everything else goes into .venv.
#
#   make search   run a real search on the embedded data set and print the Pareto front
#   make test     run every test
#   make faults   kill a search at 50 random instants, and the other fault tests; PASCA_FAULTS=200 for more
#   make check    lint, types, layering and the quick tests, under a minute
#   make clean    remove .venv and everything built
#
# For who works on pasca; not part of continuous integration:
#
#   make coverage      run every test and list the lines and branches that none reaches
#   make test-lowest   run the quick tests with the lowest versions that pyproject.toml admits
#   make load          20,000 trials that cost nothing: time and memory a trial, front and report afterwards
#   make fuzz          damaged files for every reader and for exported models, for FUZZ_SECONDS
#   make mutate        change pareto, acquisition, ehvi and architecture, and see which changes no test notices
#   make audit         look the pinned versions up among known vulnerabilities; needs the network
#
# Settings: PYTHON=python3.12 picks the interpreter, DATA=FOLDER what is searched, ARGS="--evaluations 20" is handed on,
# TEST_WORKERS=1 runs the tests in one process, FUZZ_SECONDS=60 makes fuzzing short.

PYTHON ?= python3
DATA ?= digits
ARGS ?=
# Processes that share the tests, with one thread each; the tests of a file stay together, as they share fixtures.
TEST_WORKERS ?= 2
SHARED_OUT := -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder
FUZZ_SECONDS ?= 600
# A name of its own for every run, so that a second `make search` starts afresh.
RUN ?= $(notdir $(patsubst %/,%,$(DATA)))-$(shell date +%Y%m%d-%H%M%S)

# What `make check` runs: the parts that most others stand on and that take seconds.
QUICK := tests/test_layering.py tests/search_space $(wildcard tests/engines/test_*.py) \
  $(patsubst %,tests/engines/search/test_%.py,acquisition candidates kernel knee noise observations pareto) \
  $(patsubst %,tests/engines/evaluation/test_%.py,clocks costs metrics normalise partition recipe shard)

BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help search test faults check clean coverage load fuzz mutate audit test-lowest
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

search: .venv/.installed
	$(BIN)/pasca search $(DATA) --run $(RUN) --evaluations 60 $(ARGS)

test: .venv/.installed-test
	$(BIN)/python -m pytest $(SHARED_OUT) $(ARGS)

# `make test` kills at 6 instants, one a stage.
faults: export PASCA_FAULTS ?= 50
faults: .venv/.installed-test
	$(BIN)/python -m pytest tests/faults $(ARGS)

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -m "not slow" $(SHARED_OUT) $(QUICK) $(ARGS)

coverage: .venv/.installed-test
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest $(SHARED_OUT) $(ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --show-missing

load: .venv/.installed
	$(BIN)/python benchmarks/bench_load.py $(ARGS)

fuzz: .venv/.installed-test
	$(BIN)/python tests/fuzz/readers.py --seconds $(FUZZ_SECONDS) $(ARGS)

# Mutants are tested in forks, which a pool of threads does not survive.
mutate: export OMP_NUM_THREADS = 1
mutate: export OPENBLAS_NUM_THREADS = 1
mutate: export MKL_NUM_THREADS = 1
mutate: .venv/.installed-dev
	rm -rf mutants
	$(BIN)/python -m mutmut run $(ARGS)
	$(BIN)/python -m mutmut results

audit: .venv/.installed-dev
	$(BIN)/python -m pip_audit --requirement constraints.txt --no-deps --disable-pip $(ARGS)

test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest -q -m "not slow" $(QUICK) $(ARGS)

clean:
	rm -rf .venv .venv-lowest mutants build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Each stamp stands for one finished step; a step is repeated when what it was made from has changed.
.venv/.created:
	@command -v $(PYTHON) >/dev/null \
	  || { echo "pasca needs Python 3.11 or newer, found no $(PYTHON); try: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "pasca needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear .venv \
	  || { echo "$(PYTHON) cannot create virtual environments; install its venv module or try another: make PYTHON=..." >&2; exit 1; }
	@touch $@

.venv/.installed: .venv/.created pyproject.toml constraints.txt
	@echo "installing pinned dependencies into .venv (a few minutes the first time)"
	@$(INSTALL) setuptools
	@$(INSTALL) --editable .
	@touch $@

.venv/.installed-test: .venv/.installed
	@echo "installing the test dependencies into .venv"
	@$(INSTALL) --editable '.[test]'
	@touch $@

.venv/.installed-dev: .venv/.installed-test
	@echo "installing the development tools into .venv"
	@$(INSTALL) --editable '.[test,dev]'
	@touch $@

# A second environment, with the oldest versions that pyproject.toml admits.
.venv-lowest/.installed: pyproject.toml constraints-lowest.txt
	@$(PYTHON) -m venv --clear .venv-lowest
	@echo "installing the lowest versions into .venv-lowest"
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77'
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	  -c constraints-lowest.txt --editable . pytest hypothesis
	@touch $@
