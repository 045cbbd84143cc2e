# The developer's interface: one word for each thing to do. `make` prints them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= $(firstword $(shell command -v python3.11 python3.12) python3.11)
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
SOAK_ARGS ?=
# Many tests wait for servers and processes: two at a time fill two cores. A file's tests stay together and in order.
TWO_AT_A_TIME := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo up test test-fast test-llm soak check format bramble contracts charts docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# .ci/setup takes torch first, and nothing later replaces it.
$(VENV)/.demo: pyproject.toml .ci/constraints.txt
	@bash .ci/setup $(PYTHON) $(VENV) all
	@touch $@

$(VENV)/.dev: pyproject.toml .ci/constraints.txt
	@bash .ci/setup $(PYTHON) $(VENV) all,dev
	@touch $(VENV)/.demo $@

setup: $(VENV)/.dev ## make .venv with everything, for work on the code

demo: $(VENV)/.demo ## play three epochs of Bramble on this machine and write runs/<id>/report.html
	@$(BIN)/zelda demo

up: $(VENV)/.demo ## start bus, store, judge and the five services; ctrl-C stops them
	@$(BIN)/zelda up

test: $(VENV)/.dev check ## all checks and all tests
	@$(BIN)/pytest $(TWO_AT_A_TIME) $(PYTEST_ARGS)

test-fast: $(VENV)/.dev ## tests that take less than ten seconds each
	@$(BIN)/pytest -m "not slow and not llm" $(PYTEST_ARGS)

test-llm: $(VENV)/.dev ## judges against a real inference server with a tiny random model
	@$(BIN)/pytest -m llm $(PYTEST_ARGS)

soak: $(VENV)/.dev ## soak test: faults at random moments on the complete ring (SOAK_ARGS="--kind kills --rounds 100")
	@$(BIN)/python -m tests.faults.soak $(SOAK_ARGS)

check: $(VENV)/.dev ## format, lint, types, architecture
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## let ruff format and mend what it can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bramble: $(VENV)/.demo ## rebuild the Bramble engine (needs sdcc 4.2.0)
	@$(BIN)/python -m bramble engine

contracts: $(VENV)/.dev ## regenerate schemas, AsyncAPI document and RAM reader from their tables
	@$(BIN)/python -m shared.contracts.generate
	@$(BIN)/python -m shared.bus.asyncapi
	@$(BIN)/python -m shared.game.generate

charts: $(VENV)/.dev ## regenerate values, permissions, alerts, dashboards and deploy/base
	@$(BIN)/python -m deploy.generate

clean: ## remove what was built, but not runs/
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
