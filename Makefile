# The commands of this project; docs/commands.md tells what each does. STACK chooses the stack of `up` and `down` (default dev).
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help bench conformance test-training kills up down clean shell env start stop status test test-long demo-mlbatch check generate tools team-tools images \
	lock-images own-state stack-file upstream upstream-charts

STACK ?= dev
export STACK
INSIDE ?=
ENTER = $(if $(INSIDE),--inside $(INSIDE))
CHOSEN = $(if $(filter-out file,$(origin STACK)),--stack "$(STACK)")
TORCH_PYTHON ?= python3
CHARTS ?= .simulator/upstream-charts
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.simulator/pycache
export PYTHONDONTWRITEBYTECODE :=
# In the simulator's environment HTTPS and HTTP go by its proxy, which may be down: tools are fetched as outside of it.
ifdef SIMULATOR_OUTER_PROXY
export HTTPS_PROXY := $(SIMULATOR_OUTER_PROXY)
export https_proxy := $(SIMULATOR_OUTER_PROXY)
export HTTP_PROXY := $(SIMULATOR_OUTER_PROXY)
export http_proxy := $(SIMULATOR_OUTER_PROXY)
endif
PYTHON_DIR = $$(python3 -m simulator.tools.bootstrap)
RUN = set -euo pipefail; python="$(PYTHON_DIR)/bin/python";

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / - /; s/\$$\$$/$$/g'

up: own-state stack-file ## everything: tools, simulator, pulumi up, then waits for the jobs
	@$(RUN) "$$python" -m simulator.tools --stack "$(STACK)" && exec "$$python" -m simulator up $(ENTER)

down: ## destroys the stack, and stops the simulator if no other stack has resources; its state and the tools stay
	@$(RUN) exec "$$python" -m simulator down $(ENTER)

clean: ## stops the simulator and removes its state
	@$(RUN) exec "$$python" -m simulator clean

start: ## starts the simulator's processes
stop: ## ends them; their state is kept
start stop:
	@$(RUN) exec "$$python" -m simulator $@

status: ## what runs, and who has which GPUs
	@$(RUN) "$$python" -m simulator status || test $$? = 3 # 3 if it is stopped

shell: own-state ## a shell in which plain pulumi, kubectl and helm act on the simulator; selects STACK, if given, and its cluster
	@$(RUN) "$$python" -m simulator.tools && \
		exec "$$python" -m simulator shell $(ENTER) $(CHOSEN)

env: ## the same environment as shell lines: eval "$$(make -s env)"
	@$(RUN) exec "$$python" -m simulator env $(ENTER) $(CHOSEN)

tools: stack-file ## the tools alone, with those of the operators of STACK
	@$(RUN) exec "$$python" -m simulator.tools --stack "$(STACK)"

team-tools demo-mlbatch: export STACK := mlbatch
team-tools: tools ## the same for the stack mlbatch

demo-mlbatch: own-state stack-file tools ## brings the stack mlbatch up, and shows on it what teams get
	@$(RUN) "$$python" -m simulator up && eval "$$("$$python" -m simulator env)" && exec "$$python" -m demos.mlbatch \
		--context ai-on-aks-mlbatch+ai-on-aks-mlbatch --picture .simulator/gpu-use.svg

images: ## builds docker/, or IMAGES=<name>,<name> of it, and pushes to REGISTRY; without one, registers tags in the simulator
	@$(RUN) exec "$$python" -m $(if $(REGISTRY),tools.image_build $(REGISTRY) --images $(IMAGES),simulator images $(IMAGES))

lock-images: ## writes the digests of base images into docker/, where registries can be reached
	@$(RUN) exec "$$python" -m tools.image_lock

# One worker more than cores: end-to-end tests often wait, and two workers left a sixth of two cores idle.
test: ## the tests, but for the suites below
	@$(RUN) "$$python" -m simulator.tools --for simulator entra && exec "$$python" -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --maxprocesses 4 \
		--dist loadfile

# What is marked alone measures, so that nothing else may run beside it.
test-long: ## the tests that are marked long: recovery, adding a workload, drift, sizes, refusals, private clusters, batches, drivers, second cases, more settings
	@$(RUN) "$$python" -m simulator.tools --all; failed=0; \
		"$$python" -m pytest -m "long and not alone" -n auto --maxprocesses 4 --dist loadfile || failed=$$?; \
		"$$python" -m pytest -m "long and alone" -n 0 || failed=$$?; exit $$failed

test-training: ## the trainers of docker/, by a Python that has pytest, torch and numpy; transformers, peft, accelerate and ray for LoRA: TORCH_PYTHON
	@cd tests/training && exec $(TORCH_PYTHON) -m pytest -q -c /dev/null --rootdir . --confcutdir . .

conformance: ## the kubernetes plugin's behaviour as a table: of the official one in CONFORMANCE_PULUMI_HOME, else of the stand-in
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m pytest -m conformance -n 0 tests/contract/conformance tests/contract/azure_sdks

upstream-charts: ## fetches upstream's charts into CHARTS (.simulator/upstream-charts), where the internet is open
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m tools.upstream_charts $(CHARTS)

upstream: upstream-charts ## upstream's charts in CHARTS beside the simulator's, and the tests of what charts install with them
	@$(RUN) "$$python" -m simulator.tools --all && \
	UPSTREAM_CHARTS=$(abspath $(CHARTS)) exec "$$python" -m pytest -m "upstream or charts" -n auto --maxprocesses 4 \
		--dist loadfile tests/contract/upstream tests/e2e

kills: ## thirty seeded kills of engine, plugins, API server and etcd; an hour, apart from the tests
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m pytest -m kills -n 0 tests/contract/kills

generate: ## the files made of the code: reference of settings, golden files, timeline; tests check that they are current
	@$(RUN) "$$python" -m tools.reference && "$$python" -m tests.support.golden && exec "$$python" -m tests.support.timeline

check: ## formatting, linters and types of every language here
	@$(RUN) exec "$$python" -m simulator.tools.lint

bench: ## the measures: what the program costs the engine, and how long its up takes in realistic time
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m simulator.bench

own-state:
	@$(RUN) exec "$$python" -m simulator.command.owner

stack-file:
	@$(RUN) exec "$$python" -m simulator.command.stacks
