# fuzz/<name>.cpp: a harness for one parser. Here it becomes the program fuzz_<name> and the test fuzz/<name>, which replays
# fuzz/corpus/<name> and seeded mutations of it; with FATHOM_LIBFUZZER (see tools/fuzz) it becomes a fuzzer.

set(fuzz_mutations 20000)
if(FATHOM_LIBFUZZER)
  set(fuzz_driver libfuzzer)
else()
  set(fuzz_driver replay)
endif()

add_library(fathom_fuzz_driver OBJECT ${PROJECT_SOURCE_DIR}/fuzz/support/${fuzz_driver}.cpp)
target_include_directories(fathom_fuzz_driver PUBLIC ${PROJECT_SOURCE_DIR}/fuzz)
target_link_libraries(fathom_fuzz_driver PUBLIC fathom::runtime)
fathom_warnings(fathom_fuzz_driver)

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
foreach(source IN LISTS fuzz_sources)
  cmake_path(GET source STEM name)
  add_executable(fuzz_${name} ${source})
  target_link_libraries(fuzz_${name} PRIVATE fathom_fuzz_driver)
  fathom_warnings(fuzz_${name})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(FATHOM_LIBFUZZER)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    fathom_register(fuzz/${name} fuzz COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name} ${fuzz_mutations})
  endif()
endforeach()
