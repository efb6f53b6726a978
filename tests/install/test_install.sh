#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs a build, moves what was installed to another folder, and builds and runs programs from there: C with
# find_package, C++ with pkg-config, each with librondo.so and with librondo.a; C on MPI with both; and C that loads
# librondo.so by itself.
#   test_install.sh BUILD_FOLDER CMAKE
set -euo pipefail

build=$1 cmake=$2
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/rondo-install.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  echo "test_install: $1" >&2
  exit 1
}

# expect_ok COMMAND...: runs a consumer, which ends its line with "ok".
expect_ok() {
  local said
  said=$("$@") || fail "$* failed: $said"
  [ "$said" = "$version ok" ] || fail "$* said '$said' instead of '$version ok'"
}

version=$(sed -n 's/^#define RONDO_VERSION_STRING "\(.*\)"$/\1/p' "$source/include/rondo/version.h")
prefix=$work/moved

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$prefix"
library_folder=$(cd "$(dirname "$(find "$prefix" -name librondo.a)")" && pwd)

# What is installed, whole, and without a trace of where it was built.
has_mpi=OFF
if [ -e "$library_folder/librondo_mpi.so" ]; then has_mpi=ON; fi
for header in "$source"/include/rondo/*.h "$source/include/rondo/rondo.hpp"; do
  if [ "$has_mpi" = OFF ] && [ "$(basename "$header")" = mpi.h ]; then continue; fi
  cmp "$header" "$prefix/include/rondo/$(basename "$header")" || fail "a header was not installed as it is"
done
for file in librondo.so "librondo.so.$version" pkgconfig/rondo.pc cmake/rondo/rondo-config.cmake; do
  [ -e "$library_folder/$file" ] || fail "$file was not installed"
done
if grep -rlF -e "$work/first" -e "$source" "$library_folder/cmake" "$library_folder/pkgconfig"; then
  fail "an installed package file names the folder it was built in or installed to"
fi

# C, with find_package.
"$cmake" -S "$here/cmake_consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DRONDO_EXPECTED_VERSION="$version" \
  -DRONDO_EXPECTED_MPI=$has_mpi -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$work/cmake.log" ||
  fail "find_package(rondo) failed: $(cat "$work/cmake.log")"
"$cmake" --build "$work/cmake" >"$work/build.log" || fail "the CMake consumer does not build: $(cat "$work/build.log")"
expect_ok "$work/cmake/consumer_rondo"
expect_ok "$work/cmake/consumer_rondo_static"
if [ "$has_mpi" = ON ]; then expect_ok "$work/cmake/consumer_mpi"; fi

# C++, with pkg-config.
export PKG_CONFIG_PATH=$library_folder/pkgconfig
[ "$(pkg-config --modversion rondo)" = "$version" ] || fail "pkg-config gives another version than $version"
cxx=(c++ -std=c++17 -Wall -Wextra -Werror "$here/consumer.cpp")
read -ra flags < <(pkg-config --cflags --libs rondo)
"${cxx[@]}" "${flags[@]}" -o "$work/cpp_shared"
expect_ok env LD_LIBRARY_PATH="$library_folder" "$work/cpp_shared"

# C on MPI, with pkg-config and the compiler of the MPI that the component was built for.
if [ "$has_mpi" = ON ]; then
  [ "$(pkg-config --modversion rondo-mpi)" = "$version" ] || fail "pkg-config gives another rondo-mpi than $version"
  mpicc=$(sed -n 's/^MPI_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
  read -ra flags < <(pkg-config --cflags --libs rondo-mpi)
  "$mpicc" -std=c11 -Wall -Wextra -Werror "$here/consumer_mpi.c" "${flags[@]}" -o "$work/mpi_shared"
  expect_ok env LD_LIBRARY_PATH="$library_folder" "$work/mpi_shared"
fi

# Loaded while a program runs.
cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "-I$prefix/include" "$here/loader.c" -o "$work/loader" -pthread -ldl
expect_ok "$work/loader" "$library_folder/librondo.so"

if [ -x "$prefix/bin/rondo" ]; then
  [ "$("$prefix/bin/rondo" --version)" = "rondo $version" ] || fail "the installed tool does not say its version"
  for page in $("$prefix/bin/rondo" --help | sed -nE 's/^  ([a-z]+) .*/-\1/p') ''; do
    [ -s "$prefix/share/man/man1/rondo$page.1" ] || fail "the manual page rondo$page(1) was not installed"
  done
fi
[ -s "$prefix/share/man/man7/rondo-environment.7" ] || fail "the manual page rondo-environment(7) was not installed"
for file in README.md docs/how-to/serve.md docs/pictures/gpt-step.svg examples/serve.c; do
  [ -s "$prefix/share/doc/rondo/$file" ] || fail "$file was not installed"
done

# C++ with the static library alone, as on a machine without librondo.so.
rm "$library_folder"/librondo.so*
read -ra flags < <(pkg-config --static --cflags --libs rondo)
"${cxx[@]}" "${flags[@]}" -o "$work/cpp_static"
expect_ok "$work/cpp_static"

# A staged install, as packagers make it.
DESTDIR=$work/stage "$cmake" --install "$build" --prefix /usr >/dev/null
[ -e "$work/stage/usr/include/rondo/version.h" ] || fail "DESTDIR was not used"
echo "test_install: all consumers ran"
