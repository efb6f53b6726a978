# SPDX-License-Identifier: MIT
# The library: one object library for each layer, and from the same objects librondo.so, librondo.a and, for tests, the
# archive rondo_internal, whose internal names can be linked to.

# From the bottom up; scripts/check-layers holds the rules for includes.
set(RONDO_LAYERS base vendor graph plan device memory exec tree tensor session render)

find_package(Threads REQUIRED)

# Adds the layer's CUDA sources, as C strings, to the list `sources_var`. `header` declares them; another argument names
# an array of all of them.
function(rondo_embed_cuda layer header sources_var)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.cu")
  file(GLOB_RECURSE cuda_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.cuh"
       "${PROJECT_SOURCE_DIR}/src/${layer}/*.inc")
  set(script "${PROJECT_SOURCE_DIR}/cmake/EmbedCuda.cmake")
  set(output "${PROJECT_BINARY_DIR}/embedded/${layer}_cuda_sources.c")
  string(REPLACE ";" "$<SEMICOLON>" list "${cuda_sources}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}/src" "-DSOURCES=${list}" "-DHEADER=${header}"
            "-DOUTPUT=${output}" "-DLIST=${ARGN}" -P "${script}"
    DEPENDS "${script}" ${cuda_sources} ${cuda_headers}
    COMMENT "Embedding the CUDA sources of ${layer}" VERBATIM)
  set(${sources_var} ${${sources_var}} "${output}" PARENT_SCOPE)
endfunction()

# What a warm launch or call of a function runs through. Of these files, only functions with arrays have a stack
# protector; -fstack-protector-strong also guards those that take the address of a variable, and cost calls of functions
# 5 % of their instructions.
if(RONDO_HARDENED)
  set(hot_sources
    src/device/cpu/cpu_queue.c src/device/cpu/cpu_timeline.c src/device/cuda/cuda_executable.c
    src/device/cuda/cuda_queue.c src/device/cuda/cuda_update.c src/exec/launch/launch.c src/exec/patch/patch.c src/tree/path/buffer.c src/tree/call.c src/tree/call_inputs.c
    src/tree/recording_key.c src/tree/path/outputs.c src/tree/path/path.c src/tree/recorded_calls.c src/tree/replay.c src/tree/tree.c)
  set_source_files_properties(${hot_sources} PROPERTIES COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-fstack-protector>")
endif()

# Its loops are what large collectives wait for, and -O2 of gcc leaves them scalar.
set_source_files_properties(src/exec/collective/collective_reduce.c
                            PROPERTIES COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>")

# libFuzzer notes what is compared, to put it into inputs, which takes up to half of the time. It helps where bytes of
# the input are compared: in what reads files and text. Elsewhere inputs are streams of calls.
set(untraced_layers)
if(RONDO_BUILD_FUZZ)
  set(untraced_layers plan device memory exec tree)
  file(GLOB sources "${PROJECT_SOURCE_DIR}/src/graph/verify/*.c")
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)
endif()

set(rondo_objects)
foreach(layer IN LISTS RONDO_LAYERS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.c")
  set(target "rondo_layer_${layer}")
  if(layer STREQUAL "exec")
    rondo_embed_cuda(exec exec/random/random_cuda_sources.h sources)
  elseif(layer STREQUAL "tensor")
    rondo_embed_cuda(tensor tensor/operators/common/operator_cuda_sources.h sources rondo_operator_cuda_texts)
  endif()
  add_library(${target} OBJECT ${sources})
  rondo_apply_settings(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE Threads::Threads)
  if(RONDO_COVERAGE)
    # Not the tests: the loops of the fake libraries, counted atomically by several threads, took minutes.
    target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
  endif()
  if(layer IN_LIST untraced_layers)
    target_compile_options(${target} PRIVATE -fno-sanitize-coverage=trace-cmp)
  endif()
  list(APPEND rondo_objects $<TARGET_OBJECTS:${target}>)
endforeach()

add_library(rondo SHARED ${rondo_objects})
target_link_libraries(rondo PRIVATE $<BUILD_INTERFACE:rondo_settings>)
add_library(rondo_internal STATIC EXCLUDE_FROM_ALL ${rondo_objects})

# librondo.a is one object in which all but the public names are local, so that no internal name meets one of the
# program's. Objects of sanitizers and of coverage stay as they are.
set(rondo_static_objects ${rondo_objects})
if(NOT RONDO_SANITIZE AND NOT RONDO_BUILD_FUZZ AND NOT RONDO_COVERAGE)
  set(rondo_static_objects "${PROJECT_BINARY_DIR}/rondo_static.o")
  add_custom_command(
    OUTPUT "${rondo_static_objects}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${rondo_static_objects}"
            -Wl,--whole-archive "$<TARGET_FILE:rondo_internal>" -Wl,--no-whole-archive
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${rondo_static_objects}"
    DEPENDS rondo_internal
    COMMENT "Joining the objects of librondo.a" VERBATIM)
  set_source_files_properties("${rondo_static_objects}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
endif()
add_library(rondo_static STATIC ${rondo_static_objects})
add_library(rondo::rondo ALIAS rondo)
add_library(rondo::rondo_static ALIAS rondo_static)
set_target_properties(rondo rondo_static PROPERTIES OUTPUT_NAME rondo)
foreach(target IN ITEMS rondo rondo_static rondo_internal)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_compile_features(${target} INTERFACE c_std_99)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
endforeach()

# Before 1.0 every minor version is an ABI of its own.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(rondo_abi_version "0.${PROJECT_VERSION_MINOR}")
else()
  set(rondo_abi_version "${PROJECT_VERSION_MAJOR}")
endif()
set_target_properties(rondo PROPERTIES VERSION "${PROJECT_VERSION}" SOVERSION "${rondo_abi_version}")
if(NOT RONDO_SANITIZE AND NOT RONDO_BUILD_FUZZ)
  # Each symbol carries the ABI it belongs to, so that two of them can be in one process and the loader names what a
  # program was linked with and does not find.
  set(rondo_version_script "${PROJECT_BINARY_DIR}/librondo.map")
  file(CONFIGURE OUTPUT "${rondo_version_script}" @ONLY
       CONTENT "RONDO_@rondo_abi_version@ { global: rondo_*; local: *; };\n")
  target_link_options(rondo PRIVATE "LINKER:--version-script=${rondo_version_script}"
                      "LINKER:-z,defs")  # sanitizer run times are in the executable only
  set_target_properties(rondo PROPERTIES LINK_DEPENDS "${rondo_version_script}")
endif()
