# tests/<folder>/<name>_test.cpp  -> program <folder>_<name>_test, ctest <folder>/<name>, label <folder>
# examples/<name>.cpp             -> program example_<name>,       ctest example/<name>,  label example
# capi/c99, symbols and ctypes     -> the C library as C, as a list of symbols, from Python
# runtime/library                 -> fathom::runtime as a shared library: small, and without torch
# tools and the installed package -> ctest tools/..., package/install
# Labels tools and package: what is shipped, not how it runs, so that the sanitizers leave them out.

set(tests_root ${PROJECT_SOURCE_DIR}/tests)
set(test_seconds 600)

function(fathom_register name label)
  add_test(NAME ${name} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    LABELS ${label} TIMEOUT ${test_seconds}
    ENVIRONMENT "OMP_NUM_THREADS=1")  # tests run side by side and must not fight over the cores
endfunction()

# Helpers shared by tests: tests/support/plain without torch, tests/support itself with it. Headers alone will do.
function(fathom_test_helpers target folder)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")  # those test src/fathom/support
  if(sources)
    add_library(${target} STATIC ${sources})
  else()
    add_library(${target} STATIC ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  endif()
  target_include_directories(${target} PUBLIC ${tests_root})
  target_link_libraries(${target} PUBLIC ${ARGN} GTest::gtest)
endfunction()

find_package(GTest QUIET)
if(GTest_FOUND)
  fathom_test_helpers(fathom_test_plain ${tests_root}/support/plain fathom::runtime)
  fathom_warnings(fathom_test_plain)
  if(NOT FATHOM_RUNTIME_ONLY)
    fathom_test_helpers(fathom_test_support ${tests_root}/support fathom_test_plain)
    fathom_uses_torch(fathom_test_support)
    add_library(fathom_test_report STATIC ${tests_root}/report/sample_page.cpp)
    target_link_libraries(fathom_test_report PUBLIC fathom_test_plain fathom::report)
    fathom_warnings(fathom_test_report)
    add_executable(report_sample_page ${tests_root}/report/sample_page_main.cpp)
    target_link_libraries(report_sample_page PRIVATE fathom_test_report)
    set_target_properties(report_sample_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(browser_test python3 -B ${tests_root}/report/browser_test.py --sample $<TARGET_FILE:report_sample_page>)
    if(TARGET fathom_cli)
      list(APPEND browser_test --fathom $<TARGET_FILE:fathom_cli>)
    endif()
    fathom_register(report/browser report COMMAND ${browser_test})
  endif()

  file(GLOB test_sources CONFIGURE_DEPENDS ${tests_root}/*/*_test.cpp)
  foreach(source IN LISTS test_sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "_test$" "" name ${stem})
    set(target ${folder}_${stem})

    if(folder STREQUAL "capi")
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE fathom::c GTest::gtest)
      fathom_warnings(${target})
    elseif(folder IN_LIST runtime_folders)
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE fathom_test_plain)
      fathom_warnings(${target})
    elseif(FATHOM_RUNTIME_ONLY)
      continue()
    elseif(folder STREQUAL "report")
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE fathom_test_report)
      fathom_warnings(${target})
    else()
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE fathom_test_support)
      fathom_uses_torch(${target})
    endif()
    if(folder MATCHES "^(app|experiments)$" AND TARGET fathom_experiments)
      target_link_libraries(${target} PRIVATE fathom_experiments)
    endif()
    target_link_libraries(${target} PRIVATE GTest::gtest_main nlohmann_json::nlohmann_json)
    target_compile_definitions(${target} PRIVATE FATHOM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    fathom_register(${folder}/${name} ${folder} COMMAND ${target})
    if(folder STREQUAL "app" AND TARGET fathom_cli)
      set_property(TEST ${folder}/${name} APPEND PROPERTY ENVIRONMENT "FATHOM_CLI=$<TARGET_FILE:fathom_cli>")
      add_dependencies(${target} fathom_cli)
    endif()
  endforeach()

  # The fused engine on the instruction sets that this processor would not choose, too. One that it lacks is reported as skipped:
  # tests/model/fused_problems.hpp says so.
  if(NOT FATHOM_RUNTIME_ONLY)
    foreach(instructions avx2 baseline)
      foreach(name fused fused_layers)
        set(test model/${name}/${instructions})
        fathom_register(${test} model COMMAND model_${name}_test)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "FATHOM_KERNELS=${instructions}")
        set_tests_properties(${test} PROPERTIES
          SKIP_REGULAR_EXPRESSION "this processor has no ${instructions}")
      endforeach()
    endforeach()
  endif()
else()
  message(STATUS "GoogleTest not found: no unit tests")
endif()

# Examples that must do without torch, each with its arguments.
set(runtime_examples deploy control_loop session callback_field grey_box ragged)
set(deploy_arguments ${PROJECT_SOURCE_DIR}/fuzz/corpus/model_file/good-classes.safetensors 1 2)
set(control_loop_arguments ${deploy_arguments})

file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  if(NOT name IN_LIST runtime_examples AND FATHOM_RUNTIME_ONLY)
    continue()
  endif()
  add_executable(example_${name} ${source})
  if(name IN_LIST runtime_examples)
    target_link_libraries(example_${name} PRIVATE fathom::runtime)
    fathom_warnings(example_${name})
  else()
    fathom_uses_torch(example_${name})
  endif()
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  fathom_register(example/${name} example COMMAND example_${name} ${${name}_arguments})
endforeach()

# What a robot gets: the runtime as one shared library.
set(shared_runtime fathom_runtime)
if(NOT BUILD_SHARED_LIBS)
  set(shared_runtime fathom_runtime_shared)
  add_library(${shared_runtime} SHARED ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
  target_link_libraries(${shared_runtime} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,fathom::runtime>")
endif()
fathom_register(runtime/library package
  COMMAND ${tests_root}/runtime/library_test $<TARGET_FILE:${shared_runtime}> $<TARGET_FILE:example_deploy>)

# What a C compiler, the linker and another language make of the C library.
set(a_model ${PROJECT_SOURCE_DIR}/fuzz/corpus/model_file/good-classes.safetensors)
fathom_register(capi/c99 package COMMAND ${tests_root}/capi/c99_test ${PROJECT_SOURCE_DIR} $<TARGET_FILE:fathom_c> ${a_model} 1 2)
fathom_register(capi/symbols package
  COMMAND ${tests_root}/capi/symbols_test ${PROJECT_SOURCE_DIR}/include/fathom/fathom.h $<TARGET_FILE:fathom_c>)
fathom_register(capi/ctypes package COMMAND python3 -B ${tests_root}/capi/ctypes_test.py $<TARGET_FILE:fathom_c> ${a_model})

if(TARGET fathom_cli AND TARGET fathom_experiments)
  fathom_register(experiments/pages experiments
    COMMAND python3 -B ${tests_root}/experiments/pages_test.py $<TARGET_FILE:fathom_cli> ${tests_root}/report/browser_test.py)
endif()

foreach(tool format layers snippets)
  set(script ${PROJECT_SOURCE_DIR}/tools/check_${tool})
  if(tool STREQUAL "format")
    set(script ${PROJECT_SOURCE_DIR}/tools/format --check)
  endif()
  fathom_register(tools/${tool} tools COMMAND ${script})
endforeach()
fathom_register(tools/self_test tools
  COMMAND python3 -B -m unittest discover -s ${tests_root}/tools -t ${tests_root}/tools -p "*_test.py")

if(NOT FATHOM_RUNTIME_ONLY)
  fathom_register(package/install package COMMAND ${tests_root}/package/run ${PROJECT_BINARY_DIR})
endif()
