# SPDX-License-Identifier: MIT
# Each target installs what it needs (scripts/setup), then runs CMake (CMakePresets.json).
#
#   make demo    trains a small language model eager and recorded, then generates text with it
#   make test    builds everything with warnings as errors and runs the tests
#   make bench   measures Rondo and the other engines on this machine (bench/comparison.py --help)
#   make check   format, layers, headers, the binary interface, the thread sanitizer
#   make fuzz    all tests and each fuzz target with clang's address and undefined-behaviour sanitizers
#   make pypi    what needs packages of PyPI: the same tokens as the transformers library, models that PyTorch exports,
#                the operators of the package onnx; skipped without PyPI
#   make models  exports models from PyTorch to build/models, in small sizes for tests and full ones, and checks them
#   make serve MODEL=FILE    serves a model with Triton Inference Server, on the loopback address
#   make serve-test          tests that with clients, and under fire for 20 seconds (FIRE=600: for 600); skipped without
#                            PyPI
#   make docs    pages of the public headers, in build/docs/html
#   make deb     Debian packages and an archive of the sources, in build/deb, checked by lintian
#   make install [PREFIX=/usr/local] [DESTDIR=]
#
# `make bench` prints the page first, in minutes, then every measurement in five rounds.
# Further: requirements (which row of docs/requirements.md a test shows, and on which device), build, analyze
# (clang-tidy, cppcheck and gcc's analyzer, minutes of processor time), asan (gcc's), coverage, format, setup (installs
# the packages of every target), clean.
# `make mutation MUTANTS=400` changes one condition or statement of the sources at a time and lists those changes that no
# test finds; an hour or more.
# `make fuzz HOURS=1` looks for inputs that fail for that long, in place of the tests, and adds to tests/fuzz/corpus.
# Variables: TEXT (what `make demo` learns), MODEL (what `make serve` serves), JOBS, SETUP (SETUP=true installs no
# package), GPU_RESULTS (of requirements: folders that tests/gpu/run left).

SETUP ?= scripts/setup
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
TEXT ?= /usr/share/common-licenses/GPL-3
DEMO := build/demo.safetensors
RELEASE := --preset release -DRONDO_BUILD_TESTS=OFF

.PHONY: demo build test bench pypi models serve serve-test docs deb install check check-source analyze requirements asan \
  tsan fuzz mutation coverage format setup clean
.NOTPARALLEL:

demo:
	@$(SETUP) build
	@cmake $(RELEASE) --log-level=WARNING
	@cmake --build --preset release -j $(JOBS) --target rondo_tool
	build/release/tools/rondo/rondo train "$(TEXT)" --save $(DEMO)
	build/release/tools/rondo/rondo generate $(DEMO)

build:
	@$(SETUP) build
	cmake $(RELEASE)
	cmake --build --preset release -j $(JOBS)

test:
	@$(SETUP) build test
	JOBS=$(JOBS) scripts/test dev

bench:
	@$(SETUP) build bench
	cmake $(RELEASE)
	cmake --build --preset release -j $(JOBS) --target rondo_bench
	bench/comparison.py cpu --build build/release --out build/comparison-cpu.json
	bench/run build/release

serve:
	@$(SETUP) build pypi
	@cmake $(RELEASE) --log-level=WARNING
	@cmake --build --preset release -j $(JOBS) --target rondo_triton
	scripts/serve build/release "$(MODEL)"

serve-test:
	@$(SETUP) build pypi
	cmake $(RELEASE)
	cmake --build --preset release -j $(JOBS) --target rondo_triton --target rondo_served_examples --target rondo_tool
	tests/triton/run build/release $(FIRE)

docs:
	@$(SETUP) docs
	docs/reference/make build/docs

deb:
	@$(SETUP) build deb
	JOBS=$(JOBS) scripts/make-packages build/deb

install:
	@$(SETUP) build
	cmake $(RELEASE)
	cmake --build --preset release -j $(JOBS) --target rondo_installed
	cmake --install build/release --prefix "$(PREFIX)"

check: check-source tsan

analyze: build
	@$(SETUP) check
	JOBS=$(JOBS) scripts/analyze build/release

check-source: build
	@$(SETUP) test check
	scripts/check-format
	scripts/check-layers
	scripts/draw-architecture --check
	scripts/check-headers
	scripts/check-abi
	scripts/check-symbols $$(find build/release -maxdepth 1 -regex '.*/librondo\(_tensor\|_session\|_mpi\|_onnx\)?\.so') build/release/triton/rondo/libtriton_rondo.so
	scripts/check-hardening build/release

asan tsan:
	@$(SETUP) build test check
	JOBS=$(JOBS) scripts/test $@

fuzz:
	@$(SETUP) build test check
	JOBS=$(JOBS) $(if $(HOURS),scripts/fuzz $(HOURS),scripts/test fuzz)

mutation:
	@$(SETUP) build test mutation
	tests/mutation/run.py --jobs $(JOBS) $(if $(MUTANTS),--mutants $(MUTANTS))

pypi:
	@$(SETUP) build test pypi
	cmake --preset release -DRONDO_BUILD_TESTS=ON
	cmake --build --preset release -j $(JOBS) --target rondo_tool transformers_tokens \
	  conformance_onnx_models conformance_onnx_text_models
	tests/pypi/run build/release

models: build
	@$(SETUP) pypi
	scripts/pypi-environment build/pypi torch transformers torchvision onnx==1.23.2 onnxscript onnxruntime
	build/pypi/bin/python tests/models/export_models.py build/models
	tests/models/check_models build/release/tools/rondo/rondo cpu build/models/small build/models/light build/models/detectors build/models/full

# Where a test fails, the table says so too.
requirements:
	@$(SETUP) build test
	rm -f build/dev/junit.xml
	-JOBS=$(JOBS) scripts/test dev --output-junit junit.xml --test-output-size-passed 100000000
	scripts/requirements build/dev/junit.xml $(GPU_RESULTS)

# An assertion has a branch that no test can take. gcov 12 writes some counts as negative numbers.
coverage:
	@$(SETUP) build test coverage
	JOBS=$(JOBS) scripts/test coverage
	gcovr --root . --filter src/ --exclude-throw-branches --exclude-branches-by-pattern '.*\bassert\(.*' \
	  --gcov-ignore-parse-errors --print-summary --fail-under-line 98 --fail-under-branch 88 build/coverage

format:
	@$(SETUP) check
	scripts/check-format --fix

setup:
	@$(SETUP) build test check bench pypi coverage docs deb mutation

clean:
	rm -rf build
