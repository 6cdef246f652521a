# gradviz: the commands of a developer. `make help` lists them.

PYTHON ?= python3
VENV   ?= .venv
DEMO   := demo
BIN    := $(VENV)/bin

# Two workers fill two cores; tests are independent of each other and of their order.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# A single test of the largest campaigns takes longer than a test otherwise may.
STRESS := $(PYTEST) -m stress -o faulthandler_timeout=$(if $(FULL),14400,900)

# mypy looks no further than a stub, unless it is told to.
STUBBED = $(patsubst %.pyi,%.py,$(shell find gradviz -name '*.pyi'))

HAS_GPU := nvidia-smi -L >/dev/null 2>&1
HAS_RAY = $(BIN)/python -c 'import ray' >/dev/null 2>&1

.DEFAULT_GOAL := help
.PHONY: help page demo test test-compiled test-gpu test-ray torch-matrix stress mutants lint format stubs gallery bench clean

help: ## List these commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.installed ## Train the digits example under gradviz and draw its trace
	@mkdir -p $(DEMO)
	$(BIN)/gradviz run -f -o $(DEMO)/digits.gvt examples/01_digits_mlp/main.py
	$(BIN)/gradviz render graph -q -f -o $(DEMO)/digits-graph.svg $(DEMO)/digits.gvt
	$(BIN)/gradviz render timeline -q -f -o $(DEMO)/digits-timeline.svg $(DEMO)/digits.gvt
	$(BIN)/gradviz render report -q -f -o $(DEMO)/digits.html $(DEMO)/digits.gvt
	@echo
	@echo "trace:    $(CURDIR)/$(DEMO)/digits.gvt"
	@echo "graph:    $(CURDIR)/$(DEMO)/digits-graph.svg"
	@echo "timeline: $(CURDIR)/$(DEMO)/digits-timeline.svg"
	@echo "page:     $(CURDIR)/$(DEMO)/digits.html"
	@echo "next:     $(BIN)/gradviz show order $(DEMO)/digits.gvt"

test: $(VENV)/.installed-dev ## Run the tests
	$(PYTEST) -m "not stress and not ray"

test-compiled: $(VENV)/.installed-dev ## Run the tests over a compiled copy of everything
	rm -rf .compiled && mkdir .compiled
	git ls-files -z --cached --others --exclude-standard | \
	  tar --null --ignore-failed-read -cf - -T - | tar -xf - -C .compiled
	cd .compiled && $(abspath $(BIN))/python compile_core.py
	cd .compiled && PYTHONPATH=$(CURDIR)/.compiled \
	  $(abspath $(BIN))/python -m pytest -n 2 --dist worksteal -m "not stress and not ray" $(TESTS)

test-gpu: $(VENV)/.installed-dev ## Run the tests that need a GPU; say so if there is none
	@if $(HAS_GPU); then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cuda]'; \
	fi
	$(BIN)/python -m pytest -m gpu
	@$(HAS_GPU) || echo "no NVIDIA GPU here (nvidia-smi finds none): nothing was tested"

test-ray: $(VENV)/.installed-dev ## Run the tests that need Ray; say so if there is none
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]' || true
	@if $(HAS_RAY); then \
	  $(BIN)/python -m pytest -n 0 -m ray tests/distributed; \
	else \
	  echo "no Ray here (pip finds none for this Python): nothing was tested"; \
	fi

# The first and last of each half year; what pip does not find here is left out, and told.
TORCH ?= 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0

torch-matrix: ## Run the tests of recordings of PyTorch with many versions of it
	@for version in $(TORCH); do \
	  venv=$(VENV)-torch-$$version; \
	  $(PYTHON) -m venv $$venv; \
	  $$venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    "torch==$$version" hypothesis pytest pytest-randomly . \
	    || { echo "torch $$version: pip finds none here, not tested"; continue; }; \
	  echo "torch $$version:"; \
	  $$venv/bin/python -m pytest -q -m 'not stress' tests/pytorch \
	    tests/parity/test_pytorch_recording.py tests/parity/test_pytorch_bad_company.py \
	    || exit 1; \
	done

stress: $(VENV)/.installed-dev ## Run the large campaigns; FULL=1 for hours of them
	$(STRESS)

mutants: $(VENV)/.installed-dev ## Change engine and trace at random; what tests do not notice
	$(BIN)/python -m tests.mutation $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.installed-dev ## Check format, style, types, layers and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.stubs --check
	$(BIN)/mypy
	$(BIN)/mypy --follow-imports=silent --cache-dir=.mypy_cache/behind-stubs $(STUBBED)
	$(BIN)/lint-imports
	$(BIN)/codespell

format: $(VENV)/.installed-dev ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

stubs: $(VENV)/.installed-dev ## Write what type checkers read, from the sources
	$(BIN)/python -m tests.stubs

page: ## Build the program of the page from its source (needs node and npm)
	npm ci --silent --no-audit --no-fund
	npm run --silent types
	npm run --silent build

gallery: $(VENV)/.installed-dev ## Draw the pictures of docs/gallery.md anew
	$(BIN)/python -m tests.docs.gallery

bench: $(VENV)/.installed-dev ## Measure speed, as ratios within one run
	$(BIN)/python -m benchmarks

clean: ## Remove the environment, the demo's output and caches
	rm -rf $(VENV) $(DEMO) node_modules build dist .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# --- environments -------------------------------------------------------------------
# The package is installed editable, so an environment is stale only when
# pyproject.toml changes.

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gradviz needs Python 3.11 or later; say which: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed
