# benchmarks/<name>.cpp becomes the program <name>; `cmake --build <dir> --target benchmarks` builds them all.

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
