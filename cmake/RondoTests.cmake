# SPDX-License-Identifier: MIT
# Registers tests: those of tests/, the examples and the benchmarks. A preset leaves out tests by their names
# (RONDO_TEST_EXCLUDE). Programs of tests are built if a test runs them, so what a preset leaves out is not built either.

set(RONDO_TEST_TIMEOUT 120 CACHE STRING "Seconds that a test may take; four times as many with a sanitizer")
set(RONDO_TEST_EXCLUDE "" CACHE STRING "A regular expression: leaves out tests with these names, and their programs")

set(rondo_test_timeout "${RONDO_TEST_TIMEOUT}")
if(RONDO_SANITIZE OR RONDO_COVERAGE OR RONDO_BUILD_FUZZ)
  math(EXPR rondo_test_timeout "4 * ${RONDO_TEST_TIMEOUT}")
endif()
# Each of some thousand calls fails once; and the real NVRTC compiles some hundred sources.
math(EXPR rondo_sweep_timeout "3 * ${rondo_test_timeout}")
math(EXPR rondo_long_timeout "6 * ${rondo_test_timeout}")

# Sets `out_var` to whether tests with the name are left out.
function(rondo_is_test_excluded name out_var)
  set(${out_var} FALSE PARENT_SCOPE)
  if(RONDO_TEST_EXCLUDE AND name MATCHES "${RONDO_TEST_EXCLUDE}")
    set(${out_var} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Long tests start first, so that no processor is idle at the end: about how many seconds one takes whose name matches.
# The first row that matches counts; of others, it is 1.
set(rondo_test_costs "-ptx$=60" "^unit/tensor/kernel_sources$=90" "^fault/fault_(cuda_)?(session|program|tree|region)=50"
    "^cli/(files|serve|generate|checkpoint|train|graph)=40" "^install/=30" "^(fault|cli|mpi/train)/=20"
    "^(stress|bench|unit/plan)/=10" "^(mpi|fuzz|example|operators)/=5")

function(rondo_cost_of_test name out_var)
  set(${out_var} 1 PARENT_SCOPE)
  foreach(row IN LISTS rondo_test_costs)
    string(REGEX MATCH "^(.*)=([0-9]+)$" row "${row}")
    if(name MATCHES "${CMAKE_MATCH_1}")
      string(REGEX REPLACE ".*=" "" cost "${row}")
      set(${out_var} "${cost}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# rondo_add_test(NAME n LABELS l... COMMAND c... [ENVIRONMENT e...] [PROPERTIES p...])
# The variable `test_environment` of the caller's folder is for all tests in it.
function(rondo_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "LABELS;COMMAND;ENVIRONMENT;PROPERTIES")
  rondo_is_test_excluded("${arg_NAME}" is_excluded)
  if(is_excluded)
    return()
  endif()
  add_test(NAME "${arg_NAME}" COMMAND ${arg_COMMAND})
  rondo_cost_of_test("${arg_NAME}" cost)
  set_tests_properties("${arg_NAME}" PROPERTIES
    TIMEOUT "${rondo_test_timeout}" SKIP_RETURN_CODE 77 LABELS "${arg_LABELS}" COST "${cost}"
    ENVIRONMENT "${test_environment};${arg_ENVIRONMENT}" ${arg_PROPERTIES})
  string(REGEX MATCHALL "<TARGET_FILE:[a-z0-9_]+" programs "${arg_COMMAND}")
  list(TRANSFORM programs REPLACE "<TARGET_FILE:" "")
  list(GET arg_COMMAND 0 program)
  foreach(program IN LISTS programs ITEMS "${program}")
    if(TARGET "${program}")
      set_target_properties("${program}" PROPERTIES EXCLUDE_FROM_ALL FALSE)
    endif()
  endforeach()
endfunction()
