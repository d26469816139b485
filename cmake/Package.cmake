# `cmake --install` gives a folder that can be moved anywhere; see fathomConfig.cmake.in for what it offers.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fathom)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fathom ${PROJECT_SOURCE_DIR}/src/fathom
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

# An export file for each, so that asking for the runtime alone does not look for torch, nor for the C library at all.
install(TARGETS fathom_c EXPORT c)
install(EXPORT c NAMESPACE fathom:: FILE fathomCTargets.cmake DESTINATION ${package_folder})
install(TARGETS fathom_runtime EXPORT runtime)
install(EXPORT runtime NAMESPACE fathom:: FILE fathomRuntimeTargets.cmake DESTINATION ${package_folder})
if(TARGET fathom)
  install(TARGETS fathom fathom_report EXPORT fathom)
  install(EXPORT fathom NAMESPACE fathom:: FILE fathomTargets.cmake DESTINATION ${package_folder})
endif()
if(TARGET fathom_cli)
  install(TARGETS fathom_cli)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fathomConfig.cmake.in
  ${PROJECT_BINARY_DIR}/fathomConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fathomConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fathomConfig.cmake ${PROJECT_BINARY_DIR}/fathomConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FathomTorch.cmake
  DESTINATION ${package_folder})
