# SPDX-License-Identifier: MIT
# Install rules: headers, libraries, the tool and the manual pages, a CMake package, and a pkg-config file for each
# component. Nothing that is installed contains the prefix, so the tree can be moved. Packages (debian/rules) install
# CMake's components one by one: core, tensor, ... for what runs, core-dev, tensor-dev, ... for what programs are built
# with, tool, and doc.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rondo")
file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH pc_include "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")

# What has to be built first.
add_custom_target(rondo_installed)

# Installs a component: its headers, its libraries, its CMake targets as rondo-<component>-targets.cmake, and its
# pkg-config file. `export` and `name` are what these are called.
function(rondo_install_component component export name pc_template)
  set(targets ${ARGN})
  add_dependencies(rondo_installed ${targets})
  set(development COMPONENT ${component}-dev)
  install(FILES ${rondo_headers_${component}} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rondo" ${development})
  install(TARGETS ${targets} EXPORT ${export}
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component} NAMELINK_${development}
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${development})
  install(EXPORT ${export} NAMESPACE rondo:: DESTINATION "${package_dir}" ${development})
  configure_file("${PROJECT_SOURCE_DIR}/${pc_template}" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${development})
endfunction()

rondo_install_component(core rondo-targets rondo rondo.pc.in rondo rondo_static)
set(rondo_description_tensor "Programs of Rondo: networks of operators on tensors")
set(rondo_description_session "Sessions of Rondo, which serve models")
set(rondo_description_onnx "Models in ONNX files, for programs of Rondo")
set(rondo_description_mpi "Communicators of Rondo on MPI, for programs of one MPI (${rondo_mpi_origin})")
foreach(component IN ITEMS tensor session mpi onnx)
  if(NOT TARGET rondo_${component})
    continue()
  endif()
  set(rondo_description "${rondo_description_${component}}")
  set(pc_requires "rondo = ${PROJECT_VERSION}")
  set(pc_private "-pthread -lm")
  set(targets rondo_${component} rondo_${component}_static)
  if(component MATCHES "^(session|onnx)$")
    string(APPEND pc_requires ", rondo-tensor = ${PROJECT_VERSION}")
  endif()
  if(component STREQUAL "onnx")
    string(APPEND pc_private " -lprotobuf-c")
  elseif(component STREQUAL "mpi")
    set(pc_private "-pthread")
    set(targets rondo_mpi)
  endif()
  rondo_install_component(${component} rondo-${component}-targets rondo-${component} rondo-component.pc.in ${targets})
endforeach()
if(TARGET rondo_triton) # the server loads it; shared objects of models need its header alone
  add_dependencies(rondo_installed rondo_triton)
  install(FILES ${rondo_headers_triton} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rondo" COMPONENT triton-dev)
  install(TARGETS rondo_triton rondo_language_model
          LIBRARY DESTINATION "${rondo_triton_folder}/rondo" COMPONENT triton)
endif()
if(TARGET rondo_tool)
  add_dependencies(rondo_installed rondo_tool)
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rondo-config.cmake.in"
  "${PROJECT_BINARY_DIR}/rondo-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rondo-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rondo-config.cmake" "${PROJECT_BINARY_DIR}/rondo-config-version.cmake"
        DESTINATION "${package_dir}" COMPONENT core-dev)

if(TARGET rondo_tool)
  file(GLOB manual_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.1")
  install(FILES ${manual_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT tool)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/rondo-environment.7" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7"
        COMPONENT core-dev)

# README.md and the files that it links to keep their relative paths.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
              "${PROJECT_SOURCE_DIR}/SECURITY.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT doc)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" "${PROJECT_SOURCE_DIR}/deploy"
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT doc
        PATTERN man EXCLUDE PATTERN reference EXCLUDE PATTERN CMakeLists.txt EXCLUDE PATTERN check-output EXCLUDE
        PATTERN make EXCLUDE)
