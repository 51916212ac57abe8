#!/usr/bin/env bash
# Installs the library into a temporary folder and builds programs against it, with the components that each needs;
# then builds the parts without coroutines, and their program, with the system's own compiler.
# usage: run.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

configure() {  # PREFIX COMPILER PROGRAM [ARGUMENT..]
  cmake -S "$source/tests/package/$3" -B "$work/$3-$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" -DCMAKE_CXX_COMPILER="$2" "${@:4}"
}

consume() {  # PREFIX COMPILER PROGRAM [ARGUMENT..]
  configure "$1" "$2" "$3"
  cmake --build "$work/$3-$2"
  "$work/$3-$2/consumer" "${@:4}"
}

if ! grep -q '^WEIR_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
  cmake --install "$build" --component library --prefix "$work/prefix" >/dev/null
  configure "$work/prefix" clang++-19 finds
  consume "$work/prefix" clang++-19 plain
  consume "$work/prefix" clang++-19 service "$work/rivers.db"
fi

cmake -S "$source" -B "$work/without" -G Ninja -DCMAKE_CXX_COMPILER=g++ -DCMAKE_C_COMPILER=gcc -DWEIR_COROUTINES=OFF \
  -DWEIR_TESTS=OFF -DWEIR_BENCHMARKS=OFF -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/without"
cmake --install "$work/without" --prefix "$work/without-prefix" >/dev/null
consume "$work/without-prefix" g++ plain

# With coroutines that compiler is refused, with the reason.
if "g++" -dumpversion | grep -qE '^([0-9]|1[0-2])$'; then
  if cmake -S "$source" -B "$work/refused" -G Ninja -DCMAKE_CXX_COMPILER=g++ >"$work/refused.log" 2>&1; then
    echo "a compiler that miscompiles coroutines was accepted" >&2
    exit 1
  fi
  grep -q miscompiles "$work/refused.log"
fi
