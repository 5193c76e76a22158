# The targets of this repository. `make` alone lists them.
PYTHON ?= python3
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
UNIT   := $(PYTEST) -p no:logging -m "not emulators and not slow and not proof" --hypothesis-profile=fast --numprocesses
HALF   := $(shell half=$$(($$(nproc) / 2)); [ $$half -gt 1 ] && echo $$half || echo 0)
AS_ROOT := $(if $(filter-out 0,$(shell id -u)),sudo)

# The tests start many programs of Python's: without their bytecode each would compile all its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-compute local test test-real proof browser kubernetes control-plane check unit unit-core unit-edges bench soak fuzz simulate crashes mutants scan format lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(STAMP) ## Run the system locally, from an empty cluster to JobSets served and cleaned up
	@$(BIN)/python -m infra.local demo $(ARGS)

demo-compute: $(STAMP) ## The same for a self-managed cluster, whose slices are on Compute Engine
	@$(BIN)/python -m infra.local demo --backend compute $(ARGS)

local: $(STAMP) ## Run the whole system locally and keep it running, to try it; Ctrl-C ends it
	@$(BIN)/python -m infra.local up $(ARGS)

test: check $(STAMP) ## Run the checks and the tests that need nothing to be built: format, lint, types, layers, emulators
	$(PYTEST) --suite=test

test-real: $(STAMP) browser control-plane ## Run the tests on a real control plane, a browser and gcloud, of examples, and of killed processes
	$(PYTEST) --suite=real

proof: $(STAMP) .local/cosmic-ray/.installed browser control-plane ## Prove for a night what the tests say for few cases, and write docs/proof.md
	$(BIN)/python -m tests.proof $(ARGS)

browser: # Chromium is for tests of the page that `slices timeline` writes; without it they fail, and name the remedy
	@command -v chromium >/dev/null || { $(AS_ROOT) apt-get update -q && $(AS_ROOT) apt-get install -qy --no-install-recommends chromium fonts-dejavu-core; } || true

kubernetes: $(STAMP) ## Build Kubernetes' control plane and the controllers beside it for local use, once: no Go is needed
	@$(BIN)/python -m tpu_standins.building

control-plane: $(STAMP) # the same for the tests: where it cannot be built, those that need it are skipped, but not in CI
	@$(BIN)/python -m tpu_standins.building || [ "$$CI" != true ]

unit: $(STAMP) ## Run the tests of the sources that need no processes, in seconds: a few examples of each property
	@$(MAKE) --no-print-directory --jobs 2 --output-sync unit-core unit-edges

unit-core: # each half imports and collects what is its own
	$(UNIT) $(HALF) tests/domain tests/functions tests/wire

unit-edges:
	$(UNIT) $(HALF) tests/adapters tests/cli tests/flows tests/relay

check: $(STAMP) ## Check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	MYPY_CACHE_DIR=$${XDG_CACHE_HOME:-$$HOME/.cache}/tpu-slice-provisioner/mypy $(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMP) ## Count what is used of Google Cloud, and measure an event against a baseline of the same run
	$(BIN)/python -m tests.bench.counted.usage
	$(BIN)/python -m tests.bench

soak: $(STAMP) ## Measure 1,000 nodes and 2,000 pods on a real control plane, with the relay
	$(BIN)/python -m tests.bench.soak

SECONDS ?= 60
fuzz: $(STAMP) .local/atheris/.installed ## Fuzz every parser for SECONDS=60, guided by coverage, with atheris, which is 130 MB: not part of the gate
	PYTHONPATH=.local/atheris $(BIN)/python -m tests.fuzz $(SECONDS) $(ARGS)

simulate: $(STAMP) ## Play SEEDS=1000 stories of faults on the whole system in memory, FROM=seed; what breaks a promise is shrunk
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),1000) $(if $(FROM),--from $(FROM))

crashes: $(STAMP) ## Kill the process after every side effect of a fixed set of stories, which takes some minutes
	$(BIN)/python -m tests.simulation.crash_points

mutants: $(STAMP) .local/cosmic-ray/.installed ## Count the small changes of the core that its tests notice, with cosmic-ray, for an hour
	$(BIN)/python -m tests.mutants $(ARGS)

scan: .local/checkov/.installed ## Scan the Terraform files with checkov, which installs 290 MB of its own: not part of the gate
	for root in infra/terraform $(dir $(wildcard infra/environments/*/*/versions.tf)); do \
	  .local/checkov/bin/checkov --config-file $$root/.checkov.yaml --directory $$root || exit; \
	done

format: $(STAMP) ## Format the sources, and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

LOCK := $(BIN)/uv pip compile -q --generate-hashes --no-header --python-version 3.11
TRAINING := examples/training
ON_GKE := --python-platform x86_64-manylinux_2_31
lock: $(STAMP) ## Resolve the dependencies into the requirements files
	$(LOCK) --universal pyproject.toml -o functions/requirements.txt
	$(LOCK) --python-platform x86_64-manylinux_2_28 --group relay --overrides relay/image/overrides.txt -o relay/image/requirements.txt
	$(LOCK) --universal pyproject.toml infra/standins/pyproject.toml --group relay --extra dev -o tests/requirements.txt
	$(LOCK) --universal tests/infra/checkov.in -o tests/infra/checkov.txt
	$(LOCK) --universal tests/fuzz/atheris.in -o tests/fuzz/atheris.txt
	$(LOCK) --universal tests/mutants/cosmic-ray.in -o tests/mutants/cosmic-ray.txt
	$(LOCK) $(ON_GKE) $(TRAINING)/trainer/image.in -o $(TRAINING)/trainer/image.txt
	$(LOCK) --universal --constraints $(TRAINING)/trainer/image.txt $(TRAINING)/trainer/requirements.in -o $(TRAINING)/trainer/requirements.txt
	$(LOCK) $(ON_GKE) $(TRAINING)/uploader/requirements.in -o $(TRAINING)/uploader/requirements.txt

clean: ## Remove what the other targets created
	rm -rf $(VENV) .local .mypy_cache .ruff_cache .pytest_cache .hypothesis

INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
$(STAMP): tests/requirements.txt pyproject.toml infra/standins/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	awk '/^uv==/, !/\\$$/' tests/requirements.txt > $(VENV)/uv.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	$(INSTALL) --require-hashes --compile-bytecode -r tests/requirements.txt
	mkdir -p .local/packages && ln -sfn ../../relay .local/packages/relay
	$(INSTALL) --no-deps --no-build-isolation --no-index --editable . --editable infra/standins
	@touch $@

.local/atheris/.installed: tests/fuzz/atheris.txt $(STAMP)
	$(INSTALL) --target .local/atheris --require-hashes -r tests/fuzz/atheris.txt
	@touch $@

.local/checkov/.installed: tests/infra/checkov.txt
.local/cosmic-ray/.installed: tests/mutants/cosmic-ray.txt
.local/checkov/.installed .local/cosmic-ray/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@
