# SPDX-License-Identifier: MIT
# The component rondo-mpi: librondo_mpi.so, for the MPI that FindMPI finds (set MPI_C_COMPILER for another one). It uses
# the public headers alone. RONDO_MPIS lists the MPIs that tests run with: each of OpenMPI and MPICH that pkg-config
# knows, with a library of its own, rondo_mpi_openmpi or rondo_mpi_mpich, which is not installed.
set(RONDO_MPIS "")
if(NOT "mpi" IN_LIST rondo_components)
  return()
endif()

# What is missing is left out if all components were asked for.
function(rondo_mpi_is_missing what packages otherwise)
  if(rondo_is_optional)
    message(STATUS "${what}: install the packages ${packages} for it")
  else()
    message(FATAL_ERROR "${what}: install the packages ${packages}, or ${otherwise}.")
  endif()
endfunction()

find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  rondo_mpi_is_missing("No MPI was found, so rondo-mpi is not built" "libopenmpi-dev and openmpi-bin"
                       "leave mpi out of RONDO_COMPONENTS")
  return()
endif()

# What installed files name it by: an MPI is recognised by its libraries, mpicc is called the same for each.
set(rondo_mpi_origin "${MPI_C_LIBRARIES}")
if(NOT rondo_mpi_origin)
  set(rondo_mpi_origin "${MPI_C_COMPILER}")
endif()

file(GLOB rondo_mpi_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/components/mpi/*.c")

# A library of the component, linked to `mpi`, a target.
function(rondo_add_mpi_library target mpi)
  add_library(${target} SHARED ${rondo_mpi_sources})
  rondo_apply_settings(${target})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/components")
  target_link_libraries(${target} PUBLIC rondo ${mpi} PRIVATE Threads::Threads)
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN")
endfunction()

rondo_add_mpi_library(rondo_mpi MPI::MPI_C)
add_library(rondo::mpi ALIAS rondo_mpi)
set_target_properties(rondo_mpi PROPERTIES EXPORT_NAME mpi VERSION "${PROJECT_VERSION}" SOVERSION "${rondo_abi_version}")

if(RONDO_BUILD_TESTS)
  find_package(PkgConfig QUIET)
  foreach(row IN ITEMS "openmpi=ompi-c=libopenmpi-dev and openmpi-bin" "mpich=mpich=libmpich-dev and mpich")
    string(REPLACE "=" ";" row "${row}")
    list(POP_FRONT row name module packages)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(RONDO_${name} QUIET IMPORTED_TARGET GLOBAL ${module})
    endif()
    find_program(RONDO_MPIRUN_${name} NAMES mpirun.${name})
    if(RONDO_${name}_FOUND AND RONDO_MPIRUN_${name})
      rondo_add_mpi_library(rondo_mpi_${name} PkgConfig::RONDO_${name})
      list(APPEND RONDO_MPIS ${name})
    else()
      rondo_mpi_is_missing("No tests with ${name}" "${packages}" "configure with -DRONDO_BUILD_TESTS=OFF")
    endif()
  endforeach()
endif()
