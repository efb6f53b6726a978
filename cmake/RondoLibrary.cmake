# SPDX-License-Identifier: MIT
# The libraries: one object library for each layer, and from the same objects a shared library and an archive for each
# component (rondo and rondo_static, rondo_tensor and rondo_tensor_static, ...) and, for tests, the archive
# rondo_internal, whose internal names can be linked to. Programs that are built here link rondo_all, of which the
# linker takes the components that they use.

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

# Public functions are called directly inside their library too; nobody replaces them.
include(CheckCCompilerFlag)
check_c_compiler_flag("-Werror -fno-semantic-interposition" RONDO_HAS_NO_INTERPOSITION)

# Adds the object library of a layer, and appends its objects to the list `objects_var`.
function(rondo_add_layer layer objects_var)
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
  if(RONDO_SANITIZE AND layer STREQUAL "tensor")
    target_compile_definitions(${target} PRIVATE RONDO_SINGLE_VECTOR_FORM=1)  # operators/common/vectors.h
  endif()
  if(layer STREQUAL "onnx")
    rondo_add_onnx_messages(${target})
  endif()
  if(RONDO_HAS_NO_INTERPOSITION)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  if(RONDO_COVERAGE)
    # Not the tests: the loops of the fake libraries, counted atomically by several threads, took minutes.
    target_compile_options(${target} PRIVATE --coverage -fprofile-update=atomic)
  endif()
  if(RONDO_BUILD_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(layer IN_LIST untraced_layers)
    target_compile_options(${target} PRIVATE -fno-sanitize-coverage=trace-cmp)
  endif()
  set(${objects_var} ${${objects_var}} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

# Before 1.0 every minor version is an ABI of its own.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(rondo_abi_version "0.${PROJECT_VERSION_MINOR}")
else()
  set(rondo_abi_version "${PROJECT_VERSION_MAJOR}")
endif()

# What a library and an archive have in common. Those of the core are called rondo, the others rondo_<component>.
function(rondo_set_up_library target component)
  set(suffix "")
  if(NOT component STREQUAL "core")
    set(suffix "_${component}")
  endif()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME "rondo${suffix}")
  target_compile_features(${target} INTERFACE c_std_99)
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# Each symbol carries the ABI it belongs to, so that two of them can be in one process and the loader names what a
# program was linked with and does not find.
function(rondo_add_version_script target headers)
  set(script "${PROJECT_SOURCE_DIR}/cmake/RondoPublicNames.cmake")
  set(output "${PROJECT_BINARY_DIR}/lib${target}.map")
  string(REPLACE ";" "$<SEMICOLON>" list "${headers}")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DHEADERS=${list}" "-DABI=${rondo_abi_version}" "-DRELEASE=${PROJECT_VERSION}"
            "-DOUTPUT=${output}" -P "${script}"
    DEPENDS "${script}" ${headers} VERBATIM)
  target_sources(${target} PRIVATE "${output}")
  target_link_options(${target} PRIVATE "LINKER:--version-script=${output}" "LINKER:-z,defs")
  set_target_properties(${target} PROPERTIES LINK_DEPENDS "${output}")
endfunction()

function(rondo_add_shared_library target component objects)
  add_library(${target} SHARED ${objects})
  rondo_set_up_library(${target} ${component})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:rondo_settings>)
  target_link_options(${target} PRIVATE "LINKER:-Bsymbolic-functions")
  set_target_properties(${target} PROPERTIES VERSION "${PROJECT_VERSION}" SOVERSION "${rondo_abi_version}")
  if(NOT component STREQUAL "core")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN")  # where the others are
  endif()
  if(NOT RONDO_SANITIZE AND NOT RONDO_BUILD_FUZZ)  # their run times are in the executable only
    rondo_add_version_script(${target} "${rondo_headers_${component}}")
  endif()
endfunction()

# An archive has one object in which all but the exported names are local, so that no internal name meets one of the
# program's. Objects of sanitizers and of coverage stay as they are.
function(rondo_add_archive target component objects)
  if(NOT RONDO_SANITIZE AND NOT RONDO_BUILD_FUZZ AND NOT RONDO_COVERAGE)
    set(joined "${PROJECT_BINARY_DIR}/${target}.o")
    add_custom_command(
      OUTPUT "${joined}"
      COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${joined}" ${objects}
      COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${joined}"
      DEPENDS ${objects}
      COMMENT "Joining the objects of ${target}" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${joined}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    string(REGEX MATCHALL "rondo_layer_[a-z_]+" layers "${objects}")
    set(objects "${joined}")
  endif()
  add_library(${target} STATIC ${objects})
  if(layers)
    add_dependencies(${target} ${layers})  # Make knows the order of targets, and not of another target's objects
  endif()
  rondo_set_up_library(${target} ${component})
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT RONDO_INSTALL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
endfunction()

add_library(rondo_all INTERFACE)
target_link_options(rondo_all INTERFACE "LINKER:--as-needed")
set(rondo_objects)
foreach(component IN ITEMS core tensor session onnx)
  if(NOT component IN_LIST rondo_components)
    continue()
  endif()
  set(objects)
  foreach(layer IN LISTS RONDO_LAYERS_${component})
    rondo_add_layer(${layer} objects)
  endforeach()
  list(APPEND rondo_objects ${objects})
  if(component STREQUAL "core")
    set(target rondo)
    set(name rondo)
  else()
    set(target rondo_${component})
    set(name ${component})
  endif()
  rondo_add_shared_library(${target} ${component} "${objects}")
  rondo_add_archive(${target}_static ${component} "${objects}")
  foreach(needed IN LISTS rondo_needs_${component})
    string(REPLACE "rondo_core" "rondo" needed "rondo_${needed}")
    target_link_libraries(${target} PUBLIC ${needed})
    target_link_libraries(${target}_static PUBLIC ${needed}_static)
  endforeach()
  if(NOT component STREQUAL "core")
    target_link_libraries(${target} PRIVATE m)
    target_link_libraries(${target}_static PRIVATE m)
  endif()
  if(component STREQUAL "onnx")
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:PkgConfig::RONDO_PROTOBUF_C>)
    target_link_libraries(${target}_static PRIVATE protobuf-c)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_target_properties(${target}_static PROPERTIES EXPORT_NAME ${name}_static)
  add_library(rondo::${name} ALIAS ${target})
  add_library(rondo::${name}_static ALIAS ${target}_static)
  target_link_libraries(rondo_all INTERFACE ${target})
endforeach()

# The backend of a server is a module of its own (RondoTriton.cmake); tests see inside it too.
set(rondo_triton_objects)
if("triton" IN_LIST rondo_components)
  rondo_add_layer(triton rondo_triton_objects)
  list(APPEND rondo_objects ${rondo_triton_objects})
endif()

add_library(rondo_internal STATIC EXCLUDE_FROM_ALL ${rondo_objects})
rondo_set_up_library(rondo_internal internal)
target_link_libraries(rondo_internal PRIVATE m)
if("onnx" IN_LIST rondo_components)
  target_link_libraries(rondo_internal PRIVATE PkgConfig::RONDO_PROTOBUF_C)
endif()
