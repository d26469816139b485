# The target `torch`: libtorch as its own TorchConfig.cmake finds it, or, where FATHOM_TORCH_WHEEL names the folder of PyPI's package
# `torch`, the CPU parts of that. Its own TorchConfig.cmake asks for all of CUDA; those parts need two small packages of it, which lie
# beside `torch`: nvidia-cuda-runtime and nvidia-cuda-cupti.

if(TARGET torch)
  return()
endif()

if(FATHOM_TORCH_WHEEL)
  set(torch_include ${FATHOM_TORCH_WHEEL}/include)
  set(torch_cpu ${FATHOM_TORCH_WHEEL}/lib/libtorch_cpu.so)
  if(NOT EXISTS ${torch_include}/torch/csrc/api/include/torch/torch.h OR NOT EXISTS ${torch_cpu})
    message(FATAL_ERROR "FATHOM_TORCH_WHEEL must be the folder of the package `torch`, with include/ and lib/libtorch_cpu.so in it, got "
      "\"${FATHOM_TORCH_WHEEL}\"; install one with: pip install --no-deps --target FOLDER torch nvidia-cuda-runtime nvidia-cuda-cupti, "
      "and give FOLDER/torch")
  endif()
  file(STRINGS ${FATHOM_TORCH_WHEEL}/version.py version REGEX "^__version__")
  string(REGEX REPLACE ".*'(.*)'.*" "\\1" Torch_VERSION "${version}")
  set(TORCH_LIBRARY ${torch_cpu})
  add_library(torch INTERFACE IMPORTED)
  target_compile_features(torch INTERFACE cxx_std_20)
  target_include_directories(torch SYSTEM INTERFACE ${torch_include} ${torch_include}/torch/csrc/api/include)
  target_link_libraries(torch INTERFACE ${torch_cpu} ${FATHOM_TORCH_WHEEL}/lib/libc10.so)
else()
  # It warns about optional parts (kineto, nvtx) that some builds leave out; its errors stay visible.
  set(fathom_log_level ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch REQUIRED)
  set(CMAKE_MESSAGE_LOG_LEVEL ${fathom_log_level})
endif()
