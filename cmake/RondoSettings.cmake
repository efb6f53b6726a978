# SPDX-License-Identifier: MIT
# Flags of everything built here. They hang on the target rondo_settings, so that a project which adds this one with
# add_subdirectory() keeps its own; only sanitizers, which must agree across a whole process, are global.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# Tests, examples and benchmarks have parts in C++. Its compiler is the C compiler's, because they share the sanitizers.
if(RONDO_BUILD_TESTS OR RONDO_BUILD_EXAMPLES OR RONDO_BUILD_BENCH)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND NOT CMAKE_CXX_COMPILER)
    cmake_path(GET CMAKE_C_COMPILER PARENT_PATH compiler_folder)
    find_program(CMAKE_CXX_COMPILER clang++ HINTS "${compiler_folder}" DOC "The C++ compiler")
  endif()
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
  endif()
endif()

add_library(rondo_settings INTERFACE)
target_compile_options(rondo_settings INTERFACE
  -Wall -Wextra
  $<$<COMPILE_LANGUAGE:C>:-Wshadow;-Wconversion;-Wstrict-prototypes;-Wvla>
  $<$<COMPILE_LANGUAGE:C>:-fno-math-errno>  # nobody reads errno after sqrtf, which is then one instruction
  $<$<COMPILE_LANGUAGE:C>:-fno-trapping-math>  # nor the flags of comparisons, which are then vectorised
  $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>  # the same bits whether a processor has fused multiply-adds or not
  $<$<BOOL:${RONDO_WERROR}>:-Werror>)

# What Debian hardens its packages with, in optimised builds: overflows of the stack and of known buffers end the process,
# jumps go to marked places only, and tables of addresses are read-only once the program is loaded.
if(RONDO_HARDENING AND NOT RONDO_SANITIZE AND NOT RONDO_COVERAGE AND NOT RONDO_BUILD_FUZZ)
  set(RONDO_HARDENED ON)
  include(CheckCCompilerFlag)
  set(hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "RONDO_HAS${flag}" has)
    check_c_compiler_flag("-Werror ${flag}" ${has})  # each processor has one of the last two
    if(${has})
      list(APPEND hardening ${flag})
    endif()
  endforeach()
  target_compile_options(rondo_settings INTERFACE "$<$<NOT:$<CONFIG:Debug>>:${hardening}>")
  target_link_options(rondo_settings INTERFACE "LINKER:-z,relro" "LINKER:-z,now")
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C)
endif()

if(RONDO_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # Instrumented code makes gcc see these where there are none (its manual, at -fsanitize); other builds look for them.
  target_compile_options(rondo_settings INTERFACE -Wno-maybe-uninitialized)
endif()

# Gives a target of this project its flags and its language level.
function(rondo_apply_settings target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:rondo_settings>)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()

# Fails with the Debian package to install when a library found with pkg-config is missing.
function(rondo_require_package prefix module package why)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL "${module}")
  endif()
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} was not found with pkg-config: install the packages pkg-config and ${package} "
                        "(scripts/setup does it), or ${why}.")
  endif()
  set(${prefix}_FOUND TRUE PARENT_SCOPE)
endfunction()

if(RONDO_SANITIZE)
  add_compile_options(-fsanitize=${RONDO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RONDO_SANITIZE})
endif()
if(RONDO_BUILD_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RONDO_BUILD_FUZZ needs clang, because libFuzzer comes with it: configure with "
                        "-DCMAKE_C_COMPILER=clang or the preset 'fuzz'.")
  endif()
endif()
if(RONDO_COVERAGE)
  add_link_options(--coverage)  # what is compiled for it is the library alone
endif()
