#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# AD-7: a project that builds Rondo with itself gets the core with one line, and no tests, tools, install rules or
# downloads; with RONDO_COMPONENTS, other components too.
#   test_embedding.sh CMAKE C-COMPILER
set -euo pipefail

cmake=$1 compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rondo-embedding.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset CMAKE_GENERATOR

fail() {
  echo "test_embedding: $1" >&2
  exit 1
}

# configure FOLDER HOW [OPTION...]: without optimisation and debug information, which nothing here needs.
configure() {
  "$cmake" -S "$here/embedding" -B "$work/$1" -G Ninja -DRONDO_SOURCE="$source" -DEMBED_BY="$2" \
    -DFETCHCONTENT_FULLY_DISCONNECTED=ON -DCMAKE_C_COMPILER="$compiler" -DCMAKE_C_FLAGS=-O0 "${@:3}" \
    >"$work/configure.log" 2>&1 || fail "$2 does not configure: $(cat "$work/configure.log")"
}

configure fetched FetchContent
"$cmake" --build "$work/fetched" >"$work/build.log" || fail "the project does not build: $(tail -20 "$work/build.log")"
version=$(sed -n 's/^#define RONDO_VERSION_STRING "\(.*\)"$/\1/p' "$source/include/rondo/version.h")
[ "$("$work/fetched/consumer")" = "$version ok" ] || fail "the consumer failed"

# Nothing else was built or looked for, and the project is as it was.
others=$(find "$work/fetched" \( -name '*.a' -o -name '*.so' -o -type f -executable \) -not -path '*/CMakeFiles/*' \
  -not -name consumer -not -name 'librondo.so*')
[ -z "$others" ] || fail "was built too: $others"
tests=$(cd "$work/fetched" && "${cmake%cmake}ctest" -N)
grep -q 'Total Tests: 0' <<<"$tests" || fail "the project got tests: $tests"
for variable in CMAKE_CXX_COMPILER: MPI_ CMOCKA_ JANSSON_; do
  if grep -q "^$variable" "$work/fetched/CMakeCache.txt"; then fail "the project looked for ${variable%[:_]}"; fi
done
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$work/fetched/CMakeCache.txt" || fail "the project got another CMAKE_BUILD_TYPE"
"$cmake" --install "$work/fetched" --prefix "$work/installed" >/dev/null
[ "$(cd "$work/installed" && find . -type f)" = ./bin/consumer ] || fail "the project installs Rondo"

# More of it, if it is asked for.
configure added add_subdirectory -DRONDO_COMPONENTS=session
targets=$("$cmake" --build "$work/added" -- -t targets all)
grep -q '^consumer_session:' <<<"$targets" || fail "there is no rondo::session"
echo "test_embedding: the core is there with one line, and nothing else"
