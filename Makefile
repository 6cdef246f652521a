# gradviz: the commands of a developer. `make help` lists them.

PYTHON ?= python3
VENV   ?= .venv
DEMO   := demo
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# Two workers fill two cores; tests are independent of each other and of their order.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Hundreds of programs are started, by the tests above all: what they import is compiled
# once, whatever the environment says, and goes with the virtual environment.
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode
unexport PYTHONDONTWRITEBYTECODE

# Tests that need more than two cores and minutes have commands of their own.
ORDINARY := not stress and not ray and not gpu and not torch_models

# A single test of the largest campaigns takes longer than a test otherwise may.
STRESS := $(PYTEST) -m stress -o hang_timeout=$(if $(FULL),14400,900)

# Parts of the tests, for as many machines: `make test PART=engine`.
PART_engine  := $(addprefix tests/,engine autograd backends distributed faults interleavings \
  stress stream_check testing)
PART_tensors := $(addprefix tests/,checkpointing nn ops optim tensors torch_models utils)
PART_traces  := $(addprefix tests/,analysis capture export parity pytorch trace)
PART_views   := $(addprefix tests/,benchmarks browser cli diagnostics docs drawing examples \
  flakes hostile integration mutation render stubs view) $(wildcard tests/test_*.py)

# mypy looks no further than a stub, unless it is told to.
STUBBED = $(patsubst %.pyi,%.py,$(shell find gradviz -name '*.pyi'))

NPM_CI  := npm ci --silent --no-audit --no-fund
HAS_NPM := command -v npm >/dev/null 2>&1
HAS_GPU := nvidia-smi -L >/dev/null 2>&1
HAS_RAY = $(BIN)/python -c 'import ray' >/dev/null 2>&1

.DEFAULT_GOAL := help
.PHONY: help page demo test test-compiled test-reading test-gpu test-ray torch \
  torch-matrix torch-models stress mutants flakes lint workflows format stubs gallery \
  changed-pictures site dist wheels changelog check-tag bench clean

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
	$(PYTEST) -m "$(ORDINARY)" $(if $(PART),$(PART_$(PART)),$(TESTS))

test-compiled: $(VENV)/.installed-dev ## Run the tests over a compiled copy of everything
	rm -rf .compiled && mkdir .compiled
	git ls-files -z --cached --others --exclude-standard | \
	  tar --null --ignore-failed-read -cf - -T - | tar -xf - -C .compiled
	cd .compiled && $(abspath $(BIN))/python compile_core.py
	cd .compiled && PYTHONPATH=$(CURDIR)/.compiled \
	  $(abspath $(BIN))/python -m pytest -n 2 --dist worksteal -m "$(ORDINARY)" $(TESTS)

test-reading: $(VENV)/.installed ## Read a trace with commands that need no POSIX
	$(BIN)/gradviz show summary docs/gallery/mlp.gvt
	$(BIN)/gradviz render graph -q -f -o $(VENV)/graph.svg docs/gallery/mlp.gvt
	$(BIN)/gradviz render timeline -q -f -o $(VENV)/timeline.svg docs/gallery/mlp.gvt
	$(BIN)/gradviz render report -q -f -o $(VENV)/page.html docs/gallery/mlp.gvt
	$(BIN)/gradviz diff docs/gallery/mlp.gvt docs/gallery/mlp.gvt
	$(BIN)/gradviz check docs/gallery/mlp.gvt

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

torch: $(VENV)/.installed-dev ## Install the PyTorch that the parity tests compare with
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0

# The last of each minor version; what pip does not find here is left out, and told.
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

MODELS := tests/torch_models/requirements.txt
MODELS_PIP = $(VENV)-models/bin/python -m pip install --quiet --disable-pip-version-check

# If pip does not find one of the libraries, it installs none: then they are tried one by
# one, and models of those that are missing are skipped.
torch-models: ## Record models of public libraries, in an environment of their own
	@$(PYTHON) -m venv $(VENV)-models
	@$(MODELS_PIP) -r $(MODELS) --editable . || \
	  for package in $$(grep '^[a-z]' $(MODELS)) --editable=.; do \
	    $(MODELS_PIP) -c $(MODELS) $$package || echo "$$package: pip finds none here"; \
	  done
	$(VENV)-models/bin/python -m pytest -q -m torch_models tests/torch_models

stress: $(VENV)/.installed-dev ## Run the large campaigns; FULL=1 for hours of them
	$(STRESS)

mutants: $(VENV)/.installed-dev ## Change engine and trace at random; what tests do not notice
	$(BIN)/python -m tests.mutation $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

flakes: $(VENV)/.installed-dev ## Run all tests N times, shuffled and under load; N=20
	$(BIN)/python -m tests.flakes $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

lint: $(VENV)/.installed-dev ## Check format, style, types, layers and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.stubs --check
	$(BIN)/mypy
	$(BIN)/mypy --follow-imports=silent --cache-dir=.mypy_cache/behind-stubs $(STUBBED)
	$(BIN)/lint-imports
	$(BIN)/codespell
	@if $(HAS_NPM) && $(NPM_CI); then \
	  npm run --silent lint; \
	else \
	  echo "no npm here: the page's TypeScript was not checked"; \
	fi

# actionlint brings a program of its own, which pip cannot find everywhere.
workflows: ## Check .github/workflows against the schema of GitHub, and by actionlint
	@$(PYTHON) -m venv $(VENV)-workflows
	$(VENV)-workflows/bin/python -m pip install --quiet --disable-pip-version-check \
	  check-jsonschema==0.39.0
	$(VENV)-workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows \
	  .github/workflows/*.yml
	@if command -v actionlint >/dev/null; then \
	  actionlint; \
	else \
	  echo "no actionlint here: expressions and shell code of workflows were not checked"; \
	fi

format: $(VENV)/.installed-dev ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@! $(HAS_NPM) || { $(NPM_CI) && npm run --silent format; }

stubs: $(VENV)/.installed-dev ## Write what type checkers read, from the sources
	$(BIN)/python -m tests.stubs

page: ## Build the program of the page from its source (needs node and npm)
	$(NPM_CI)
	npm run --silent lint
	npm run --silent types
	npm run --silent build

gallery: $(VENV)/.installed-dev ## Draw the pictures of docs/gallery.md anew
	$(BIN)/python -m tests.docs.gallery

changed-pictures: gallery ## Copy the pictures that this change draws differently
	rm -rf $@ && mkdir $@
	git diff --name-only --relative -z -- docs/gallery | xargs -0 -I{} cp {} $@

site: ## Build docs/ as a site, into build/site
	@$(PYTHON) -m venv $(VENV)-site
	$(VENV)-site/bin/python -m pip install --quiet --disable-pip-version-check \
	  mkdocs-material==9.8.2
	NO_MKDOCS_2_WARNING=1 $(VENV)-site/bin/mkdocs build --quiet --strict --site-dir build/site
	@echo "site: $(CURDIR)/build/site/index.html"

# The wheel that is checked is the one of this machine; `wheels` builds for all.
dist: ## Build wheel and sdist into dist/, check them, and run the demo from the wheel
	rm -rf dist $(VENV)-dist $(VENV)-clean
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check \
	  build==1.6.1 twine==7.0.0
	$(VENV)-dist/bin/python -m build --outdir dist
	$(VENV)-dist/bin/twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)-clean
	$(VENV)-clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cp examples/01_digits_mlp/* $(VENV)-clean
	cd $(VENV)-clean && bin/gradviz run -f -o digits.gvt main.py && \
	  bin/gradviz render graph -q -f -o graph.svg digits.gvt && bin/gradviz check digits.gvt

wheels: ## Build a wheel for each Python and this system, as a release has them
	@$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check cibuildwheel
	$(VENV)-dist/bin/cibuildwheel --output-dir dist

changelog: ## Turn the fragments of changes/ into a section of CHANGELOG.md
	@$(PYTHON) -m venv $(VENV)-changelog
	$(VENV)-changelog/bin/python -m pip install --quiet --disable-pip-version-check \
	  towncrier==26.9.0
	$(VENV)-changelog/bin/towncrier build --yes --version \
	  "$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' gradviz/_version.py)"

check-tag: ## Verify that TAG names the version here, and that the package has addresses
	@test "$(TAG)" = "v$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' gradviz/_version.py)" || \
	  { echo "tag $(TAG) is not the version in gradviz/_version.py" >&2; exit 1; }
	@grep -q '^\[project.urls\]' pyproject.toml || \
	  { echo "pyproject.toml lacks [project.urls]: see docs/releasing.md" >&2; exit 1; }

bench: $(VENV)/.installed-dev ## Measure speed, as ratios within one run
	$(BIN)/python -m benchmarks

clean: ## Remove the environment, the demo's output and caches
	rm -rf $(VENV) $(VENV)-* $(DEMO) node_modules build dist changed-pictures .mypy_cache .ruff_cache .pytest_cache \
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
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing gradviz and the tools of its tests into $(VENV): a minute or two"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed
