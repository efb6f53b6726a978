# SPDX-License-Identifier: MIT
# The front door: each target installs what it needs (scripts/setup) and hands over to CMake (CMakePresets.json).
#
#   make demo    trains a small language model un-recorded and recorded, then generates text with it
#   make test    builds everything with warnings as errors and runs the tests
#   make bench   measures Rondo beside the engines that this machine has
#   make check   format, layers, headers, the binary interface, the thread sanitizer
#   make fuzz    all tests and each fuzz target with clang's address and undefined-behaviour sanitizers
#   make docs    pages of the public headers, in build/docs/html
#   make install [PREFIX=/usr/local] [DESTDIR=]
#
# Further: build, asan (gcc's), coverage, tidy, format, setup (installs the packages of every target), clean.
# Variables: TEXT (what `make demo` learns), JOBS, SETUP (SETUP=true installs no package).

SETUP ?= scripts/setup
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
TEXT ?= /usr/share/common-licenses/GPL-3
MODEL := build/demo.safetensors

.PHONY: demo build test bench docs install check check-source asan tsan fuzz coverage tidy format setup clean
.NOTPARALLEL:

demo:
	@$(SETUP) build
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release -j $(JOBS) --target rondo_tool
	build/release/tools/rondo/rondo train "$(TEXT)" --save $(MODEL)
	build/release/tools/rondo/rondo generate $(MODEL)

build:
	@$(SETUP) build
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

test:
	@$(SETUP) build
	JOBS=$(JOBS) scripts/test dev

bench:
	@$(SETUP) build bench
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
	bench/run build/release
	bench/comparison.py cpu --build build/release --out build/comparison-cpu.json

docs:
	@$(SETUP) docs
	docs/reference/make build/docs

install: build
	cmake --install build/release --prefix "$(PREFIX)"

check: check-source tsan

check-source: build
	@$(SETUP) check
	scripts/check-format
	scripts/check-layers
	scripts/check-headers
	scripts/check-abi
	scripts/check-symbols build/release/librondo.so

asan tsan:
	@$(SETUP) build
	JOBS=$(JOBS) scripts/test $@

fuzz:
	@$(SETUP) build check
	JOBS=$(JOBS) scripts/test fuzz

coverage:
	@$(SETUP) build coverage
	JOBS=$(JOBS) scripts/test coverage
	gcovr --root . --filter src/ --exclude-throw-branches --print-summary build/coverage

# Advice, not a gate.
tidy: build
	@$(SETUP) check
	git ls-files -co --exclude-standard 'src/*.c' 'tools/*.c' | xargs clang-tidy -p build/release --quiet

format:
	@$(SETUP) check
	scripts/check-format --fix

setup:
	@$(SETUP) build check bench coverage docs

clean:
	rm -rf build
