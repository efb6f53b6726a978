# SPDX-License-Identifier: MIT
# What the component rondo-onnx is built with: protobuf-c, whose compiler turns src/onnx/format/onnx.proto into C.
if(NOT "onnx" IN_LIST rondo_components)
  return()
endif()

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(RONDO_PROTOBUF_C QUIET IMPORTED_TARGET GLOBAL libprotobuf-c)
endif()
find_program(RONDO_PROTOC_C protoc-c DOC "protobuf-c's compiler, for rondo-onnx")
if(NOT RONDO_PROTOBUF_C_FOUND OR NOT RONDO_PROTOC_C)
  set(remedy "install the packages libprotobuf-c-dev and protobuf-c-compiler")
  if(NOT rondo_is_optional)
    message(FATAL_ERROR "No protobuf-c was found: ${remedy}, or leave onnx out of RONDO_COMPONENTS.")
  endif()
  message(STATUS "No protobuf-c was found, so rondo-onnx and rondo-triton are not built: ${remedy} for them")
  list(REMOVE_ITEM rondo_components onnx triton)
  return()
endif()

set(rondo_onnx_messages "${PROJECT_BINARY_DIR}/generated")  # below it is onnx/format/onnx.pb-c.h

# Adds the messages of ONNX files, in C, to the sources of the layer.
function(rondo_add_onnx_messages target)
  set(folder "${rondo_onnx_messages}/onnx/format")
  set(description "${PROJECT_SOURCE_DIR}/src/onnx/format/onnx.proto")
  cmake_path(GET description PARENT_PATH description_folder)
  set(generated "${folder}/onnx.pb-c.c")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    OUTPUT "${generated}" "${folder}/onnx.pb-c.h"
    COMMAND "${RONDO_PROTOC_C}" "--proto_path=${description_folder}" "--c_out=${folder}" "${description}"
    DEPENDS "${description}"
    COMMENT "Generating the messages of ONNX files" VERBATIM)
  target_sources(${target} PRIVATE "${generated}")
  target_include_directories(${target} SYSTEM PRIVATE "${rondo_onnx_messages}")
  target_link_libraries(${target} PRIVATE PkgConfig::RONDO_PROTOBUF_C)
endfunction()
