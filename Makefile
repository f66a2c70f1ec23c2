# Every target works on a machine where nothing was installed by hand (Debian 12, as root).
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

# Compiled modules and rewritten assertions are kept: every start of Python without them takes seconds.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
SOURCES := src tests scripts bench

CLUSTER := scripts/own-host cluster scripts/with-cluster

.PHONY: help setup packages venv agent gvisor image guest quick lint check check-agent check-python test docs-tables lab gcov-kernel lab-test host-test slow-test test-all faults worlds storm fleet-test cluster cluster-test burst capacity-300 bench kvm-table direct-kernel browser-test docs man attack fuzz wheel lock lower-bounds sbom audit clean

##@ Begin

help: ## say what there is to make
	@sed -n -e 's/^##@ /\n/p' -e 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install all that is missing: packages, .venv, the agent, gVisor, the image
	@scripts/setup

packages venv agent gvisor image guest: ## one step of the set-up
	@scripts/$@

quick: ## the first answer: Docker, gVisor and runc set up, weighed and told, in some 8 minutes. WITH=runc,podman
	@WITH="$(WITH)" scripts/setup quick
	@WITH="$(WITH)" scripts/quick

kvm-table: ## on a machine whose KVM runs guests: weigh virtual machines for an hour, and write a file that can be sent. TIME=60m
	@TIME="$(TIME)" scripts/kvm-table

##@ Every change

lint: ## formatters, linters and type checkers, of Python and Rust
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file scripts/mypy-on-demand.ini
	@cd agent && cargo fmt --check
	@cd agent && cargo clippy --quiet --locked --all-targets -- -D warnings

check: lint ## what a change must pass, in some minutes; needs no root and starts no sandbox
	@$(MAKE) --no-print-directory --jobs 2 check-agent check-python

check-agent: # whose tests mostly wait
	@cd agent && cargo test --quiet --locked

check-python:
	@scripts/quick-tests -m "not host and not simulation and not thorough" -n auto

test: ## set up, then every test, real platforms included
	@scripts/test

docs-tables: ## the tables of docs/report-schema.md, from the report's models
	@$(BIN)/python scripts/docs_tables.py

docs: venv ## the documentation site, which opens without a network: build/docs/html/index.html
	@scripts/docs

man: venv ## man pages of tare and its commands: build/man/man1
	@$(BIN)/python scripts/docs_man.py build/man/man1

##@ Labs

lab: ## what the lab consists of: some minutes, 3 GB below TARE_HOME
	@$(BIN)/tare lab build

direct-kernel: ## the kernel of microVMs that boot without an initramfs (qemu-microvm-direct, firecracker-direct): half an hour
	@$(BIN)/python scripts/direct_kernel.py

gcov-kernel: ## the lab's kernel that counts its own lines: some 20 minutes of two processors
	@$(BIN)/tare lab build --flavour lines

lab-test: lab ## tests of KVM, gVisor on KVM, Xen and Firecracker, in labs
	@$(BIN)/pytest -m lab tests/lab

host-test: ## stock Debian 12 and 13: contract by platform, a campaign of all, what stays: hours. HOST=debian12 ONLY=docker AGAIN=1
	@$(BIN)/python scripts/host_test.py $(addprefix --host ,$(HOST)) $(addprefix --only ,$(ONLY)) $(if $(AGAIN),--again)

##@ What takes long

slow-test: setup ## the contract of platforms that take minutes to start by emulation, every workload on the slower ones
	@scripts/with-dockerd $(BIN)/pytest -m slow --timeout=1800

test-all: test slow-test ## both

worlds: setup ## the command line in odd worlds: of /proc, rights, limits, disks, names, terminals; some minutes, in a host of their own
	@scripts/own-host worlds scripts/with-dockerd $(BIN)/pytest -q tests/worlds

storm: setup ## strike campaigns at random moments by 60 signals, hang-ups and closed pipes, then 200 SIGKILLs: two hours. SEED=1
	@scripts/own-host storm sh -ec 'for folder in /tmp /var/tmp; do mount -t tmpfs none $$folder; done; exec "$$@"' sh \
	    $(BIN)/python tests/storm.py --signals 60 --platforms native,runc $(addprefix --seed ,$(SEED))
	@scripts/with-dockerd $(BIN)/python tests/storm.py --kills 200 $(addprefix --seed ,$(SEED))

fleet-test: setup ## sshd hosts on this machine run a fleet; two of them and the controller are killed; then a look at what is left. HOSTS=20 KILLS=1
	@PYTHONPATH=tests scripts/own-host fleet $(BIN)/python scripts/fleet_test.py $(addprefix --hosts ,$(HOSTS)) $(addprefix --kills ,$(KILLS))

cluster: ## a Kubernetes cluster of one node, built from Go modules once (20 CPU minutes), brought up and ended again. RUN="kubectl get pods -A"
	@scripts/cluster
	@$(CLUSTER) sh -c '$(or $(RUN),kubectl get nodes -o wide; kubectl get runtimeclasses)'

cluster-test: ## Jobs, kubernetes:RUNTIMECLASS and kubelet on that cluster: promises, a campaign, a fleet. ONLY=campaign BLOCKS=6
	@scripts/cluster
	@$(CLUSTER) $(BIN)/python scripts/cluster_test.py $(addprefix --only ,$(ONLY)) $(addprefix --blocks ,$(BLOCKS))

faults: setup ## thirteen faults, each in a campaign; prints what became of it, and of the host
	@scripts/with-dockerd $(BIN)/pytest -q -m "host and slow" tests/campaign/test_host_faults.py

burst: setup ## bursts of up to 64 starts on Docker and gVisor: docs/life.md. PLATFORMS="docker gvisor"
	@scripts/with-dockerd $(BIN)/python bench/bench_burst.py $(PLATFORMS)

capacity-300: setup ## 300 runc containers at once: started, measured, stopped, and what is left of them; some minutes
	@mkdir -p build; rm -f build/capacity-300.*
	@$(BIN)/tare capacity -p runc --fill --most 300 --blocks 1 -o build/capacity-300.tare
	@$(BIN)/tare clean --dry-run

bench: setup ## the figures of docs/benchmarks.md
	@for file in bench/bench_*.py; do scripts/with-dockerd $(BIN)/python $$file || exit; done

browser-test: venv ## the page in Debian's chromium: sorting, filters, accessibility (axe-core), hostile text; apt brings 80 MB
	@scripts/browser-test

attack: setup ## the findings of the security audits, tried again on real instances and files; 1 when one is open. PLATFORMS="runc docker"
	@scripts/with-dockerd $(BIN)/python -P scripts/attacks $(addprefix -p ,$(PLATFORMS))

fuzz: venv ## every decoder by coverage, FUZZ_SECONDS each (an hour); fails at the first crash
	@scripts/fuzz

##@ Supply

wheel: venv ## tare with its agent, for hosts without a compiler: build/wheel/*.whl (MACHINE=aarch64: cross-built, untested)
	@scripts/wheel $(MACHINE)

lock: ## the lock files anew, with hashes, from pyproject.toml
	@scripts/lock

lower-bounds: ## the oldest versions that pyproject.toml declares, in a throwaway environment: the tests of what uses them
	@scripts/lower-bounds

sbom: venv ## bills of materials (CycloneDX) of the wheel, the agent and the image: build/*.cdx.json
	@mkdir -p build; $(BIN)/python scripts/sbom.py build

audit: venv ## known vulnerabilities, licences and sources of what is locked; scripts/audit ends with 3 where nothing can be known
	@scripts/audit

##@ End

clean: ## remove what was built here; images, campaigns and TARE_HOME stay
	@rm -rf build agent/target agent/fuzz/target .mypy_cache .ruff_cache .pytest_cache .hypothesis
