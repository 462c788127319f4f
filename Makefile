# The commands of this project; docs/commands.md describes each. STACK selects the stack of `up` and `down` (default dev).
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
# In the simulator's environment HTTPS and HTTP go by its proxy, which may be down: tools are fetched without it.
ifdef SIMULATOR_OUTER_PROXY
export HTTPS_PROXY := $(SIMULATOR_OUTER_PROXY)
export https_proxy := $(SIMULATOR_OUTER_PROXY)
export HTTP_PROXY := $(SIMULATOR_OUTER_PROXY)
export http_proxy := $(SIMULATOR_OUTER_PROXY)
endif
PYTHON_DIR = $$(python3 -m simulator.tools.bootstrap)
RUN = set -euo pipefail; python="$(PYTHON_DIR)/bin/python";

help: ## list these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / - /; s/\$$\$$/$$/g'

up: own-state stack-file ## install the tools, start the simulator, run pulumi up, and wait for the jobs
	@$(RUN) "$$python" -m simulator.tools --stack "$(STACK)" && exec "$$python" -m simulator up $(ENTER)

down: ## destroy the stack, and stop the simulator if no other stack has resources; state and tools stay
	@$(RUN) exec "$$python" -m simulator down $(ENTER)

clean: ## stop the simulator and delete its state
	@$(RUN) exec "$$python" -m simulator clean

start: ## start the simulator's processes
stop: ## stop the simulator's processes; their state stays
start stop:
	@$(RUN) exec "$$python" -m simulator $@

status: ## show what runs, and who has which GPUs
	@$(RUN) "$$python" -m simulator status || test $$? = 3 # 3 if it is stopped

shell: own-state ## start a shell where pulumi, kubectl and helm act on the simulator; STACK selects a stack and its cluster
	@$(RUN) "$$python" -m simulator.tools && \
		exec "$$python" -m simulator shell $(ENTER) $(CHOSEN)

env: ## print the same environment as shell lines: eval "$$(make -s env)"
	@$(RUN) exec "$$python" -m simulator env $(ENTER) $(CHOSEN)

tools: stack-file ## install the tools, also those of the operators of STACK
	@$(RUN) exec "$$python" -m simulator.tools --stack "$(STACK)"

team-tools demo-mlbatch: export STACK := mlbatch
team-tools: tools ## install the tools of the stack mlbatch

demo-mlbatch: own-state stack-file tools ## create the stack mlbatch, and show what teams get
	@$(RUN) "$$python" -m simulator up && eval "$$("$$python" -m simulator env)" && exec "$$python" -m demos.mlbatch \
		--context ai-on-aks-mlbatch+ai-on-aks-mlbatch --picture .simulator/gpu-use.svg

images: ## build docker/, or IMAGES=<name>,<name> of it, and push to REGISTRY; without one, register tags in the simulator
	@$(RUN) exec "$$python" -m $(if $(REGISTRY),tools.image_build $(REGISTRY) --images $(IMAGES),simulator images $(IMAGES))

lock-images: ## write the digests of base images into docker/; needs access to the registries
	@$(RUN) exec "$$python" -m tools.image_lock

# One worker more than cores: end-to-end tests often wait, and a sixth of two cores was idle with two workers.
test: ## run the tests, except the suites below
	@$(RUN) "$$python" -m simulator.tools --for simulator entra && exec "$$python" -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --maxprocesses 4 \
		--dist loadfile

# Tests marked alone measure, so nothing else may run beside them.
test-long: ## run the tests that are marked long: recovery, drift, refusals, private clusters, batches, drivers, more settings
	@$(RUN) "$$python" -m simulator.tools --all; failed=0; \
		"$$python" -m pytest -m "long and not alone" -n auto --maxprocesses 4 --dist loadfile || failed=$$?; \
		"$$python" -m pytest -m "long and alone" -n 0 || failed=$$?; exit $$failed

test-training: ## test the trainers of docker/ with TORCH_PYTHON, which has pytest, torch and numpy; for LoRA also transformers, peft, accelerate and ray
	@cd tests/training && exec $(TORCH_PYTHON) -m pytest -q -c /dev/null --rootdir . --confcutdir . .

conformance: ## test the emulated kubernetes plugin, or the official one in CONFORMANCE_PULUMI_HOME, and Azure's SDKs
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m pytest -m conformance -n 0 tests/contract/conformance tests/contract/azure_sdks

upstream-charts: ## fetch upstream's charts into CHARTS (.simulator/upstream-charts); needs internet access
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m tools.upstream_charts $(CHARTS)

upstream: upstream-charts ## compare upstream's charts in CHARTS with the simulator's, and test what they install
	@$(RUN) "$$python" -m simulator.tools --all && \
	UPSTREAM_CHARTS=$(abspath $(CHARTS)) exec "$$python" -m pytest -m "upstream or charts" -n auto --maxprocesses 4 \
		--dist loadfile tests/contract/upstream tests/e2e

kills: ## kill engine, plugins, API server and etcd thirty times, and recover; an hour
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m pytest -m kills -n 0 tests/contract/kills

generate: ## write the generated files: reference of settings, golden files, timeline; tests check that they are current
	@$(RUN) "$$python" -m tools.reference && "$$python" -m tests.support.golden && exec "$$python" -m tests.support.timeline

check: ## run formatters, linters and type checkers
	@$(RUN) exec "$$python" -m simulator.tools.lint

bench: ## measure the program's cost in the engine, and the time of its up in realistic time
	@$(RUN) "$$python" -m simulator.tools && exec "$$python" -m simulator.bench

own-state:
	@$(RUN) exec "$$python" -m simulator.command.owner

stack-file:
	@$(RUN) exec "$$python" -m simulator.command.stacks
