# The verbs of this repository. `make` alone lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo)

.DEFAULT_GOAL := help
.PHONY: help demo local test browser check unit bench format lock clean

help: ## List the verbs
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(STAMP) ## The main job, locally: from nothing to a JobSet served and cleaned up
	@$(BIN)/python -m infra.local demo

local: $(STAMP) ## The whole system, kept up for you to try; Ctrl-C ends it
	@$(BIN)/python -m infra.local up

test: check $(STAMP) browser ## The whole gate: format, lint, types, layers, every test
	$(BIN)/pytest

browser: # Chromium opens the page that `slices timeline` writes; without it its tests fail, and name the remedy
	@command -v chromium >/dev/null || { $(AS_ROOT) apt-get update -q && $(AS_ROOT) apt-get install -qy --no-install-recommends chromium fonts-dejavu-core; } || true

unit: $(STAMP) ## The tests that need no process and no port
	$(BIN)/pytest -m "not emulators"

check: $(STAMP) ## Format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMP) ## What an event costs, against a floor measured in the same run
	$(BIN)/python -m tests.bench

format: $(STAMP) ## Put the sources in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(STAMP) ## Resolve the dependencies anew (needs uv)
	uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml -o functions/requirements.txt
	uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra relay -o relay/requirements.txt
	uv pip compile -q --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra relay --extra dev -o tests/requirements.txt

clean: ## Remove what the other verbs made
	rm -rf $(VENV) .local .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMP): tests/requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r tests/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
	@touch $@
