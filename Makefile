# Everything here makes what it needs: a virtual environment of its own, filled by pip.
# Preinstalled must be only Python 3.11 or later, make, and npm for the conformance suite.

PYTHON ?= python3
ARGS ?=

BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv-bench/.ready

# The peers that stanchion is measured against; one of them pins what the tests must not be
# pinned to, so they have an environment of their own.
PEERS := mcp==2.3.0 fastmcp==4.2.3

# Workers of the test suite, one a core.
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test check format cover conformance bench clean

help:
	@echo "make demo         serve an example over HTTP and drive it with the official client"
	@echo "make test         the whole suite, with branch coverage of the four packages"
	@echo "make check        formatting, lint, types, and who may import whom"
	@echo "make format       format, and mend what can be mended by itself"
	@echo "make cover        the coverage of the last make test, as pages to read"
	@echo "make conformance  the protocol's own suite against a running server; needs npm"
	@echo "make bench        cost of a call, here and in the peers, in one run"
	@echo "make clean        remove what the other commands made"

demo: $(READY)
	$(BIN)/python -m examples.orders.demo $(ARGS)

# `coverage run` rather than pytest's own option: the workers, and the servers that tests start
# as processes, are then measured from their first import on.
# Tests of one group share a server, so they stay on one worker. A test that hangs ends its worker
# and then the run: an event loop that is interrupted from outside may never come back.
test: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --numprocesses $(WORKERS) --dist loadgroup \
		--max-worker-restart 0 --timeout-method thread $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

cover: $(READY)
	$(BIN)/coverage html --directory build/coverage
	@echo "build/coverage/index.html"

# The tests fetch the suite with npm; without npm they are skipped, and in CI they fail.
conformance: $(READY)
	$(BIN)/python -m pytest tests/conformance $(ARGS)

bench: $(BENCH_READY)
	.venv-bench/bin/python -m tests.bench $(ARGS)

clean:
	rm -rf .venv .venv-bench build dist .ruff_cache .hypothesis .import_linter_cache
	rm -rf tests/conformance/node_modules tests/conformance/results .coverage .coverage.*

# What the commands stand on.

define make_environment
	@command -v $(PYTHON) >/dev/null || { \
		echo "There is no $(PYTHON) here; name another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Stanchion needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1);" \
			"name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(1)
endef

$(READY): pyproject.toml constraints.txt
	$(call make_environment,.venv)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(BENCH_READY): pyproject.toml constraints.txt
	$(call make_environment,.venv-bench)
	@echo '*' > .venv-bench/.gitignore
	.venv-bench/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[redis]' $(PEERS)
	@touch $@
