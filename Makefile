# The commands of somebody who works on Systole. `make quickstart` and `make test` each work as the first command on a
# bare Debian 12 machine: they install what is missing (packages.txt), build, and go.
#
#   make quickstart   train a small language model on this machine; QUICK=1 for a shorter one
#   make test         every test but two tiers, at small counts, under ASan and UBSan; those that start many processes as
#                     released; a short fuzz run. SANITIZED=build/dev=!clusters,measured: processes under sanitizers too
#   make test-clusters
#                     what needs a Slurm, sshds and a Kubernetes (tools/kube), which it builds first: 13 minutes, once
#   make test-measured
#                     what measures time or memory: by itself, as released
#   make test-long    the full counts; stop it and run it again to go on; SEED=n to repeat one; then two hours of mixed
#                     load against a server under sanitizers
#   make bench        benchmarks
#   make lint         clang-format, who may include whom, one name a type, names in the docs, shellcheck
#   make format       lets clang-format write
#   make clean        removes build/

.PHONY: quickstart test test-clusters test-measured test-long bench lint format clean packages program release released dev
.NOTPARALLEL:

# Tests whose subject is threads; they run once more under ThreadSanitizer.
TSAN_TESTS = base_test net_test store_test process_test data_test checkpoint_test observe_test train_test

SANITIZED = build/dev=!processes,clusters,measured

quickstart: program
	@tools/quickstart

test: packages
	@tools/build dev $(if $(findstring processes,$(SANITIZED)),tests_sanitized)
	@tools/build release tests_released
	@tools/run-tests '$(SANITIZED)' build/release=processes
	@tools/run-fuzz
	@tools/run-tsan $(TSAN_TESTS)

test-clusters: released
	@if command -v go >/dev/null; then tools/kube build; fi
	@tools/tier clusters --always

test-measured: released
	@tools/tier measured --always

test-long: release
	@tools/test-long build/release
	@tools/build dev systole
	@tests/serving/soak.py build/dev/src/operate/cli/systole

bench: release
	@tools/bench

lint: packages
	@tools/lint

format: packages
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build

packages:
	@tools/install-packages

program: packages
	@tools/build release systole

release dev: packages
	@tools/build $@

released: packages
	@tools/build release tests_released
