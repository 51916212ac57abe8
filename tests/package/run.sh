#!/usr/bin/env bash
# Installs the package into a temporary folder and builds a program against it; then builds the parts without
# coroutines, and that program, with the system's own compiler. usage: run.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

consume() {  # PREFIX COMPILER
  cmake -S "$source/tests/package" -B "$work/consumer-$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" -DCMAKE_CXX_COMPILER="$2" -DCMAKE_BUILD_TYPE=Release
  cmake --build "$work/consumer-$2"
  "$work/consumer-$2/consumer"
}

if ! grep -q '^WEIR_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
  cmake --install "$build" --prefix "$work/prefix" >/dev/null
  consume "$work/prefix" clang++-19
fi

cmake -S "$source" -B "$work/plain" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc -DWEIR_COROUTINES=OFF \
  -DWEIR_TESTS=OFF -DWEIR_BENCHMARKS=OFF -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/plain"
cmake --install "$work/plain" --prefix "$work/plain-prefix" >/dev/null
consume "$work/plain-prefix" g++

# With coroutines that compiler is refused, with the reason.
if "g++" -dumpversion | grep -qE '^([0-9]|1[0-2])$'; then
  if cmake -S "$source" -B "$work/refused" -G Ninja -DCMAKE_CXX_COMPILER=g++ >"$work/refused.log" 2>&1; then
    echo "a compiler that miscompiles coroutines was accepted" >&2
    exit 1
  fi
  grep -q miscompiles "$work/refused.log"
fi
