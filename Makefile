# Makefile - the short way to the build that meson.build describes. `make` gives build/caisson; docs/HACKING.md tells the rest.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
BENCH_PAIRS ?= 60
BENCH_RUNS ?= 50

CLANG = CC=clang CC_FOR_BUILD=clang
SANITIZE = -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized

.PHONY: all demo test crash bench check check-san fuzz install clean deps deps-test deps-bench deps-fuzz build-fault build-clang build-san

# The program, guest init, the HTTP front and the keeper's client, without the tests.
PROGRAMS = src/cli/caisson src/init/caisson-init src/http/caisson-front src/client/caisson-client

all: build/build.ninja
	ninja -C build $(PROGRAMS)
	ln -sfn src/cli/caisson build/caisson
	ln -sfn src/init/caisson-init build/caisson-init
	ln -sfn src/http/caisson-front build/caisson-front
	ln -sfn src/client/caisson-client build/caisson-client

demo: deps-test all
	demo/run.sh

# The installed program, the same with numbered fault points, and a second compiler's opinion. The suite prints the sum.
test: deps-test all build-fault build-clang
	ninja -C build
	tests/run --build build --fault-build build-fault

# The whole crash matrix: every fault point, every action, every program; then every write of the ledger and 1,000 kills inside of commits.
crash: deps-test all build-fault
	status=0; tests/fault/crash.py || status=1; \
	CAISSON_TEST_COMMIT_KILLS=1000 CAISSON_TEST_WRITE_STRIDE=1 tests/run test_faults || status=1; exit $$status

check:
	tools/check

# All but the emulated machines, where a sanitizer build would take for ever.
check-san: deps-test build-san build-fault
	tests/run --build build-san --fault-build build-fault unit system hostile

# Cold runs, a warm keeper, then exactness; each is measured whatever the others come to.
bench: deps-bench all
	status=0; tests/bench/bench.py --pairs $(BENCH_PAIRS) || status=1; \
	echo; tests/bench/throughput.py --pairs $(BENCH_PAIRS) || status=1; \
	echo; tests/bench/exactness.py --runs $(BENCH_RUNS) || status=1; exit $$status

# A batch of 10,000 runs, while keeper or a worker is killed every few seconds.
soak: deps-test all
	CAISSON_TEST_SOAK_RUNS=10000 CAISSON_TEST_SOAK_PERIOD_MS=3000 tests/system/test_soak.py

fuzz: deps-fuzz build-fuzz/build.ninja
	ninja -C build-fuzz fuzzers
	tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

# DESTDIR is meson's own.
install: build/build.ninja
	meson configure build -Dprefix=$(PREFIX)
	ninja -C build $(PROGRAMS)
	meson install -C build --no-rebuild

clean:
	rm -rf build build-fault build-clang build-san build-fuzz

deps:
	tools/deps build

deps-test:
	tools/deps build test

deps-bench:
	tools/deps build bench

deps-fuzz:
	tools/deps build fuzz

build-fault: build-fault/build.ninja
	ninja -C $@
	ln -sfn src/cli/caisson $@/caisson
	ln -sfn src/init/caisson-init $@/caisson-init
	ln -sfn src/http/caisson-front $@/caisson-front
	ln -sfn src/client/caisson-client $@/caisson-client

build-clang: build-clang/build.ninja
	ninja -C $@

build-san: build-san/build.ninja
	ninja -C $@
	ln -sfn src/cli/caisson $@/caisson
	ln -sfn src/init/caisson-init $@/caisson-init
	ln -sfn src/http/caisson-front $@/caisson-front
	ln -sfn src/client/caisson-client $@/caisson-client

build/build.ninja:
	meson setup build
build-fault/build.ninja:
	meson setup build-fault -Dfault_points=true
build-clang/build.ninja:
	$(CLANG) meson setup build-clang
build-san/build.ninja:
	meson setup build-san $(SANITIZE)
build-fuzz/build.ninja:
	$(CLANG) meson setup build-fuzz $(SANITIZE) -Dfuzz=true -Dc_args=-fsanitize=fuzzer-no-link
