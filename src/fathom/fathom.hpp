/// The whole library. Start with solve() in fathom/sensitivity/solve.hpp.
#pragma once

#include "fathom/sensitivity/solve.hpp"
