/// The whole library. Start with solve() in fathom/sensitivity/solve.hpp.
#pragma once

#include "fathom/sensitivity/functional_gradient.hpp"
#include "fathom/sensitivity/gradient_check.hpp"
#include "fathom/sensitivity/solve.hpp"
