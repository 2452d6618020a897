# `make run` and `make test` set up .venv from the lock files first. `make test` is for every change, `make test-slow` has
# what else CI runs, `make test-all` everything.
PORT ?= 8000
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := 0.13.*
# On two cores: most tests on SQLite wait for processes of their own, those on PostgreSQL seldom wait.
SQLITE := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# It takes less time and only what the others leave of the processors, so it ends while they still run.
POSTGRESQL := SWITCHBOARD_TEST_DATABASE=postgresql nice -n 5 $(BIN)/python -m pytest
POSTGRESQL_LOG := $(VENV)/postgresql.log
TOOK := --durations=0 --durations-min=5

.PHONY: run test test-slow test-all test-sqlite test-postgresql check bench faults docs screenshots

run: $(VENV)/.runtime
	@$(BIN)/python manage.py serve --port $(PORT)

test: export SWITCHBOARD_TESTS := quick
test-slow: export SWITCHBOARD_TESTS := slow
# Compiled modules are kept, whatever the environment says: four processes and every server of theirs read them.
test test-slow test-all: export PYTHONDONTWRITEBYTECODE :=
# Both databases at once; what the run on PostgreSQL has to say comes last.
test test-slow test-all: $(VENV)/.dev
	@$(BIN)/python -m tests.support.compiling
	@$(MAKE) --no-print-directory -j2 test-sqlite test-postgresql; status=$$?; cat $(POSTGRESQL_LOG); exit $$status

test-sqlite:
	@$(SQLITE)

test-postgresql:
	@$(POSTGRESQL) >$(POSTGRESQL_LOG) 2>&1

check: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.checks
	@$(BIN)/mypy
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/python docs/generate_reference.py --check

bench: $(VENV)/.dev
	@$(BIN)/python -m tests.benchmarks $(ONLY)

# First what may share the machine, two files at once; then, by itself, what bounds time, CPU or memory; last what SQLite
# has no rows to lock for. Each whatever the others find, with the seconds that each test took.
faults: $(VENV)/.dev
	@status=0; \
	$(BIN)/python -m pytest -m "faults and not alone" -n 2 --dist loadfile --no-loadscope-reorder $(TOOK) || status=1; \
	$(BIN)/python -m pytest -m "faults and alone" $(TOOK) || status=1; \
	SWITCHBOARD_TEST_DATABASE=postgresql $(BIN)/python -m pytest -m faults $(TOOK) tests/events/test_neighbours.py || status=1; \
	exit $$status

docs: $(VENV)/.dev
	@$(BIN)/python docs/generate_reference.py

screenshots: $(VENV)/.dev
	@$(BIN)/python -m docs.screenshots

$(VENV)/.base:
	@command -v $(PYTHON) >/dev/null || { echo "python3 is missing: apt-get install python3 python3-venv make"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "venv is missing: apt-get install python3-venv"; exit 1; }
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check "uv==$(UV)" || echo "uv is not available; using pip"
	@touch $@

# $(call install,LOCK): by uv, else by pip.
define install
	@if [ -x $(BIN)/uv ]; then $(BIN)/uv pip install -q --compile-bytecode --python $(VENV) -r requirements/$(1).lock && $(BIN)/uv pip install -q --python $(VENV) --no-deps -e . ; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/$(1).lock && $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e . ; fi
endef

$(VENV)/.runtime: requirements/runtime.lock pyproject.toml | $(VENV)/.base
	$(call install,runtime)
	@$(BIN)/python -m dashboard.interface_font
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(VENV)/.base
	$(call install,dev)
	@$(BIN)/python -m dashboard.interface_font
	@touch $@ $(VENV)/.runtime
