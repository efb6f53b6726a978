# SPDX-License-Identifier: MIT
# Writes CUDA sources as C strings, each with the files that it includes in it, because NVRTC is handed one text:
# cmake -DROOT=<the folder of includes> -DSOURCES=<files> -DHEADER=<what declares them> -DOUTPUT=<file> -P EmbedCuda.cmake
# x/add.cu becomes `const char rondo_cuda_add[]`. A source with kernels called <name>_TYPE is a template: it becomes three
# texts, rondo_cuda_add_f32, _f16 and _bf16, with kernels of these names and ELEMENT_IS_F32, _F16 or _BF16 defined; one
# with kernels called <name>_NUMBER becomes two more, _i32 and _i64. Where a source has functions called <operator>_of,
# what stands between its includes and its first kernel is a text too, rondo_cuda_add_functions; and that is what another
# one gets that includes it.
cmake_minimum_required(VERSION 3.25)

# What stands between the includes and the first kernel.
function(keep_functions text out_var)
  string(FIND "${text}" "extern \"C\"" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  string(REGEX REPLACE "^.*#include \"[^\"\n]+\"\n" "" text "${text}")
  set(${out_var} "${text}" PARENT_SCOPE)
endfunction()

# Puts included files in their place; the second time one is included, nothing.
function(expand path out_var)
  file(READ "${path}" text)
  if(ARGN AND path MATCHES "\\.cu$")
    keep_functions("${text}" text)
  endif()
  while(text MATCHES "#include \"([^\"\n]+)\"\n")
    set(line "${CMAKE_MATCH_0}")
    set(included "")
    get_property(known GLOBAL PROPERTY included_files)
    if(NOT "${CMAKE_MATCH_1}" IN_LIST known)
      set_property(GLOBAL APPEND PROPERTY included_files "${CMAKE_MATCH_1}")
      expand("${ROOT}/${CMAKE_MATCH_1}" included INCLUDED)
    endif()
    string(REPLACE "${line}" "${included}" text "${text}")
  endwhile()
  set(${out_var} "${text}" PARENT_SCOPE)
endfunction()

# Adds a text to `code`.
function(add_text name text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  string(APPEND code "\nconst char rondo_cuda_${name}[] =\n\"${text}\";\n")
  set(code "${code}" PARENT_SCOPE)
endfunction()

set(code "#include \"${HEADER}\"\n")
foreach(source IN LISTS SOURCES)
  set_property(GLOBAL PROPERTY included_files "")
  expand("${source}" text)
  cmake_path(GET source STEM name)
  set(types "")
  if(text MATCHES "_TYPE\\(")
    set(types f32 f16 bf16)
  elseif(text MATCHES "_NUMBER\\(")
    set(types f32 f16 bf16 i32 i64)
  endif()
  foreach(type IN LISTS types)
    string(TOUPPER "${type}" upper)
    string(REGEX REPLACE "_(TYPE|NUMBER)\\(" "_${type}(" typed "${text}")
    add_text("${name}_${type}" "#define ELEMENT_IS_${upper}\n${typed}")
  endforeach()
  if(NOT types)
    add_text("${name}" "${text}")
  endif()
  file(READ "${source}" own)
  if(own MATCHES "__device__ inline [a-zA-Z0-9]+ [a-z0-9_]+_of\\(")
    keep_functions("${own}" own)
    add_text("${name}_functions" "${own}")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "${code}")
