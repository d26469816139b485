# benchmarks/<name>.cpp becomes the program <name>; `cmake --build <dir> --target benchmarks` builds them all.
# benchmarks/peers/fathom_works.cpp is fathom's side of benchmarks/compare.

add_executable(fathom_works EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/benchmarks/peers/fathom_works.cpp)
fathom_uses_torch(fathom_works)
target_link_libraries(fathom_works PRIVATE nlohmann_json::nlohmann_json)
set_target_properties(fathom_works PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)

find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark not found: no benchmarks")
  return()
endif()

add_custom_target(benchmarks)
file(GLOB benchmark_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/*.cpp)
foreach(source IN LISTS benchmark_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  fathom_uses_torch(${name})
  target_link_libraries(${name} PRIVATE benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  add_dependencies(benchmarks ${name})
endforeach()
