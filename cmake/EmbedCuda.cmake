# SPDX-License-Identifier: MIT
# Writes CUDA sources as C strings. Each string has the included files in it, because NVRTC is given one text.
# cmake -DROOT=<the folder of includes> -DSOURCES=<files> -DHEADER=<what declares them> -DOUTPUT=<file>
#       [-DLIST=<an array with the names and texts>] -P EmbedCuda.cmake
#
# x/add.cu becomes `const char rondo_cuda_add[]`. A source can be a template of several texts:
# - Kernels called <name>_TYPE: one text for each float type, rondo_cuda_add_f32, _f16 and _bf16, with kernels of these
#   names and ELEMENT_IS_F32, _F16 or _BF16 defined. Kernels called <name>_NUMBER: also _i32, _i64, _i8, _u8 and
#   _bool. In a source with both, those called _TYPE are between #ifdef ELEMENT_IS_FLOAT and #endif.
# - Kernels called <TABLE>_TYPE or <TABLE>_NUMBER, in capitals: one set of these texts for each row `TABLE(<name>, ...)` of
#   a table that the source includes. The row's name replaces TABLE. A row `NUMBER_TABLE(<name>, ...)` has all types, and
#   a row `INTEGER_TABLE(<name>, ...)` has integers and BOOL.
#
# If a source has functions called <operator>_of, the text between its includes and its first kernel becomes a string
# too: rondo_cuda_add_functions. A source that includes another source gets that text of it.
cmake_minimum_required(VERSION 3.25)

# The text between the includes and the first kernel. The tables (.inc) among the includes are part of it.
function(keep_functions text out_var)
  string(FIND "${text}" "extern \"C\"" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  string(REGEX REPLACE "^.*#include \"[^\"\n]+\\.cuh?\"\n" "" text "${text}")
  set(${out_var} "${text}" PARENT_SCOPE)
endfunction()

# Replaces #include lines in the text by the files; the second time that a file is included, by nothing.
function(expand_includes text out_var)
  while(text MATCHES "#include \"([^\"\n]+)\"\n")
    set(line "${CMAKE_MATCH_0}")
    set(path "${CMAKE_MATCH_1}")
    set(included "")
    get_property(known GLOBAL PROPERTY included_files)
    if(NOT "${path}" IN_LIST known)
      set_property(GLOBAL APPEND PROPERTY included_files "${path}")
      file(READ "${ROOT}/${path}" included)
      if(path MATCHES "\\.cu$")
        keep_functions("${included}" included)
      endif()
      expand_includes("${included}" included)
    endif()
    string(REPLACE "${line}" "${included}" text "${text}")
  endwhile()
  set(${out_var} "${text}" PARENT_SCOPE)
endfunction()

# Writes a string to the output, and adds a line to `list`.
function(add_text name text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  file(APPEND "${unfinished}" "\nconst char rondo_cuda_${name}[] =\n\"${text}\";\n")
  set(list "${list}    {\"${name}\", rondo_cuda_${name}},\n" PARENT_SCOPE)
endfunction()

# Adds the texts of one operator: one for each type that its kernels are templates of, or that the row's kind has.
function(add_typed_texts name text kind)
  set(types "")
  if(NOT kind STREQUAL "INTEGER_" AND text MATCHES "_(TYPE|NUMBER)\\(")
    list(APPEND types f32 f16 bf16)
  endif()
  if(kind MATCHES "NUMBER_|INTEGER_" OR text MATCHES "_NUMBER\\(")
    list(APPEND types i32 i64 i8 u8 bool)
  endif()
  if(NOT types)
    add_text("${name}" "${text}")
  endif()
  foreach(type IN LISTS types)
    string(TOUPPER "${type}" upper)
    string(REGEX REPLACE "_(TYPE|NUMBER)\\(" "_${type}(" typed "${text}")
    add_text("${name}_${type}" "#define ELEMENT_IS_${upper}\n${typed}")
  endforeach()
  set(list "${list}" PARENT_SCOPE)
endfunction()

set(unfinished "${OUTPUT}.unfinished")  # ten megabytes: a variable would be copied for each string
file(WRITE "${unfinished}" "#include \"${HEADER}\"\n")
set(list "")
foreach(source IN LISTS SOURCES)
  file(READ "${source}" own)
  cmake_path(GET source STEM name)
  set_property(GLOBAL PROPERTY included_files "")
  expand_includes("${own}" text)
  if(own MATCHES "__global__ void ([A-Z]+)_")
    set(table "${CMAKE_MATCH_1}")
    string(REGEX MATCHALL "\n([A-Z]+_)?${table}\\([a-z0-9_]+" rows "${text}")
    foreach(row IN LISTS rows)
      string(REGEX MATCH "[a-z0-9_]+$" operator "${row}")
      string(REPLACE "${table}_" "${operator}_" of_row "${text}")
      string(REGEX REPLACE "\n([A-Z_]*)${table}\\(.*" "\\1" kind "${row}")
      add_typed_texts("${operator}" "${of_row}" "${kind}")
    endforeach()
  else()
    add_typed_texts("${name}" "${text}" "")
  endif()
  set_property(GLOBAL PROPERTY included_files "")
  if(own MATCHES "__device__ inline [a-zA-Z0-9]+ [a-z0-9_#]+_of\\(")
    keep_functions("${own}" own)
    expand_includes("${own}" own)
    add_text("${name}_functions" "${own}")
  endif()
endforeach()
if(LIST)
  string(REGEX REPLACE "    {\"[a-z0-9_]+_functions\"[^\n]+\n" "" list "${list}")
  file(APPEND "${unfinished}" "\nconst rondo_cuda_text ${LIST}[] = {\n${list}    {0, 0}};\n")
endif()
file(RENAME "${unfinished}" "${OUTPUT}")
