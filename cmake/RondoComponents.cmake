# SPDX-License-Identifier: MIT
# The components that RONDO_COMPONENTS names, with those that they need, as `rondo_components`; and which public header
# and which function belongs to which, because users of the library may be built with some of them alone. A header of
# another component than the core says so: " * Component: rondo-tensor."
#
#   core      librondo.so: graphs, memory, plans, execs, trees. It needs the C library alone.
#   tensor    librondo_tensor.so: programs
#   session   librondo_session.so: serving
#   mpi       librondo_mpi.so: communicators from MPI (RondoMpi.cmake)
#   onnx      librondo_onnx.so: models in ONNX files (RondoOnnx.cmake)
#   triton    libtriton_rondo.so: the backend of Triton Inference Server (RondoTriton.cmake)

# From the bottom up; scripts/check-layers holds the rules for includes.
set(RONDO_LAYERS_core base vendor graph plan device memory exec tree render)
set(RONDO_LAYERS_tensor tensor)
set(RONDO_LAYERS_session session)
set(RONDO_LAYERS_onnx onnx)
set(RONDO_LAYERS_triton triton)

set(rondo_needs_core "")
set(rondo_needs_tensor core)
set(rondo_needs_session core tensor)
set(rondo_needs_mpi core)
set(rondo_needs_onnx core tensor)
set(rondo_needs_triton core tensor session onnx)

set(rondo_components core)
set(rondo_is_optional OFF)  # what is missing is left out
set(chosen ${RONDO_COMPONENTS})
if(chosen STREQUAL "all")
  set(chosen core tensor session mpi onnx triton)
  set(rondo_is_optional ON)
endif()
foreach(component IN LISTS chosen)
  if(NOT DEFINED rondo_needs_${component})
    message(FATAL_ERROR "RONDO_COMPONENTS names '${component}': choose from core, tensor, session, mpi, onnx and triton, or all.")
  endif()
  list(APPEND rondo_components ${rondo_needs_${component}} ${component})
endforeach()
list(REMOVE_DUPLICATES rondo_components)
include(RondoOnnx)

# By component: its public headers, and in those of components that are left out, the functions.
include(RondoPublicNames)
set(rondo_absent_functions "")
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/rondo/*.h" "${PROJECT_SOURCE_DIR}/include/rondo/*.hpp")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" component REGEX "^ [*] Component: rondo-[a-z]+\\.$")
  string(REGEX REPLACE "^ [*] Component: rondo-([a-z]+)\\.$" "\\1" component "${component}")
  if(component STREQUAL "")
    set(component core)
  endif()
  list(APPEND rondo_headers_${component} "${header}")
  if(NOT component IN_LIST rondo_components)
    rondo_public_names("${header}" names)
    list(APPEND rondo_absent_functions ${names})
  endif()
endforeach()

# Removes sources of programs that use a component that is left out from the list `sources_var`.
function(rondo_keep_buildable sources_var folder)
  set(kept)
  foreach(source IN LISTS ${sources_var})
    rondo_uses_absent("${source}" "${folder}" uses)
    if(NOT uses)
      list(APPEND kept "${source}")
    endif()
  endforeach()
  set(${sources_var} "${kept}" PARENT_SCOPE)
endfunction()

# Whether a source of a program uses a component that is left out: by its functions, by internal headers, or through
# headers below `folder` and the sources that they declare.
function(rondo_uses_absent source folder out_var)
  set(${out_var} FALSE PARENT_SCOPE)
  if(NOT EXISTS "${source}" OR (rondo_absent_functions STREQUAL "" AND "triton" IN_LIST rondo_components))
    return()  # triton has no public functions
  endif()
  get_property(known GLOBAL PROPERTY "rondo_uses_absent_${source}")
  if(NOT "${known}" STREQUAL "")
    set(${out_var} ${known} PARENT_SCOPE)
    return()
  endif()
  set_property(GLOBAL PROPERTY "rondo_uses_absent_${source}" FALSE)  # while it is looked at
  set(uses FALSE)
  file(READ "${source}" text)
  string(REGEX REPLACE "#define[^\n]*" "" text "${text}")  # a macro counts where it is used
  string(REGEX MATCHALL "rondo_[a-z0-9_]+" names "${text}")
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    if(name IN_LIST rondo_absent_functions)
      set(uses TRUE)
    endif()
  endforeach()
  string(REGEX MATCHALL "#include \"[^\"\n]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" include "${include}")
    foreach(component IN ITEMS tensor session onnx triton)
      if(include MATCHES "^${component}/" AND NOT component IN_LIST rondo_components)
        set(uses TRUE)
      endif()
    endforeach()
    string(REGEX REPLACE "\\.h$" ".c" defined_in "${include}")
    foreach(path IN ITEMS "${include}" "${defined_in}")
      rondo_uses_absent("${folder}/${path}" "${folder}" theirs)
      if(theirs)
        set(uses TRUE)
      endif()
    endforeach()
  endforeach()
  set_property(GLOBAL PROPERTY "rondo_uses_absent_${source}" ${uses})
  set(${out_var} ${uses} PARENT_SCOPE)
endfunction()
