# Memory Hub. Needs GNU make 3.81 (the one of macOS) and CPython 3.11 or newer with pip, nothing else.
PYTHON ?= python3
BIN := .venv/bin
CLIENTS := .venv-clients/bin
INSTALL := $(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --require-hashes
# Of what the tools need most is never imported, and to compile all of it takes half a minute.
INSTALL_TOOLS := $(INSTALL) --no-compile
COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/python -m piptools compile --quiet --generate-hashes \
	--allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

.DEFAULT_GOAL := help
.PHONY: help up test test-clients client-typescript dist faults soak clients-suite import-suite distributed alerts bench compare lint fix audit lock eval eval-extraction clean

help: ## Show these targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

up: .venv/runtime ## Start the hub: database, web and worker. Ctrl-C stops everything.
	@$(BIN)/python manage.py up

# Bytecode is kept: the tests start hundreds of processes, and without it each would compile all modules anew.
KEEPS_BYTECODE := env -u PYTHONDONTWRITEBYTECODE
# What the caller's environment says about a hub is ignored.
PYTEST = $(KEEPS_BYTECODE) \
	$$(env | sed -nE 's/^((MEMORYHUB|OPENAI)_[A-Za-z0-9_]*|DATABASE_URL)=.*/-u \1/p') $(BIN)/python -m pytest

# In the order of tests/conftest.py.
BY_FILE = --dist loadfile --no-loadscope-reorder
# One more than there are cores, up to four: each waits for its database for a sixth of its time, or for a hub.
WORKERS = $$(n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? n + 1 : 4)))
# Where the tests of the second part are: its processes need not read the others.
ALONE = benchmarks browser commands e2e faults privacy

# What the second part needs is installed beside the first. The second part waits for processes most of the time: the
# clients' tests go on beside it, and are shown after it. What fails in it is run once more when nothing else is at work:
# only then is it the code's fault, and not a busy machine's.
test: .venv/dev ## Run all tests: most of them side by side, then those that start hubs and browsers.
	@failed=; \
	$(MAKE) .venv/browser .venv-clients/dev >.test-clients.log 2>&1 & made=$$!; \
	$(PYTEST) -m "not soak and not alone" --numprocesses $(WORKERS) $(BY_FILE) || failed=1; \
	wait $$made || { cat .test-clients.log; exit 1; }; \
	$(MAKE) test-clients >.test-clients.log 2>&1 & clients=$$!; \
	$(PYTEST) -m "not soak and alone" --numprocesses $(WORKERS) $(BY_FILE) $(ALONE:%=tests/%); second=$$?; \
	wait $$clients || failed=1; cat .test-clients.log; \
	if [ $$second -eq 1 ]; then echo "Once more, with nothing beside them, those of the second part that failed:"; \
		$(PYTEST) -m "not soak and alone" --last-failed --last-failed-no-failures none $(ALONE:%=tests/%); second=$$?; fi; \
	test -z "$$failed" -a $$second -eq 0

test-clients: .venv/runtime .venv-clients/dev ## Test what is in clients/, in an environment of its own and against a fresh hub.
	@cd clients/python && $(KEEPS_BYTECODE) ../../$(CLIENTS)/python -m pytest
	@export PATH="$(CURDIR)/$(CLIENTS):$$PATH"; cd clients/typescript && npm ci --silent --no-audit --no-fund && npm test --silent

client-python: .venv/dev ## Write the Python client's models and operations from this hub's document.
	@$(BIN)/python manage.py spectacular --format openapi-json | $(BIN)/python clients/python/generate.py

client-typescript: .venv/runtime .venv-clients/dev ## Pack the JavaScript client, with the types of this hub's document.
	@$(BIN)/python manage.py spectacular --format openapi-json --file clients/typescript/openapi.json
	@export PATH="$(CURDIR)/$(CLIENTS):$$PATH"; cd clients/typescript && npm ci --silent --no-audit --no-fund && \
		OPENAPI=openapi.json npm run --silent schema && npm pack

dist: .venv-dist/tools .venv/runtime .venv-clients/dev ## Build what is published into dist/: wheels, sdists, the npm package, an image, checksums, an SBOM.
	@PATH="$(CURDIR)/$(CLIENTS):$$PATH" sh deploy/dist.sh

faults: .venv/dev ## Show the faults at their full size, each ROUNDS times (5), on a machine with nothing else to do.
	@$(PYTEST) tests/faults -m soak --rounds $(or $(ROUNDS),5)

# As root the disk of the hub can be full, and with a C compiler its clock can step. The logs of all clients are in .soak.
soak: .venv/dev ## Use one hub in every way for HOURS (2) while it is broken, by SEED; judge it and write docs/soak.md.
	@$(BIN)/python -m tests.soak --hours $(or $(HOURS),2) $(if $(SEED),--seed $(SEED)) $(if $(PACE),--pace $(PACE)) --write docs/soak.md

# It installs pinned packages in .clients-suite, with pip and npm. HUB: another checkout, whose hub is tried.
clients-suite: .venv/dev ## Let real clients talk through the gateway (ONLY="langchain pi"), and write the table of docs/gateway.md.
	@$(BIN)/python -m tests.clients_suite $(ONLY) $(if $(HUB),--hub "$(HUB)") $(if $(ONLY),,--write docs/gateway.md)

# It installs pinned packages in .clients-suite, too.
import-suite: .venv/dev ## Import stores that the peers' own packages make (ONLY="mem0 langgraph"), and write the table of docs/imports.md.
	@$(BIN)/python -m tests.import_suite $(ONLY) $(if $(ONLY),,--write)

# Debian's packages flex, bison and libkrb5-dev, and the source of Citus 14 (AGPL; it is run, and no part of the hub).
distributed: .venv/dev ## Put a hub on a Citus cluster, with CITUS=its source (BUILD=folder keeps it built, ONLY="job move").
	@test -n "$(CITUS)" || { echo "make distributed needs CITUS=folder, the source of Citus 14, and flex, bison, libkrb5-dev."; exit 1; }
	@$(BIN)/python -m tests.distributed --citus "$(CITUS)" $(if $(BUILD),--build "$(BUILD)") $(if $(ONLY),--only $(ONLY))

# promtool is in Debian's package prometheus: apt-get download prometheus && dpkg -x prometheus_*.deb DIR, then
# PROMTOOL=DIR/usr/bin/promtool.
PROMTOOL ?= promtool
alerts: .venv/dev ## Check the alerts and cause each of them, with PROMTOOL=… (of Prometheus), and note what was played.
	@command -v $(PROMTOOL) >/dev/null || { echo "make alerts needs promtool, which is part of Prometheus: PROMTOOL=…"; exit 1; }
	@PROMTOOL="$$(command -v $(PROMTOOL))" $(PYTEST) tests/test_alerts.py -m "soak or not soak"

bench: .venv/dev ## Measure the hub beside its floors and write docs/benchmarks.md (ROWS="ingest context": some rows).
	@$(BIN)/python -m benchmarks $(ROWS) --write docs/benchmarks.md

# It installs pinned packages of the peers in .clients-suite, too. At the full sizes it takes some two hours and 6 GB.
compare: .venv/dev ## Measure the hub beside other memory systems (ONLY="mem0_pgvector", SIZES="600 20000"), and write docs/compare.md.
	@$(BIN)/python -m benchmarks.compare $(ONLY) $(if $(SIZES),--sizes $(SIZES)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(FILL_SECONDS),--fill-seconds $(FILL_SECONDS)) $(if $(DATA),--data $(DATA)) \
		$(if $(ONLY)$(SIZES),,--write docs/compare.md)

# Packages are installed on one core, so the clients' are beside the hub's. The types take as long as everything else here:
# those of the client are checked with the libraries of the frameworks, which .venv does not have.
lint: ## Check style, imports, types (those of the Python client, too) and migrations.
	@$(MAKE) --no-print-directory --jobs=2 .venv/dev .venv-clients/dev
	@$(KEEPS_BYTECODE) $(BIN)/python -m mypy & types=$$!; failed=; \
	$(BIN)/python -m ruff check . || failed=1; \
	$(BIN)/python -m ruff format --check . || failed=1; \
	$(BIN)/lint-imports || failed=1; \
	$(KEEPS_BYTECODE) $(BIN)/python manage.py makemigrations --check --dry-run || failed=1; \
	(cd clients/python && ../../$(CLIENTS)/python -m mypy) || failed=1; \
	wait $$types || failed=1; test -z "$$failed"

fix: .venv/dev ## Repair what ruff can repair.
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

audit: .venv/dev ## Look the locked packages up among the known vulnerabilities (needs a network).
	$(BIN)/python -m pip_audit --disable-pip --require-hashes -r requirements-dev.lock

lock: .venv/dev ## Pin the newest versions that pyproject.toml allows.
	$(COMPILE) --upgrade --output-file requirements.lock pyproject.toml
	$(COMPILE) --upgrade --extra dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml
	@# What makes the wheel, in the image.
	printf '%s\n' 'hatchling>=1.27' 'hatch-vcs>=0.5' | $(COMPILE) --upgrade --output-file deploy/build.lock -
	@# What makes the packages that are published.
	printf '%s\n' 'hatchling>=1.27' 'hatch-vcs>=0.5' 'build>=1.3' 'cyclonedx-bom>=7,<8' | $(COMPILE) --upgrade --output-file deploy/dist.lock -
	@# What these extras add to the image.
	@for extra in traces tokenizers; do \
		$(BIN)/python -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")' $$extra \
		| $(COMPILE) --upgrade --constraint requirements.lock --constraint requirements-dev.lock --output-file deploy/$$extra.lock - || exit 1; done
	@# With the extras: an old pip takes a package with extras for one that is not pinned without them.
	cd clients/python && $(subst --strip-extras,--no-strip-extras,$(subst $(BIN),../../$(BIN),$(COMPILE))) --upgrade --extra dev --output-file requirements.lock pyproject.toml

# The evaluation sets are no part of the project: each has a licence of its own.
DATA ?= ../shared/data
eval: .venv/dev ## Measure the retrieval on the sets in DATA=folder, in memory and over REST (FIRST=2: people of each set).
	@$(BIN)/python -m evals --data $(DATA) $(if $(FIRST),--first $(FIRST)) --json .eval.json

# It reads the caller's OPENAI_* and MEMORYHUB_*: the endpoint is the one that a hub of theirs would ask.
eval-extraction: .venv/dev ## Measure the extraction with the configured model (KIND="negation upload"; FIRST=1: one of each).
	@$(BIN)/python -m evals.extraction $(if $(KIND),--only $(KIND)) $(if $(FIRST),--limit $(FIRST)) \
		$(if $(TRIPLES),--triples) $(if $(PRICES),--prices $(PRICES)) --show --json .eval-extraction.json

clean: ## Remove what make and the tools made; the data in .memoryhub stays.
	rm -rf .venv .venv-clients .venv-dist clients/python/.mypy_cache clients/python/.pytest_cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .soak .clients-suite staticfiles

# A dangling link (the Python it was made with is gone) counts as missing: then it is made anew.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=…")'
	@# Without pip: Debian's Python cannot make one with it unless python3-venv is installed.
	@$(PYTHON) -m venv --clear --without-pip .venv

.venv/runtime: requirements.lock | .venv/bin/python
	@echo "Installing into .venv …"
	@$(INSTALL) -r requirements.lock
	@touch $@

# The second file contains the first.
.venv/dev: requirements-dev.lock | .venv/bin/python
	@echo "Installing into .venv, with the tools …"
	@$(INSTALL_TOOLS) -r requirements-dev.lock
	@touch .venv/runtime $@

.venv-clients/bin/python:
	@$(PYTHON) -m venv --clear --without-pip .venv-clients

.venv-clients/dev: clients/python/requirements.lock | .venv/bin/python .venv-clients/bin/python
	@echo "Installing into .venv-clients …"
	@$(subst $(BIN),$(CLIENTS),$(INSTALL_TOOLS)) -r clients/python/requirements.lock
	@touch $@

.venv-dist/tools: deploy/dist.lock | .venv/bin/python
	@echo "Installing into .venv-dist …"
	@$(PYTHON) -m venv --clear --without-pip .venv-dist
	@$(subst $(BIN),.venv-dist/bin,$(INSTALL_TOOLS)) -r deploy/dist.lock
	@touch $@

.venv/browser: | .venv/dev
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; \
	else \
		$(BIN)/python -m playwright install chromium; \
	fi
	@touch $@
