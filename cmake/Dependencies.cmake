# Everything found outside the tree. GoogleTest and what benchmarks need are looked for where they are used.

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)

if(NOT FATHOM_RUNTIME_ONLY)
  set(FATHOM_TORCH_WHEEL "" CACHE PATH "Folder of PyPI's package torch, to link the CPU parts of; empty: an installed libtorch")
  include(FathomTorch)
  message(STATUS "Found Torch ${Torch_VERSION}: ${TORCH_LIBRARY}")
endif()
