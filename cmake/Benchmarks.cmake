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
  if(name STREQUAL "kernels")
    target_link_libraries(${name} PRIVATE fathom::runtime)
    fathom_warnings(${name})
  else()
    fathom_uses_torch(${name})
  endif()
  target_link_libraries(${name} PRIVATE benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  add_dependencies(benchmarks ${name})
endforeach()

# What the kernels could have been built on, for comparison: at its best, so for the very processor.
target_compile_options(kernels PRIVATE -march=native -Wno-maybe-uninitialized)  # gcc 12 warns of its own intrinsics
target_link_libraries(kernels PRIVATE Eigen3::Eigen)
find_library(dnnl_library dnnl)
find_path(dnnl_include oneapi/dnnl/dnnl.h)
if(dnnl_library AND dnnl_include)
  target_compile_definitions(kernels PRIVATE FATHOM_HAS_DNNL)
  target_link_libraries(kernels PRIVATE ${dnnl_library})
endif()
find_library(xsmm_library xsmm)
find_library(xsmm_no_blas xsmmnoblas)  # it falls back to a BLAS, which these shapes do not need
find_path(xsmm_include libxsmm.h)
if(xsmm_library AND xsmm_no_blas AND xsmm_include)
  target_compile_definitions(kernels PRIVATE FATHOM_HAS_XSMM)
  target_link_libraries(kernels PRIVATE ${xsmm_library} ${xsmm_no_blas} ${CMAKE_DL_LIBS})
endif()
