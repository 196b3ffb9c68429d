# The two commands of the README: `make doctor` and `make test`. Each sets up what it needs and says what it does.
# Everything else here is for developers; `make help` lists it.
BUILD ?= build
JOBS ?= $(shell nproc)
# On a terminal the compiler's progress is one line that counts; elsewhere errors alone are said.
QUIET := $(shell [ -t 2 ] || echo --quiet)

.PHONY: help setup build doctor test test-wheels test-tracer test-stranger test-view bench bench-smoke corpus learn tables docs sanitize sanitize-build fuzz check mutate install release clean

help:
	@echo "make doctor       set up, build, run cufit doctor"
	@echo "make test         set up, build, run all tests but those that download wheels or PyTorch"
	@echo "make test-wheels  download real wheels (about 7 GB): compare with NVIDIA's cuobjdump, make environments"
	@echo "make test-stranger  the tests that make test built, again: elsewhere, as another user, in another language"
	@echo "make test-tracer  download PyTorch (about 550 MB): the tracer of cufit fit under it, on the CPU"
	@echo "make test-view    the page of mem view in a headless Chromium, with pictures in build/view"
	@echo "make bench        speed against torch's collect_env and cuobjdump, in one run"
	@echo "make corpus       how often cufit explain is right, over the labelled texts of tests/texts"
	@echo "make learn        learn the word table again, beside the one in use (downloads NumPy and SciPy, ten minutes)"
	@echo "make tables       the tables of data/ that change with releases as one file, for cufit self update-tables"
	@echo "make docs         write docs/causes.md anew from data/"
	@echo "make sanitize     the tests under ASan and UBSan"
	@echo "make fuzz         every fuzz harness for FUZZ_SECONDS (20)"
	@echo "make check        layers, file sizes, spelling, ruff, the form of the pages, the places of make mutate"
	@echo "make mutate       60 small mistakes made one after the other: which do the tests see"
	@echo "make release      wheels, .deb and tarballs for x86-64 and arm64 in dist/, for libc 2.28 and newer"
	@echo "make install      cufit, man page and completions below PREFIX (/usr/local)"

setup:
	@tools/setup

build: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@[ -x "$(BUILD)/cufit" ] || echo "building cufit: five minutes on two cores"
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET) cufit

doctor: build
	@"$(BUILD)/cufit" doctor --fail-on never
	@tools/after-doctor "$(BUILD)/cufit"

test: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET)
	@cd "$(BUILD)" && ctest -j$(JOBS) --output-on-failure -LE 'wheels|tracer'
	@echo "skipped: the tests that download real wheels (about 7 GB): make test-wheels"
	@echo "skipped: the tracer under a real PyTorch (about 550 MB): make test-tracer"

test-wheels: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET) cufit test_wheels
	@tools/fetch-wheels "$(BUILD)/wheels"
	@tools/fetch-uv "$(BUILD)/uv"
	@cd "$(BUILD)" && CUFIT_WHEELS="$$PWD/wheels" ctest --output-on-failure -L wheels

# Of what `make test` built; compiles nothing.
test-stranger:
	@tools/test-as-stranger "$(BUILD)"

test-tracer: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET) generated/cufit_tracer.py
	@tools/fetch-torch "$(BUILD)/torch"
	@cd "$(BUILD)" && ctest --output-on-failure -L tracer

test-view: build
	@python3 tests/view/view_test.py "$(BUILD)/cufit" "$(BUILD)/view"

bench: build
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET)
	@tools/bench "$(BUILD)"

bench-smoke: build
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET)
	@tools/bench --smoke "$(BUILD)"

# Other labelled cases: make corpus CORPUS="a.jsonl b.jsonl"
corpus: build
	@tools/corpus.py "$(BUILD)/cufit" $(CORPUS)

learn: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET) list-clues
	@test -x "$(BUILD)/learn/bin/python" || python3 -m venv "$(BUILD)/learn"
	@"$(BUILD)/learn/bin/python" -m pip install --quiet --disable-pip-version-check -r learn/requirements.txt
	@"$(BUILD)/learn/bin/python" learn/learn.py --clues "$(BUILD)/list-clues" -o "$(BUILD)/learn/vocabulary.toml"
	@echo "$(BUILD)/learn/vocabulary.toml is the new table; learn/README.md says how to hold it against data/vocabulary.toml"

# Beside it its hash: `cufit self update-tables` takes both.
tables: build
	@mkdir -p "$(BUILD)/tables"
	@"$(BUILD)/gen-tables" data --release "$(BUILD)/tables/cufit-tables.toml"
	@cd "$(BUILD)/tables" && sha256sum cufit-tables.toml >cufit-tables.toml.sha256
	@echo "$(BUILD)/tables/cufit-tables.toml"

docs: build
	@"$(BUILD)/cufit" self causes >docs/causes.md

# One build serves both: the tests under the sanitizers, and the harnesses. Not tests of the guard: it stands before the
# functions of a program as a sanitizer does, and both together crash it.
CMAKE_ASAN = cmake -S . -B "$(BUILD)-asan" -G Ninja -DCUFIT_FUZZ=ON -DCUFIT_BENCH=OFF \
  -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14
sanitize-build: setup
	@$(CMAKE_ASAN) >/dev/null
	@ninja -C "$(BUILD)-asan" -j$(JOBS) $(QUIET)

sanitize: sanitize-build
	@cd "$(BUILD)-asan" && ctest -j$(JOBS) --output-on-failure -LE 'wheels|tracer|schemas|guard'

FUZZ_SECONDS ?= 20
fuzz: setup
	@$(CMAKE_ASAN) >/dev/null
	@ninja -C "$(BUILD)-asan" -j$(JOBS) $(QUIET) fuzz/all
	@tools/fuzz-all "$(BUILD)-asan" $(FUZZ_SECONDS)

check:
	@tools/check-layers
	@tools/check-unity
	@tools/check-tree
	@tools/check-pages
	@tools/mutate --check

# Some of them: make mutate MUTATE="--only 7,marker.cc"
mutate: setup
	@tools/mutate --jobs $(JOBS) $(MUTATE)

PREFIX ?= /usr/local
install: build
	@tools/install "$(BUILD)/cufit" "$(DESTDIR)$(PREFIX)"

clean:
	@rm -rf "$(BUILD)" "$(BUILD)-asan"

# DIST_WORK: sources, libraries and programs of a release; about 2 GB, and half an hour on two cores the first time.
DIST_WORK ?= $(BUILD)-release
DIST ?= dist
release: setup
	@cmake -S . -B "$(BUILD)" -G Ninja >/dev/null
	@ninja -C "$(BUILD)" -j$(JOBS) $(QUIET) gen-tables
	@GEN_TABLES="$$(cd "$(BUILD)" && pwd)/gen-tables" packaging/release "$(DIST_WORK)" "$(DIST)"
