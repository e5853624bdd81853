# Trifecta: `make race` runs the race, `make test` the tests. Both set up what they need first.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin
# An image may forbid Python to keep compiled modules; the tests start it thousands of times.
unexport PYTHONDONTWRITEBYTECODE

PYTHON := .venv/bin/python
CARGO := cargo
ENGINE := --manifest-path engine/Cargo.toml --target-dir engine/target --locked
QUICHE := trifecta/implementations/programs/quiche-server
PYTHON_FILES := trifecta tests scripts $(wildcard bench)
FUZZ_SECONDS ?= 600
FUZZ_INPUTS ?= 100000000
# Tests that neither time anything nor raise a network share the processors; those here that do raise one (the mark `lab`)
# run three at a time. What is not named here runs one by one.
SIDE_BY_SIDE := $(addprefix tests/,analysis api architecture bench cli contract design docs pages report store threats trace ui video)
# The same of single files, whose folders run one by one.
SIDE_BY_SIDE_FILES := $(addsuffix .py,tests/engine/test_cycles \
	$(addprefix tests/implementations/test_,builds caddy_2022 cargo_program curl debian envoy file_recipes from_compose go_client \
	go_services h2load haproxy hypercorn isolated lean nginx over_ipv6 python_client quic_go quiche registry replay_configs servers \
	survey) \
	$(addprefix tests/implementations/browsers/test_,bidi cdp_network firefox_fetches har jobs net_log visit_traffic) \
	$(addprefix tests/lab/test_,balancer certificates chrony keeper_client launchers names netem_lack nodes_doctor place \
	staged_files topology) tests/observers/test_parsing tests/recording/test_recording \
	$(addprefix tests/workloads/test_,aggregate client_probe clocks cluster_nodes cluster_wire code compared_session ended_blocks \
	far_choose far_page_choose far_rate_limiter floors go_services https_record ip_asked middle placed_services preflight qlogs \
	remaining_time renewal replaying requests retry_experiment robots service_clients service_starts stat supported \
	tools_over_ipv6 visit_aggregate))
# Of these, the files that have some: to collect all would take half a minute (tests/architecture holds what is found here).
LAB_FILES = $(shell grep -rl --include='test_*.py' 'mark\.lab' $(SIDE_BY_SIDE) $(SIDE_BY_SIDE_FILES))
# Those that raise networks and mostly wait in them: others beside them change nothing that they ask. Who wants every
# trial fit for a verdict, or times something, is not among them, nor who builds the engine, which is gone meanwhile.
IN_THREES_FILES := $(addsuffix .py,tests/external/test_h2spec \
	$(addprefix tests/implementations/test_,bad_clients bad_servers client_driver proxies_over_ipv6 recipes) \
	$(addprefix tests/implementations/browsers/test_,chromium driver firefox) \
	$(addprefix tests/lab/test_,access conntrack containers containers_ipv6 images keeper ray_launcher sandbox ssh) \
	$(addprefix tests/workloads/test_,between_trials browsers campaign capturing chain_over_hosts clients cluster_dispatch \
	cluster_lab cluster_store conformance experiment extending failures far_delivery from_the_page hosts hosts_emulator_host \
	hosts_over_ipv6 internet ladder load_balancer look lying_links mapping over_ipv6 path_probe reproduction runner services \
	services_watched sessions three_places why))
IN_THREES := --durations 20 -n 3 --dist loadfile
# These count round trips of 40 ms and leave the processors idle for most of them: three at a time, and nobody else.
ROUND_TRIP_FILES := tests/workloads/test_switches.py
ONE_BY_ONE := $(filter-out $(SIDE_BY_SIDE) %.py %/__pycache__,$(wildcard tests/*))

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: race
race: setup ## Set up, run the bundled race within 3 minutes and show who wins where
	.venv/bin/trifecta race

.PHONY: setup
setup: ## Set up .venv and build the engine
	@scripts/setup.sh run

.PHONY: setup-dev
setup-dev: ## Set up for development and tests
	@scripts/setup.sh dev

.PHONY: static
static: setup ## Build the engine without shared libraries too, for hosts by SSH with an older C library
	@scripts/static.sh

.PHONY: setup-long
setup-long:
	@scripts/setup.sh long

.PHONY: test
test: lint test-engine test-python ## Set up, lint, and run the tests

.PHONY: test-engine
test-engine: setup-dev
	$(CARGO) test $(ENGINE) --workspace

.PHONY: test-python
test-python: setup-dev
	OPENBLAS_NUM_THREADS=1 $(PYTHON) -m pytest -m "not long and not lab" --durations 20 -n logical --dist loadfile $(SIDE_BY_SIDE) $(SIDE_BY_SIDE_FILES)
	$(PYTHON) -m pytest -m "not long and lab" $(IN_THREES) $(LAB_FILES)
	$(PYTHON) -m pytest -m "not long" $(IN_THREES) $(IN_THREES_FILES)
	$(PYTHON) -m pytest -m "not long" --durations 20 -n 3 --dist worksteal $(ROUND_TRIP_FILES)
	$(PYTHON) -m pytest -m "not long" --durations 20 $(addprefix --ignore=,$(SIDE_BY_SIDE_FILES) $(IN_THREES_FILES) $(ROUND_TRIP_FILES)) $(ONE_BY_ONE)

.PHONY: test-long
test-long: setup-long ## Run the long campaigns and the fuzzers (each FUZZ_SECONDS or FUZZ_INPUTS, what is first)
	TRIFECTA_FUZZ_SECONDS=$(FUZZ_SECONDS) TRIFECTA_FUZZ_INPUTS=$(FUZZ_INPUTS) $(CARGO) test $(ENGINE) --workspace --release -- --include-ignored --nocapture
	TRIFECTA_FUZZ_SECONDS=$(FUZZ_SECONDS) TRIFECTA_FUZZ_INPUTS=$(FUZZ_INPUTS) $(PYTHON) -m pytest -m long --timeout 7200

.PHONY: lint
lint: setup-dev ## Check style, types and the arrows between packages
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint-python lint-engine

.PHONY: lint-python
lint-python:
	$(PYTHON) -m ruff check $(PYTHON_FILES)
	$(PYTHON) -m ruff format --check $(PYTHON_FILES)
	$(PYTHON) -m mypy --strict -p trifecta -p bench
	.venv/bin/lint-imports --no-logo --no-cache

.PHONY: lint-engine
lint-engine:
	$(CARGO) fmt --manifest-path engine/Cargo.toml --all --check
	rustfmt --check --edition 2024 --config-path engine engine/crates/link/src/impair/*.rs # a macro names these modules
	rustfmt --check --edition 2024 --config-path engine $(QUICHE)/build.rs $(QUICHE)/src/main.rs # clippy would build BoringSSL
	$(CARGO) clippy $(ENGINE) --workspace --all-targets --quiet -- -D warnings

.PHONY: bench
bench: setup-dev ## Run the benchmarks against their peers, in turns (takes long; leave the machine alone)
	$(PYTHON) -m bench

.PHONY: dist
dist: setup-dev ## Build the wheels and the source distribution (RELEASE.md)
	rm -rf dist
	.venv/bin/maturin build --release --sdist --target-dir engine/target --out dist
	scripts/reading_wheel.sh dist/trifecta-*-manylinux_*.whl dist/

.PHONY: lock
lock: setup-dev ## Write the versions in .venv to requirements.lock
	scripts/lock.sh

.PHONY: clean
clean: ## Remove what set-up and tests made; runs are kept
	rm -rf .venv engine/target build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
