# SPDX-License-Identifier: MIT
# Reads the public names from headers. As a script it writes the version script of a library from its headers, so that
# the library exports the public functions with the version of the binary interface, which a program asks for, and what
# is marked with RONDO_PRIVATE (base/component.h) with the version of the release, which other components ask for:
# cmake -DHEADERS=<files> -DABI=<0.2> -DRELEASE=<0.2.0> -DOUTPUT=<file> -P RondoPublicNames.cmake

# The functions that a header declares with RONDO_API at the start of a line. scripts/check-symbols sees whether these
# are all of them.
function(rondo_public_names header out_var)
  file(READ "${header}" text)
  string(REGEX MATCHALL "\nRONDO_API [^(;]*[ *]rondo_[a-z0-9_]+\\(" names "${text}")
  list(TRANSFORM names REPLACE ".*[ *](rondo_[a-z0-9_]+)\\($" "\\1")
  set(${out_var} "${names}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  cmake_minimum_required(VERSION 3.25)
  set(list "")
  foreach(header IN LISTS HEADERS)
    rondo_public_names("${header}" names)
    foreach(name IN LISTS names)
      string(APPEND list " ${name};")
    endforeach()
  endforeach()
  file(WRITE "${OUTPUT}" "RONDO_${ABI} { global:${list} local: *; };\nRONDO_PRIVATE_${RELEASE} { global: rondo_*; };\n")
endif()
