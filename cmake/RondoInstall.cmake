# SPDX-License-Identifier: MIT
# Install rules: headers, both libraries, the tool and the manual pages, a CMake package and a pkg-config file. Nothing that
# is installed contains the prefix, so the tree can be moved.
include(CMakePackageConfigHelpers)

# What has to be built first.
add_custom_target(rondo_installed)
add_dependencies(rondo_installed rondo rondo_static)
if(TARGET rondo_mpi)
  add_dependencies(rondo_installed rondo_mpi)
endif()
if(RONDO_BUILD_TOOL)
  add_dependencies(rondo_installed rondo_tool)
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rondo")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/rondo" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN mpi.h EXCLUDE)
install(TARGETS rondo rondo_static EXPORT rondo-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT rondo-targets NAMESPACE rondo:: DESTINATION "${package_dir}")

if(TARGET rondo_mpi)
  install(FILES "${PROJECT_SOURCE_DIR}/include/rondo/mpi.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rondo")
  install(TARGETS rondo_mpi EXPORT rondo-mpi-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT rondo-mpi-targets NAMESPACE rondo:: DESTINATION "${package_dir}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rondo-config.cmake.in"
  "${PROJECT_BINARY_DIR}/rondo-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rondo-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rondo-config.cmake" "${PROJECT_BINARY_DIR}/rondo-config-version.cmake"
        DESTINATION "${package_dir}")

file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH pc_include "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/rondo.pc.in" "${PROJECT_BINARY_DIR}/rondo.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rondo.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TARGET rondo_mpi)
  configure_file("${PROJECT_SOURCE_DIR}/rondo-mpi.pc.in" "${PROJECT_BINARY_DIR}/rondo-mpi.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/rondo-mpi.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

if(RONDO_BUILD_TOOL)
  file(GLOB manual_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.1")
  install(FILES ${manual_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/rondo-environment.7" DESTINATION "${CMAKE_INSTALL_MANDIR}/man7")

# README.md and the files that it links to keep their relative paths.
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
              "${PROJECT_SOURCE_DIR}/SECURITY.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" "${PROJECT_SOURCE_DIR}/deploy" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        PATTERN man EXCLUDE PATTERN reference EXCLUDE PATTERN CMakeLists.txt EXCLUDE PATTERN check-output EXCLUDE
        PATTERN make EXCLUDE)
