#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs a build, moves what was installed to another folder, and builds and runs programs from there (AD-7): C with
# find_package, C and C++ with pkg-config, with each component that was built, shared and static; and C that loads the
# shared libraries by itself. The core needs the C library alone, and a component of another release is refused.
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
components=()
for component in tensor session mpi onnx; do
  if [ -e "$library_folder/librondo_$component.so" ]; then components+=("$component"); fi
done
backend=$library_folder/rondo/triton/rondo/libtriton_rondo.so
has_backend=
[ ! -e "$backend" ] || has_backend=triton
is_built() { [[ " core ${components[*]-} $has_backend " == *" $1 "* ]]; }
if [ -n "$has_backend" ] && ldd "$backend" | grep -q "not found"; then
  fail "the backend for Triton does not find the libraries that were installed: $(ldd "$backend")"
fi
for header in "$source"/include/rondo/*.h "$source/include/rondo/rondo.hpp"; do
  component=$(sed -n 's/^ \* Component: rondo-\([a-z]*\)\.$/\1/p' "$header")
  installed=$prefix/include/rondo/$(basename "$header")
  if is_built "${component:-core}"; then
    cmp "$header" "$installed" || fail "a header was not installed as it is"
  elif [ -e "$installed" ]; then
    fail "$header was installed without its component"
  fi
done
for file in librondo.so "librondo.so.$version" pkgconfig/rondo.pc cmake/rondo/rondo-config.cmake; do
  [ -e "$library_folder/$file" ] || fail "$file was not installed"
done
for component in "${components[@]}"; do
  [ "$(pkg-config --modversion "$library_folder/pkgconfig/rondo-$component.pc")" = "$version" ] ||
    fail "pkg-config does not give the version $version of rondo-$component"
done
needed=$(readelf -d "$library_folder/librondo.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
  grep -Ev '^(libc\.so\.6|ld-linux-.*|libpthread\.so\.0|libdl\.so\.2)$' || true) # the last two before glibc 2.34
[ -z "$needed" ] || fail "librondo.so needs $needed"
if grep -rlF -e "$work/first" -e "$source" "$library_folder/cmake" "$library_folder/pkgconfig"; then
  fail "an installed package file names the folder it was built in or installed to"
fi

# C, with find_package.
expected=$(IFS=';' && echo "${components[*]-}")
"$cmake" -S "$here/cmake_consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DRONDO_EXPECTED_VERSION="$version" \
  -DRONDO_EXPECTED="$expected" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$work/cmake.log" ||
  fail "find_package(rondo) failed: $(cat "$work/cmake.log")"
"$cmake" --build "$work/cmake" >"$work/build.log" || fail "the CMake consumer does not build: $(cat "$work/build.log")"
for consumer in "$work"/cmake/consumer_*; do expect_ok "$consumer"; done

# C, with pkg-config; on MPI with the compiler of the MPI that the component was built for.
export PKG_CONFIG_PATH=$library_folder/pkgconfig
for component in "${components[@]}"; do
  compiler=cc
  if [ "$component" = mpi ]; then compiler=$(sed -n 's/^MPI_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt"); fi
  read -ra flags < <(pkg-config --cflags --libs "rondo-$component")
  "$compiler" -std=c11 -Wall -Wextra -Werror "$here/consumer_$component.c" "${flags[@]}" -o "$work/$component"
  expect_ok env LD_LIBRARY_PATH="$library_folder" "$work/$component"
done

# Of another release, the core serves programs, but not components.
if is_built tensor; then
  mkdir "$work/other"
  sed "s/RONDO_PRIVATE_$version/RONDO_PRIVATE_${version%?}x/" "$library_folder/librondo.so" >"$work/other/librondo.so.${version%.*}"
  expect_ok env LD_LIBRARY_PATH="$work/other" "$work/cmake/consumer_rondo"
  LD_LIBRARY_PATH=$work/other:$library_folder "$work/tensor" >"$work/refused" 2>&1 && fail "components of two releases run"
  grep -q "version .RONDO_PRIVATE_$version. not found" "$work/refused" || fail "no reason: $(cat "$work/refused")"
fi

# C++, with pkg-config.
[ "$(pkg-config --modversion rondo)" = "$version" ] || fail "pkg-config gives another version than $version"
cxx=(c++ -std=c++17 -Wall -Wextra -Werror "$here/consumer.cpp")
read -ra flags < <(pkg-config --cflags --libs rondo)
"${cxx[@]}" "${flags[@]}" -o "$work/cpp_shared"
echo '#include <rondo/rondo.hpp>' | c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only "-I$prefix/include" -xc++ - ||
  fail "rondo.hpp does not compile with the headers that were installed"
expect_ok env LD_LIBRARY_PATH="$library_folder" "$work/cpp_shared"

# Loaded while a program runs.
cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "-I$prefix/include" "$here/loader.c" -o "$work/loader" -pthread -ldl
for library in "$library_folder/librondo.so" "${components[@]/#/$library_folder/librondo_}"; do
  if [ "$library" != "$library_folder/librondo_mpi" ]; then expect_ok "$work/loader" "${library%.so}.so"; fi
done

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

# With the archives alone, as on a machine without the shared libraries.
rm "$library_folder"/librondo*.so*
read -ra flags < <(pkg-config --static --cflags --libs rondo)
"${cxx[@]}" "${flags[@]}" -o "$work/cpp_static"
expect_ok "$work/cpp_static"
if is_built session; then
  read -ra flags < <(pkg-config --static --cflags --libs rondo-session)
  cc -std=c11 "$here/consumer_session.c" "${flags[@]}" -o "$work/session_static"
  expect_ok "$work/session_static"
fi

# A staged install, as packagers make it.
DESTDIR=$work/stage "$cmake" --install "$build" --prefix /usr >/dev/null
[ -e "$work/stage/usr/include/rondo/version.h" ] || fail "DESTDIR was not used"
echo "test_install: all consumers of the core and of ${components[*]-no component} ran"
