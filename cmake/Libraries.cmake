# fathom::runtime and fathom::report (no torch), and fathom::fathom (everything).

set(runtime_folders support ode fused session file runtime read)
# Files without torch in folders that use it elsewhere.
set(runtime_files depth/basis.cpp depth/named_basis.cpp)

set(fathom_source_root ${PROJECT_SOURCE_DIR}/src/fathom)
file(GLOB_RECURSE torch_sources CONFIGURE_DEPENDS ${fathom_source_root}/*.cpp)
set(runtime_sources ${torch_sources})
list(JOIN runtime_folders "|" folder_pattern)
list(JOIN runtime_files "|" file_pattern)
set(runtime_pattern "^${fathom_source_root}/((${folder_pattern})/|(${file_pattern})$)")
list(FILTER runtime_sources INCLUDE REGEX ${runtime_pattern})
list(FILTER torch_sources EXCLUDE REGEX ${runtime_pattern})
set(report_sources ${torch_sources})
list(FILTER report_sources INCLUDE REGEX "^${fathom_source_root}/report/")
list(FILTER torch_sources EXCLUDE REGEX "^${fathom_source_root}/report/")
set(c_sources ${torch_sources})
list(FILTER c_sources INCLUDE REGEX "^${fathom_source_root}/capi/")
list(FILTER torch_sources EXCLUDE REGEX "^${fathom_source_root}/capi/")

function(fathom_library target sources)
  add_library(${target} ${sources})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:include>)
  # Used in source files only, so an installed fathom does not ask for it.
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  fathom_warnings(${target})
  target_compile_options(${target} PRIVATE -Wconversion -Wsign-conversion)
endfunction()

# Kernels of the fused engine for instruction sets beyond the baseline; which of them runs is decided at run time.
set(kernel_flags -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math)
set(avx2_flags -mavx2 -mfma)
set(avx512_flags -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mprefer-vector-width=512)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Operations in the order of the source rather than in that of a processor the compiler does not know: 1 % of W1, W5 and W8.
  list(APPEND avx512_flags -fno-schedule-insns2)
endif()
foreach(set IN ITEMS baseline avx2 avx512)
  set_source_files_properties(${fathom_source_root}/fused/kernels_${set}.cpp PROPERTIES
    COMPILE_OPTIONS "${kernel_flags};${${set}_flags}")
endforeach()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(FILTER runtime_sources EXCLUDE REGEX "kernels_avx[0-9]+\\.cpp$")
endif()

fathom_library(fathom_runtime "${runtime_sources}")
add_library(fathom::runtime ALIAS fathom_runtime)
set_target_properties(fathom_runtime PROPERTIES EXPORT_NAME runtime)
target_link_libraries(fathom_runtime PUBLIC Threads::Threads PRIVATE ZLIB::ZLIB)
# Some builds of libtorch use the old std::string; both libraries must then agree with it.
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(fathom_runtime PUBLIC ${torch_flags})

# fathom.h, for C and all that calls C: libfathom.so, with nothing of the rest to be seen from outside.
add_library(fathom_c SHARED ${c_sources})
add_library(fathom::c ALIAS fathom_c)
target_compile_features(fathom_c PRIVATE cxx_std_20)
target_include_directories(fathom_c INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(fathom_c PRIVATE $<BUILD_INTERFACE:fathom_runtime>)
target_compile_definitions(fathom_c PRIVATE FATHOM_VERSION="${PROJECT_VERSION}")
fathom_warnings(fathom_c)
set_target_properties(fathom_c PROPERTIES
  EXPORT_NAME c OUTPUT_NAME fathom VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/fathom_c.map)
if(NOT APPLE AND NOT WIN32)
  # What libraries linked into it offer would be offered by it as well.
  target_link_options(fathom_c PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/fathom_c.map)
endif()

if(NOT FATHOM_RUNTIME_ONLY)
  include(Report)
  fathom_library(fathom "${torch_sources}")
  add_library(fathom::fathom ALIAS fathom)
  if(BUILD_SHARED_LIBS)
    set_target_properties(fathom PROPERTIES OUTPUT_NAME fathom_torch)  # libfathom.so is the C library
  endif()
  target_link_libraries(fathom PUBLIC fathom_runtime fathom_report torch)
  # torch/torch.h costs half a minute a file; compiled once here and reused by fathom_uses_torch().
  target_precompile_headers(fathom PRIVATE <torch/torch.h>)
  # gcc instantiates torch's templates anew in every file, about six seconds each; several files at once share that.
  set_target_properties(fathom PROPERTIES UNITY_BUILD ${FATHOM_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endif()

# For programs and libraries of this tree that use fathom::fathom.
function(fathom_uses_torch target)
  target_link_libraries(${target} PUBLIC fathom::fathom)
  target_precompile_headers(${target} REUSE_FROM fathom)
  fathom_warnings(${target})
endfunction()
