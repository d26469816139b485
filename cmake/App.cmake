# The command line, `bin/fathom` in the build folder, and the experiments it can run.

find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)

file(GLOB experiment_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/experiments/*.cpp)
if(experiment_sources)
  add_library(fathom_experiments STATIC ${experiment_sources})
  fathom_uses_torch(fathom_experiments)
  target_include_directories(fathom_experiments PUBLIC ${PROJECT_SOURCE_DIR})  # "experiments/annuli.hpp"
  target_link_libraries(fathom_experiments PRIVATE nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus)
endif()

file(GLOB app_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/*.cpp)
if(app_sources)
  add_executable(fathom_cli ${app_sources})
  fathom_uses_torch(fathom_cli)
  target_compile_definitions(fathom_cli PRIVATE FATHOM_VERSION="${PROJECT_VERSION}")
  target_link_libraries(fathom_cli PRIVATE
    CLI11::CLI11 nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus
    $<TARGET_NAME_IF_EXISTS:fathom_experiments>)
  set_target_properties(fathom_cli PROPERTIES
    OUTPUT_NAME fathom RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
