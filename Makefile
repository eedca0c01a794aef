# `make demo` and `make test` each do all the set-up a fresh Debian or Ubuntu machine needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PY := .venv/bin/python
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Cargo may have been installed by rustup a moment ago, in a place that no login shell has announced yet.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Each of the many commands that tests start would compile its modules again.
unexport PYTHONDONTWRITEBYTECODE
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

# Tests that run at once: most wait for a disk or a server, and Rust is compiled and tested meanwhile. Those marked
# `alone` run after all others, one by one.
WORKERS := 4
RUST_TESTS := --locked --workspace

# Flags of the load generator's benchmark: --quick, --rounds=N, --strict, --json=FILE.
BENCH_LOAD := --json target/bench-load.json

# Flags of the probes' benchmark: --seconds=N, --rounds=N, --only=PARTS, --strict, --json=FILE.
BENCH_PROBES := --json target/bench-probes.json

# Flags of the disk's benchmark: --quick, --only=GROUPS, --strict, --json=FILE.
BENCH_DISK := --json target/bench-disk.json

# The folder `valid` of DiskSim 4.0, and flags of the models' benchmark: --only=NAMES, --strict, --json=FILE.
DISKSIM :=
BENCH_MODELS := --json target/bench-models.json

# Flags of the models' other benchmark: --rounds=N, --only=WORD, --strict, --json=FILE.
BENCH_SPEED := --json target/bench-speed.json

# Flags of the simulation's benchmark: --quick, --only=GROUPS, --strict, --json=FILE.
BENCH_SIMULATE := --json target/bench-simulate.json

# Flags of the benchmark of power cuts: --all, --cuts=N, --only=FILESYSTEM, --seeds=N, --again=N, --strict, --into=NEW, --json=FILE.
BENCH_CRASH := --json target/bench-crash.json
BENCH_KILLS := --json target/bench-kills.json

# Flags of the statistics' benchmark: --replicates=N, --only=GROUPS, --seed=N, --strict, --json=FILE.
BENCH_HONESTY := --json target/bench-honesty.json

# Flags of the benchmark of an atlas: --runs=N, --rounds=N, --strict, --json=FILE.
BENCH_ATLAS := --json target/bench-atlas.json

# Flags of the benchmark of virtual machines: --seconds=N, --blocks=N, --kernel=NAME, --state=DIR, --strict, --json=FILE.
BENCH_GUEST := --json target/bench-guest.json

# Flags of the benchmark of many hosts: --seconds=N, --rounds=N, --starts=N, --strict, --json=FILE; of sweeps: --points=N, --rounds=N.
BENCH_HOSTS := --json target/bench-hosts.json
BENCH_CLIENTS := --json target/bench-clients.json
BENCH_SWEEP_HOSTS := --json target/bench-sweep-hosts.json

.PHONY: demo test test-fast test-rust test-all check check-python check-rust check-stub build clean release results site test-aarch64 atlas bench bench-atlas bench-awake bench-overhead bench-probes bench-trace bench-load bench-ledger bench-disk bench-models bench-speed bench-simulate bench-crash bench-kills bench-honesty bench-clients bench-guest bench-history bench-hosts bench-report docs fuzz field-reports lock picture wheel help

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: build ## run the demo study and print its verdicts
	@$(SUDO) $(PY) -m dbdyno.cli.main run studies/examples/demo.toml --into runs/demo-$$(date +%Y%m%d-%H%M%S) --html

# Arguments of the field reports: NAME... of studies, --scale full, --into DIR, --blocks N.
FIELD_REPORTS :=

field-reports: build ## run the five field reports, all or what is left of them; a night at most
	@$(SUDO) $(PY) -m scripts.field_reports $(FIELD_REPORTS)

# Arguments of the first atlas: --into DIR, --runs DIR, --no-quick; --measure runs field reports and crash studies first.
ATLAS :=

atlas: build ## the first atlas: simulated studies, sweeps of all drives, this disk, and the run folders in runs/; minutes
	@$(if $(findstring --measure,$(ATLAS)),$(SUDO)) $(PY) -m scripts.atlas $(ATLAS)

build: .make/built ## everything installed and built

.make/system: scripts/system-packages
	@mkdir -p .make
	@scripts/system-packages run
	@touch $@

.make/venv: requirements.txt .make/system
	@[ -x $(PY) ] || python3 -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.make/built: $(RUST_SOURCES) pyproject.toml .make/venv
	@cargo build --release --locked --workspace
	@mkdir -p target/programs/scripts
	@install -m 755 target/release/dbdyno-load target/release/dbdyno-disk target/release/dbdyno-probe target/programs/scripts/
	@install -m 755 target/release/lib_native.so python/dbdyno/_native.abi3.so  # the manual imports every command
	@PYTHONPATH=python $(PY) -m scripts.manual target/programs/data
	@PATH=$(CURDIR)/.venv/bin:$$PATH $(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.make/dev: requirements-dev.txt .make/built
	@scripts/system-packages test
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

check: .make/dev ## linters and types, of Python and of Rust at once
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-python check-rust

check-python: .make/dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PY) -m scripts.circles
	$(PY) -m scripts.results --check

check-rust: check-stub
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo test --locked --quiet -p dbdyno-common --lib the_schema_is_that_of_the_types

check-stub: .make/dev
	cargo fmt --check
	$(PY) -m mypy.stubtest dbdyno._native

test-fast: .make/dev ## tests that need no root and no browser and do not take long: while working
	$(PY) -m pytest -q -n 2 -m "not host and not browser and not simulation and not long"

# Tests of Rust that run at once beside Python's.
# Clippy compiles them, and says meanwhile what `make check-rust` would: else all of it is analysed a second time.
test-rust: export RUST_TEST_THREADS := 4
test-rust: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
test-rust: export RUSTFLAGS := -D warnings
test-rust: .make/dev
	cargo check --locked -p dbdyno-py
	cargo test $(RUST_TESTS) --no-fail-fast

test: .make/dev ## every check and every test a machine like this can prove; some are sampled, always the same
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-python check-stub
	@$(PY) -m scripts.suite --root="$(SUDO)" $(WORKERS) make --no-print-directory test-rust

test-all: ## the same in full: kills at every step, every drive, every server that can be had; some hours
	seed=$${RANDOM}$${RANDOM} && echo "DBDYNO_TEST_SEED=$$seed" && export DBDYNO_TEST_SEED=$$seed && \
		$(MAKE) test SUDO="$(SUDO) env DBDYNO_TEST_LONG=1 DBDYNO_TEST_SERVERS=all DBDYNO_TEST_SEED=$$seed"

# Seconds of a processor for each reader of others' bytes: `make fuzz SECONDS=600`.
SECONDS := 30

fuzz: .make/dev ## what reads others' bytes, searched for inputs that break it; ten minutes, or longer with SECONDS=600
	DBDYNO_FUZZ_SECONDS=$(SECONDS) DBDYNO_TEST_SEED=$${RANDOM}$${RANDOM} cargo test --locked --release -p dbdyno-load -p dbdyno-blk --test fuzz -- --nocapture
	DBDYNO_FUZZ_SECONDS=$(SECONDS) DBDYNO_TEST_SEED=$${RANDOM}$${RANDOM} $(PY) -m pytest -q -n 2 --timeout 0 tests/unit/test_fuzz.py

bench-atlas: .make/dev ## what an atlas of 200 runs costs to build, to open, to search; three minutes
	$(PY) -m benches.atlas $(BENCH_ATLAS)

bench-awake: .make/dev ## whether trials differ less where processors are kept awake; 14 minutes on a quiet machine
	$(SUDO) $(PY) -m benches.awake --json target/bench-awake.json

bench: .make/dev ## what dbdyno itself costs, beside its peers; some minutes on a quiet machine
	$(SUDO) $(PY) -m benches.overhead
	$(MAKE) bench-load BENCH_LOAD="--quick --json target/bench-load-quick.json"

bench-overhead: .make/dev ## where the wall clock of a study goes; two minutes
	$(SUDO) $(PY) -m benches.overhead

bench-probes: .make/dev ## what the probes cost, and their columns beside iostat's own; three minutes on a quiet machine
	$(SUDO) $(PY) -m benches.probes $(BENCH_PROBES)

bench-trace: .make/dev ## what the block trace costs a request; a minute on a quiet machine
	$(SUDO) $(PY) -m benches.block_trace

bench-load: .make/dev ## the load generator beside mysqlslap and sysbench, and its budgets; half an hour
	cargo build --release --locked -p dbdyno-load --bin dbdyno-load --example floor
	PYTHONPATH=. $(PY) crates/dbdyno-load/benches/bench_load.py $(BENCH_LOAD)

bench-ledger: .make/dev ## what the ledger costs the client, beside tpcc, and its verification; three minutes on a quiet machine
	PYTHONPATH=. $(PY) crates/dbdyno-load/benches/bench_ledger.py --json target/bench-ledger.json

bench-disk: .make/dev ## emulated disks beside the drives they stand for, and their budgets; a quarter of an hour
	$(SUDO) env PYTHONPATH=. $(PY) crates/dbdyno-disk/benches/bench_disk.py $(BENCH_DISK)

bench-models: .make/dev ## disk models beside DiskSim on ten measured drives; needs DISKSIM=DIR; a minute
	cargo build --release --locked -p dbdyno-device --example replay
	PYTHONPATH=. $(PY) crates/dbdyno-device/benches/bench_models.py $(if $(DISKSIM),--disksim $(DISKSIM)) $(BENCH_MODELS)

bench-speed: .make/dev ## how many requests a CPU-second device models simulate; a minute
	cargo build --release --locked -p dbdyno-device --example speed
	PYTHONPATH=. $(PY) crates/dbdyno-device/benches/bench_speed.py $(BENCH_SPEED)

bench-simulate: .make/dev ## the simulated block layer beside this kernel's, and its speed; a quarter of an hour
	cargo build --release --locked -p dbdyno-blk --examples
	$(SUDO) $(PY) -m benches.simulate $(BENCH_SIMULATE)

bench-history: .make/dev ## how often `history` names a change that is none, how late a true one; OTAVA=PYTHON beside it
	$(PY) -m benches.history $(if $(OTAVA),--otava $(OTAVA)) --json target/bench-history.json

bench-report: .make/dev ## what the HTML page of a million samples costs, beside DuckDB reading them; a minute
	$(PY) -m benches.report

bench-crash: .make/dev ## how many power cuts an hour are examined, false losses, the same state again; half an hour
	$(SUDO) $(PY) -m benches.crash $(BENCH_CRASH)

bench-kills: .make/dev ## 50 kills of runs with each setting: whether the host is as before; hours
	$(SUDO) $(PY) -m benches.kills $(BENCH_KILLS)

bench-honesty: .make/dev ## how often verdicts are wrong, beside the rules of others; some minutes
	mkdir -p target
	$(PY) -m benches.honesty $(BENCH_HONESTY)

bench-clients: .make/dev ## client hosts limited on purpose, and ones that are not: which are named; six minutes
	$(SUDO) $(PY) -m benches.client_limits $(BENCH_CLIENTS)

bench-guest: .make/dev ## the same study on this host and in a virtual machine: device times, what the machine distorts; twenty minutes
	$(SUDO) $(PY) -m benches.guest $(BENCH_GUEST)

bench-hosts: .make/dev ## what the agent costs a host where nothing is asked, clocks' bounds, common starts, sweeps; ten minutes
	$(SUDO) $(PY) -m benches.hosts $(BENCH_HOSTS)
	$(SUDO) $(PY) -m benches.sweep_hosts $(BENCH_SWEEP_HOSTS)

results: .make/venv ## write the schema of results, and Python's types, from Rust's own
	DBDYNO_WRITE_SCHEMA=1 cargo test --locked --quiet -p dbdyno-common --lib the_schema_is_that_of_the_types
	$(PY) -m scripts.results
	.venv/bin/ruff format --quiet python/dbdyno/model/results.py

docs: .make/dev ## write the pages of docs/ that come from the code
	$(PY) -m scripts.docs

site: .make/site/bin/zensical ## the documents as a site that needs no network, in target/site/html; builds nothing else; SITE=DIR adds it there as a version
	.make/site/bin/python -m scripts.site $(if $(SITE),--release $(SITE))

.make/site/bin/zensical: requirements-site.txt
	@python3 -m venv .make/site
	@.make/site/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.txt
	@touch $@

# A run of the demo on a quiet host: make picture RUN=runs/demo.
RUN :=

picture: .make/built ## docs/report.png anew, from the page of RUN, a run of the demo on a quiet host; needs Chromium
	$(PY) -m dbdyno.cli.main report $(RUN) --html target/report.html > target/report.txt
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1600 --screenshot=docs/report.png file://$(CURDIR)/target/report.html

lock: ## write the requirement files anew
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --group build pyproject.toml -o requirements.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --group dev pyproject.toml -c requirements.txt -o requirements-dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --group pyproject.toml:site -c requirements-dev.txt -o requirements-site.txt

wheel: build ## one wheel with every program and the manual inside, in target/wheels
	@$(PY) -m scripts.manual target/programs/data
	@strip --strip-debug target/programs/scripts/*
	@PATH=$(CURDIR)/.venv/bin:$$PATH maturin build --locked --out target/wheels

release: .make/dev ## wheels for x86-64 and aarch64, a Debian package, bills of materials, checksums, in target/release-VERSION
	@$(PY) -m scripts.release target/release-$$($(PY) -c "import dbdyno; print(dbdyno.__version__)")

# What needs neither a disk nor a server, built for aarch64 and run by QEMU.
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: export CC_aarch64_unknown_linux_gnu := aarch64-linux-gnu-gcc
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64: ## tests of the models, the simulator and the common crate on aarch64, emulated; needs gcc-aarch64-linux-gnu and qemu-user
	cargo test --locked --target aarch64-unknown-linux-gnu -p dbdyno-common -p dbdyno-device -p dbdyno-blk

clean: ## remove what was built
	rm -rf .venv .make target
