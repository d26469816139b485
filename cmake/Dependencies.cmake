# Everything found outside the tree. GoogleTest and what benchmarks need are looked for where they are used.

find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)

if(NOT FATHOM_RUNTIME_ONLY)
  # TorchConfig.cmake warns about optional parts (kineto, nvtx) that some builds leave out; its errors stay visible.
  set(fathom_log_level ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch REQUIRED)
  set(CMAKE_MESSAGE_LOG_LEVEL ${fathom_log_level})
  message(STATUS "Found Torch ${Torch_VERSION}: ${TORCH_LIBRARY}")
endif()
