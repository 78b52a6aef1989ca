# One-word targets; each sets up what it needs, says what it does, and does nothing twice.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PROVIDER ?= local
BENCH ?= placements
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
say = @printf '\033[1m== %s\033[0m\n' "$(1)"

WIRE := protos/gatelift_wire/v1
GENERATED := $(WIRE)/agent_pb2.py

# The admission engine runs interpreted from its sources, or compiled as in the image: ENGINE=interpreted|compiled.
# What is measured is what ships, but where no engine runs, and for `core_calls`: compiled code shows no calls.
UNCOMPILED_BENCHES := core_calls kube status_writes
ENGINE ?= $(if $(filter bench,$(MAKECMDGOALS)),$(if $(filter $(BENCH),$(UNCOMPILED_BENCHES)),interpreted,compiled),interpreted)
COMPILED := .compiled
MARKERS := not e2e and not $(if $(filter compiled,$(ENGINE)),interpreted,compiled)
ifeq ($(ENGINE),compiled)
ENGINE_MADE := $(COMPILED)/.made
export PYTHONPATH := $(CURDIR)/$(COMPILED)$(if $(PYTHONPATH),:$(PYTHONPATH))
else ifneq ($(ENGINE),interpreted)
$(error ENGINE=$(ENGINE): choose interpreted or compiled)
endif
export GATELIFT_EXPECTED_ENGINE := $(ENGINE)

.PHONY: help demo test simulate mutants e2e acceptance check control-plane bench clean lock setup

help: ## What can be made here
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

setup: $(VENV)/.installed $(GENERATED) $(ENGINE_MADE) ## Virtual environment, locked packages, generated code

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	$(call say,Installing the locked packages into $(VENV) (about a minute))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(GENERATED): $(WIRE)/agent.proto $(VENV)/.installed
	$(call say,Generating code from $<)
	$(BIN)/python -m grpc_tools.protoc -I protos --python_out=protos --pyi_out=protos --grpc_python_out=protos gatelift_wire/v1/agent.proto
	touch $@

$(COMPILED)/.made: $(shell find admission/gatelift_admission -name '*.py') scripts/compile_engine.py $(VENV)/.installed
	$(call say,Compiling the admission engine into $(COMPILED) (about a minute and a half))
	$(BIN)/python scripts/compile_engine.py $(COMPILED)
	touch $@

demo: setup ## One management cluster, two workers, pods and Jobs that travel (PROVIDER=embedded|local|kind)
	$(BIN)/gatelift demo $(DEMO_ARGS)

test: setup ## Everything that needs no external program, a few minutes
	$(call say,Tests that need no external program)
	$(BIN)/python -m pytest -n auto -m "$(MARKERS)" $(TEST_ARGS)

simulate: setup ## Whole installations on simulated time, seed after seed (GATELIFT_RUNS=2000 GATELIFT_FIRST_SEED=1000 GATELIFT_SECONDS=3600 GATELIFT_TWIN_RUNS=50000 GATELIFT_FUZZ_CASES=200000 GATELIFT_SWEEP_CASES=1000 GATELIFT_SETTLING_RUNS=6000)
	$(call say,Simulated installations$(,) as many as GATELIFT_RUNS says)
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m support.sim.many --first $${GATELIFT_FIRST_SEED:-0} --histories $${GATELIFT_RUNS:-1000} --seconds $${GATELIFT_SECONDS:-0}
	$(call say,Hostile values through both cores$(,) as many cases as GATELIFT_FUZZ_CASES says)
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m support.fuzz.many --first $${GATELIFT_FIRST_SEED:-0} --cases $${GATELIFT_FUZZ_CASES:-200000}
	$(call say,Exceptions in each function that is about one object$(,) as many as GATELIFT_SWEEP_CASES says (0: all))
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m support.sweep.many --seed $${GATELIFT_SWEEP_SEED:-0} --cases $${GATELIFT_SWEEP_CASES:-1000}
	$(call say,Admission decided twice$(,) as many instances as GATELIFT_TWIN_RUNS says)
	GATELIFT_TWIN_RUNS=$${GATELIFT_TWIN_RUNS:-50000} $(BIN)/python -m pytest -n auto tests/admission/test_twin.py $(TEST_ARGS)
	$(call say,Preemption comes to rest$(,) as many instances as GATELIFT_SETTLING_RUNS says)
	PYTHONPATH=tests$${PYTHONPATH:+:$$PYTHONPATH} $(BIN)/python -m support.twin.settle_many --first $${GATELIFT_SETTLING_SEED:-10000} --instances $${GATELIFT_SETTLING_RUNS:-6000}

mutants: setup ## Takes safety conditions out, one at a time: a test must notice (MUTANTS_ARGS="--random 10 --seed 7" or "--only ID")
	$(call say,Safety conditions taken out$(,) one at a time)
	$(BIN)/python scripts/mutants.py $(MUTANTS_ARGS)

acceptance: setup ## Each id of docs/keps.md, its tests and what they come to (ACCEPTANCE_ARGS="--provider local RE-")
	$(call say,What the documents ask for$(,) id by id)
	$(BIN)/python -m scripts.acceptance $(ACCEPTANCE_ARGS)

control-plane: setup ## Builds kube-apiserver, etcd, ... once into a cache (about four minutes)
	$(call say,Real control planes: looking for binaries$(,) building what is missing)
	$(BIN)/python -m gatelift_sandbox.build

e2e: setup ## End-to-end scenarios (PROVIDER=local|embedded|kind)
	$(call say,End-to-end scenarios on provider $(PROVIDER))
	scripts/e2e $(PROVIDER) $(TEST_ARGS)

check: setup ## Lint, types, walls, lengths, the page of attacks
	$(call say,ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(call say,mypy --strict)
	$(BIN)/mypy
	$(call say,import-linter)
	$(BIN)/lint-imports --config .importlinter
	$(BIN)/python -m scripts.purity
	$(call say,lengths of files and functions)
	$(BIN)/python scripts/lengths.py
	$(call say,rooms and neighbours)
	$(BIN)/python scripts/rooms.py
	$(BIN)/python -m scripts.neighbours
	$(call say,Ids in docs/ and the tests)
	$(BIN)/python scripts/attacks.py
	$(BIN)/python -m scripts.acceptance --check
	$(BIN)/python scripts/differences.py
	$(call say,docs/not-served.md and its table)
	$(BIN)/python -m scripts.not_served --check
	$(call say,Manifests and the registry of kinds)
	$(BIN)/python -m scripts.kind_rights --check
	$(BIN)/python -m scripts.webhook_configuration --check

bench: setup ## A benchmark: make bench BENCH=placements|policies|latency|fanout|isolation|groups|group_runs|resize|strangers|memory|loaders|kube|core_calls|costly_statuses|admission_core|admission_memory|admission_load|status_writes
	$(BIN)/python -m bench.$(BENCH) $(BENCH_ARGS)

lock: setup ## Re-locks the versions of pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	for kind in build dev runtime; do \
	  $(BIN)/uv pip compile $$(case $$kind in dev) echo --group dev pyproject.toml ;; build) echo --group build ;; *) echo pyproject.toml ;; esac) --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements/$$kind.txt; \
	  sed -i '1i # Locked versions with hashes. Made by `make lock`; do not edit.' requirements/$$kind.txt; done

clean: ## Removes the virtual environment, generated code and caches of this checkout
	rm -rf $(VENV) $(COMPILED) $(WIRE)/*_pb2.py $(WIRE)/*_pb2.pyi $(WIRE)/*_pb2_grpc.py .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
, := ,
