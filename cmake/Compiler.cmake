# Flags shared by every target of the tree.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Libraries and programs must agree on this flag to share one precompiled header, and CMAKE_POSITION_INDEPENDENT_CODE
# would give -fPIC to the former but -fPIE to the latter.
add_compile_options(-fPIC)

# Our own code only: a consumer of the installed package sees none of this.
function(fathom_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    # `Solver{.method = rk4()}` leaves the rest at its defaults on purpose.
    -Wno-missing-field-initializers
    $<$<BOOL:${FATHOM_WARNINGS_AS_ERRORS}>:-Werror>)
endfunction()
