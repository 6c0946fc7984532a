# Every target sets itself up: it makes .venv with what it needs on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEEDS ?= 1000
N ?= 1000
SEED ?= 1
CRASHES ?= 50000
SECONDS ?= 600
CLIENTS ?= 200
PROCESSES ?= 1
# With hashes of 4 bits nearly all rows collide, so that equality has to decide.
COLLIDING := EDDYLINE_HASH_BITS=4
# What opens databases without saying their layout: also run with one runtime per replica.
LAYOUTS := $(addprefix tests/,adapter adversarial clusterd compute controller demo differential examples frontends sql_scripts test_gil_budget.py test_readme.py test_layouts.py)
HASHED := $(addprefix tests/,trace kernels compute storage sql_scripts)
SOURCES := $(wildcard src tests examples bench demo)
# The JIT cache lives in the checkout, so that runs of different checkouts never share kernels.
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba

.PHONY: soak crash help setup test test-long check demo bench bench-isolation fuzz simulate postgres clean

help:
	@echo "make demo        flight records through live views, checked against DuckDB"
	@echo "make test        the whole test suite (needs PostgreSQL 15: installs it where apt-get may)"
	@echo "make test-long   more of the same: the counts of a night, not of a commit"
	@echo "make check       types, lint and formatting"
	@echo "make fuzz        random schemas, changes and queries against PostgreSQL and DuckDB (SEEDS=$(SEEDS))"
	@echo "make simulate    whole databases stepped in random orders, every answer recomputed (SEEDS=$(SEEDS))"
	@echo "make crash       kills writing processes and checks what is left (N=$(N) SEED=$(SEED)); losses of power (CRASHES=$(CRASHES))"
	@echo "make soak        many clients on one server for a while (SECONDS=$(SECONDS) CLIENTS=$(CLIENTS))"
	@echo "make bench       measurements, side by side with other engines"
	@echo "make bench-isolation   what reads wait for while views hydrate, in both layouts (QUICK=--quick)"

$(VENV)/.ready-base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "eddyline needs Python 3.11 or newer; say make PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.ready-demo: $(VENV)/.ready-base
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@touch $@

$(VENV)/.ready-test: $(VENV)/.ready-base
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,demo,pandas,polars]'
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready-base
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

setup: $(VENV)/.ready-test

postgres:
	@sh scripts/install-postgres.sh

test: $(VENV)/.ready-test postgres
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not long and not bench' tests
	$(COLLIDING) $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not long and not bench' $(HASHED)
	EDDYLINE_INTERACTIVE=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not long and not bench and not both_layouts' $(LAYOUTS)
	$(COLLIDING) $(BIN)/python -m eddyline.testing.fuzz --first 100000 --seeds 40

test-long: $(VENV)/.ready-test postgres
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not bench' tests
	$(COLLIDING) $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not bench' tests
	EDDYLINE_INTERACTIVE=0 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not bench and not both_layouts' tests

check: $(VENV)/.ready-test
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)

demo: $(VENV)/.ready-demo
	@$(BIN)/python -m demo

fuzz: $(VENV)/.ready-test postgres
	$(BIN)/python -m eddyline.testing.fuzz --seeds $(SEEDS)

crash: $(VENV)/.ready-test
	$(BIN)/python -m eddyline.testing.crash --rounds $(N) --seed $(SEED)
	$(BIN)/python -m eddyline.testing.crash --rounds $(N) --seed $(SEED) --processes $(PROCESSES)
	EDDYLINE_CRASHES=$(CRASHES) $(BIN)/python -m pytest -n 2 tests/storage/test_torn_writes.py

soak: $(VENV)/.ready-test
	$(BIN)/python -m eddyline.testing.soak --seconds $(SECONDS) --clients $(CLIENTS)

simulate: $(VENV)/.ready-test
	$(BIN)/python -m eddyline.testing.simulation --seeds $(SEEDS)
	$(BIN)/python -m eddyline.testing.simulation --seeds $(SEEDS) --one-runtime

bench-isolation: $(VENV)/.ready-base
	$(BIN)/python -m bench.isolation $(QUICK)

bench: $(VENV)/.ready-bench postgres
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
