# Every chore of the project. The first target that needs it makes .venv and installs exactly what a lock file pins, each
# file checked by its hash; after that a stamp keeps runs quick. To run the program takes requirements.lock, a third of
# what tests and tools ask for (requirements-dev.lock). What is used is compiled when it first is: to compile all of it
# took a third of the installation.

VENV  := .venv
BIN   := $(VENV)/bin
PROGRAM := $(VENV)/.installed
STAMP := $(VENV)/.with-tools
PEERS := build/peers/.installed
LLAMACPP := build/llamacpp/.installed
LITELLM := build/litellm/.installed
INSPECTOR := build/inspector/.installed
DEPLOY := build/deploy/.installed
SYNAPSE := build/synapse/.with-a-client
PIP   := $(BIN)/python -m pip --disable-pip-version-check
CODE  := gateway adapters legato examples tests

# Four processes for two cores, because tests also wait for servers and leases (tests/conftest.py says how many "auto"
# is); who has done its share takes over tests of another. Hundreds of tests start the program: it is compiled once.
PARALLEL := --numprocesses auto --dist worksteal
unexport PYTHONDONTWRITEBYTECODE

# A version manager may leave commands that exist but refuse to run, so each candidate is tried.
# ensurepip is asked for as well: Debian and Ubuntu ship a Python without it.
PYTHONS   ?= python3.13 python3.12 python3.11 python3
USABLE    := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PRESENT   := import sys; sys.exit(sys.version_info < (3, 11))
find_usable  = for p in $(PYTHONS); do "$$p" -c '$(USABLE)' 2>/dev/null && { command -v "$$p"; break; }; done
find_present = for p in $(PYTHONS); do "$$p" -c '$(PRESENT)' 2>/dev/null && { echo "$$p"; break; }; done

.DEFAULT_GOAL := help
.PHONY: help matrix-server run test slow check audit lint format docs bench bench-context bench-recall bench-memory bench-cost bench-peers soak-telegram soak-matrix soak chaos planted lock sbom release-check image-size python work clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(PROGRAM) ## talk to Legato in this terminal and in a browser; needs no key
	@echo 'Where you read "legato" below, type $(BIN)/legato here.'
	@$(BIN)/legato chat --page

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest $(PARALLEL)

slow: $(STAMP) $(LLAMACPP) $(LITELLM) $(INSPECTOR) $(DEPLOY) $(SYNAPSE) ## the tests that take longer than anybody waits for, and more examples of the others
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile thorough $(PARALLEL)

check: lint test ## everything a commit must pass

lint: $(STAMP) ## format, style, types, import contracts
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## put the code into shape
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

docs: $(STAMP) ## write config.yaml, and the pictures and tables of docs/ again
	@new="$$($(BIN)/legato config)" && printf "%s\n" "$$new" > config.yaml
	@$(BIN)/python -m tests.docs

bench: $(STAMP) ## measure, and print the figures
	$(BIN)/python -m tests.bench

work: $(STAMP) ## count what a message costs, beside the budget that a test holds
	@$(BIN)/python -m tests.bench.work

bench-context: $(STAMP) ## measure what context engines keep of long conversations, without a model
	@$(BIN)/python -m tests.bench.context
	@$(BIN)/python -m tests.bench.context --drift --seeds 1-8
	@$(BIN)/python -m tests.bench.context --drift --seeds 1-8 --talk tests/bench/context/chat.yaml

bench-helpers: $(STAMP) ## measure what helpers spare a conversation, without a model
	@$(BIN)/python -m tests.bench.context --delegated --windows 16000 32000

bench-recall: $(STAMP) ## measure whether a search finds what answers a question
	@$(BIN)/python -m tests.bench.recall

bench-memory: $(STAMP) ## measure what memory keeps of seeded lives, and whether it stays where it was said
	@$(BIN)/python -m tests.bench.memory

bench-cost: $(PEERS) ## measure what long conversations cost beside other ways to keep them in a window; takes half an hour
	@$(BIN)/python -m tests.bench.cost

bench-peers: $(PEERS) ## the same through our compressor and gateway and hermes-agent's; takes fifteen minutes
	$(BIN)/python -m tests.bench.peers

# llama.cpp's server in a wheel, and what writes a model for it (both MIT); for the slow tests alone.
$(LLAMACPP): | $(STAMP)
	$(BIN)/python -m venv build/llamacpp
	build/llamacpp/bin/python -m pip --disable-pip-version-check install --quiet xllamacpp==2026.10.11549 gguf==0.19.0
	@touch $@

# A proxy that speaks three APIs (MIT), for the slow tests alone.
$(LITELLM): | $(STAMP)
	$(BIN)/python -m venv build/litellm
	build/litellm/bin/python -m pip --disable-pip-version-check install --quiet "litellm[proxy]==1.108.7"
	@touch $@

# MCP's own inspector (MIT, 41 MB), for the slow tests alone. Version 2 wants Node 22; of version 1 this is the last one
# whose command line can be had without its page.
$(INSPECTOR): | $(STAMP)
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix build/inspector \
	@modelcontextprotocol/inspector-cli@0.16.8; else echo "npm is missing: the inspector's test is left out"; fi
	@mkdir -p build/inspector && touch $@

# The schemas of Kubernetes and of Compose (Apache and MIT), 110 MB, for the slow tests alone.
$(DEPLOY): | $(STAMP)
	$(BIN)/python -m venv build/deploy
	build/deploy/bin/python -m pip --disable-pip-version-check install --quiet kubernetes-validate==1.37.0 compose-spec==0.2.1
	@touch $@

matrix-server: $(SYNAPSE) ## install Synapse for the tests that talk to a real Matrix server (130 MB)

# A server (AGPL) and a client (ISC) of strangers, never shipped. In .venv the program would load parts of it: structlog looks for Twisted.
# It waits for nothing of ours, so that both can be installed at once.
$(SYNAPSE):
	"$$($(MAKE) --silent --no-print-directory python)" -m venv build/synapse
	build/synapse/bin/python -m pip --disable-pip-version-check install --quiet --no-compile matrix-synapse==1.163.2 \
		"matrix-nio[e2e]==0.26.0"
	@touch $@

# Nothing of Legato needs this package; it is only measured, in an environment of its own.
$(PEERS): | $(STAMP)
	$(BIN)/python -m venv build/peers
	build/peers/bin/python -m pip --disable-pip-version-check install --quiet hermes-agent==0.19.0
	@touch $@

soak: $(STAMP) ## 100,000 messages with compactions on SQLite, on Redis with two processes: memory, files, waits
	@$(BIN)/python -m tests.bench.soak

soak-telegram: $(STAMP) ## 12,000 messages to a bot on an emulated Telegram; takes eight minutes
	$(BIN)/python -m tests.bench.soak_telegram

soak-matrix: $(STAMP) $(SYNAPSE) ## an hour of a busy bot on a real Synapse; MINUTES=5 takes less
	$(BIN)/python -m tests.bench.matrix --minutes $(or $(MINUTES),60)

chaos: $(STAMP) ## kill programs, servers and connections at every point of a message's life; look at what is left
	$(BIN)/python -m tests.chaos.run sqlite --runs 250
	$(BIN)/python -m tests.chaos.run redis --runs 250
	$(BIN)/python -m tests.chaos.run reminders-sqlite --runs 100
	$(BIN)/python -m tests.chaos.run reminders-redis --runs 100
	$(BIN)/python -m tests.chaos.run hands-sqlite --runs 65
	$(BIN)/python -m tests.chaos.run hands-redis --runs 65
	$(BIN)/python -m tests.chaos.run telegram --runs 200
	$(BIN)/python -m tests.chaos.run discord --runs 200
	$(BIN)/python -m tests.chaos.run slack --runs 200
	$(BIN)/python -m tests.chaos.run whatsapp --runs 200
	$(BIN)/python -m tests.chaos.run matrix --runs 200
	$(BIN)/python -m tests.chaos.run page --runs 200
	$(BIN)/python -m tests.chaos.api sqlite
	$(BIN)/python -m tests.chaos.api redis

planted: $(STAMP) ## put known bugs into a copy of the program; the tests must find each
	$(BIN)/python -m tests.planted

# PyPI says which versions have known holes. A mirror may not know, and some machines reach neither.
AUDITING := build/audit/bin/pip-audit --disable-pip --require-hashes --progress-spinner off
UNASKED  := could not be audited|ConnectionError|Max retries exceeded

audit: $(STAMP) ## look up known holes of what the lock file pins
	@$(BIN)/python -m venv build/audit
	@build/audit/bin/python -m pip --disable-pip-version-check install --quiet pip-audit
	@$(AUDITING) --requirement requirements.lock >build/audit/report 2>&1; status=$$?; \
	unasked=$$(grep -cE '$(UNASKED)' build/audit/report); \
	grep -vE '$(UNASKED)' build/audit/report; \
	if [ "$$unasked" = 0 ]; then exit $$status; fi; \
	echo "audit: $$unasked look-ups skipped, because PyPI's database of known holes could not be reached."; \
	! grep -qE '(PYSEC|GHSA|CVE)-' build/audit/report

# uv is used only here, because it can resolve for all platforms and Pythons at once; it lives in a
# folder of its own and no other target needs it. UPGRADE=--upgrade takes newer versions.
LOCKING := build/lock/bin/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --custom-compile-command 'make lock' --quiet $(UPGRADE)

lock: $(STAMP) ## renew the lock files after a change of pyproject.toml
	$(BIN)/python -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check install --quiet uv
	$(LOCKING) pyproject.toml --output-file requirements.lock
	$(LOCKING) pyproject.toml --extra dev --constraint requirements.lock --output-file requirements-dev.lock

sbom: $(STAMP) ## write a bill of materials of what the lock file pins: build/sbom/legato.cdx.json
	$(BIN)/python -m venv build/sbom
	build/sbom/bin/python -m pip --disable-pip-version-check install --quiet cyclonedx-bom==7.5.0
	build/sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o build/sbom/legato.cdx.json requirements.lock

release-check: $(STAMP) ## build wheel and sdist, install them as people do, and try the program
	@$(BIN)/python -m tests.release

image-size: $(STAMP) ## carry out the Dockerfile without Docker (as root, with debootstrap), try the image and weigh it
	@$(BIN)/python -m tests.release.image

python: ## say which Python would be used
	@found=$$($(find_usable)); \
	if [ -n "$$found" ]; then echo "$$found"; exit 0; fi; \
	half=$$($(find_present)); \
	if [ -n "$$half" ]; then \
		version=$$("$$half" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "Python $$version is here without its venv module: install the package python$$version-venv (on Debian or Ubuntu: apt-get install python$$version-venv), then run make again." >&2; \
	else \
		echo "Legato needs Python 3.11 or newer and none was found: install the packages python3 and python3-venv (3.11 or newer), then run make again." >&2; \
	fi; exit 1

$(PROGRAM): requirements.lock pyproject.toml gateway/__init__.py
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		python=$$($(MAKE) --silent --no-print-directory python) && \
		echo "Making $(VENV), a place for the libraries, with $$python" && \
		"$$python" -m venv --clear $(VENV); }
	@echo "Installing the libraries (about a minute)"
	@$(PIP) install --quiet --no-compile --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-compile --no-deps -e .
	@touch $@

$(STAMP): requirements-dev.lock | $(PROGRAM)
	@echo "Installing what the tests need (some minutes)"
	@$(PIP) install --quiet --no-compile --require-hashes -r requirements-dev.lock
	@touch $@

clean: ## remove .venv and everything else that was made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
