# Everything one needs: each target installs what is missing, builds what has changed, and does its work.
SHELL := /bin/bash
.DELETE_ON_ERROR:
JOBS ?= $(shell nproc)
DATA ?= data
LISTEN ?= $(or $(WEIR_HTTP_LISTEN),127.0.0.1:8080)
PREFIX ?= /usr/local
WEIR := build/release/weir

.PHONY: run build install test bench check needs needs-test needs-bench format clean help

help:  ## what can be asked for
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"
	@echo "JOBS=N builds with N compilers at once (here: $(JOBS))"

run: build  ## the site on 127.0.0.1:8080, with content in it (LISTEN=ADDR:PORT, DATA=DIR)
	@scripts/run $(WEIR) $(DATA) $(LISTEN)

build: needs  ## build/release/weir
	@scripts/build release weir

test: needs-test  ## every test, with the release build
	@scripts/build release all
	@scripts/test release

bench: needs-bench  ## every benchmark; bench-NAME for one, JSON=FILE for programs
	@scripts/build release all
	@scripts/bench all $(JSON)

install: needs  ## the library and the program (PREFIX=DIR)
	@scripts/build release weir weir_libraries
	@cmake --install build/release --prefix $(PREFIX)

bench-%: needs-bench
	@scripts/build release all
	@scripts/bench $* $(JSON)

check: needs-test  ## format, tidy, include rules, sanitizers
	@scripts/check all

format:  ## rewrites the C++ sources as clang-format wants them
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

needs:
	@scripts/needs build
needs-test:
	@scripts/needs build test
needs-bench:
	@scripts/needs build bench

clean:  ## removes what was built; data stays
	rm -rf build ui/dist ui/node_modules
