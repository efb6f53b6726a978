# SPDX-License-Identifier: MIT
# The component rondo-triton: a backend of Triton Inference Server, which is found as DIR/rondo/libtriton_rondo.so with
# --backend-directory=DIR. It exports what the server looks up, and finds the server's functions when it is loaded. Beside
# it is language_model.so, which it loads for models of `rondo train --save`. That is code of the tool, through the public
# headers.
if(NOT "triton" IN_LIST rondo_components)
  return()
endif()

set(rondo_triton_folder "${CMAKE_INSTALL_LIBDIR}/rondo/triton")  # DIR, once it is installed

add_library(rondo_triton MODULE ${rondo_triton_objects})
target_link_libraries(rondo_triton PRIVATE rondo rondo_tensor rondo_session rondo_onnx Threads::Threads ${CMAKE_DL_LIBS}
                                           $<BUILD_INTERFACE:rondo_settings>)
set_target_properties(rondo_triton PROPERTIES
  LINKER_LANGUAGE C OUTPUT_NAME triton_rondo LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/triton/rondo"
  INSTALL_RPATH "$ORIGIN/../../..")
if(NOT RONDO_SANITIZE AND NOT RONDO_BUILD_FUZZ)
  target_link_options(rondo_triton PRIVATE "LINKER:-z,defs" "LINKER:-Bsymbolic-functions")
endif()

set(rondo_language_model_sources
  tools/rondo/triton/saved_model.c tools/rondo/triton/tool_error.c tools/rondo/models/model.c
  tools/rondo/models/model_character.c tools/rondo/models/model_file.c tools/rondo/models/model_gpt.c
  tools/rondo/models/model_quantized.c tools/rondo/train/vocabulary.c)
list(TRANSFORM rondo_language_model_sources PREPEND "${PROJECT_SOURCE_DIR}/")

# Adds the target, with the libraries that it links.
function(rondo_add_language_model target)
  add_library(${target} MODULE ${rondo_language_model_sources})
  rondo_apply_settings(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/tools/rondo")
  target_link_libraries(${target} PRIVATE ${ARGN} m)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME language_model PREFIX "" C_VISIBILITY_PRESET hidden)
endfunction()

rondo_add_language_model(rondo_language_model rondo rondo_tensor rondo_session)
set_target_properties(rondo_language_model PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/triton/rondo" INSTALL_RPATH "$ORIGIN/../../..")
add_dependencies(rondo_triton rondo_language_model)
