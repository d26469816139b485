/// The whole library. Start with solve() in fathom/sensitivity/solve.hpp and NeuralOde in fathom/model/neural_ode.hpp.
#pragma once

#include "fathom/depth/basis.hpp"
#include "fathom/depth/depth_layers.hpp"
#include "fathom/depth/depth_module.hpp"
#include "fathom/field/field.hpp"
#include "fathom/field/graph.hpp"
#include "fathom/field/mlp.hpp"
#include "fathom/model/adaptive_depth.hpp"
#include "fathom/model/augmentation.hpp"
#include "fathom/model/density.hpp"
#include "fathom/model/flow.hpp"
#include "fathom/model/neural_ode.hpp"
#include "fathom/model/regularizers.hpp"
#include "fathom/sensitivity/functional_gradient.hpp"
#include "fathom/sensitivity/gradient_check.hpp"
#include "fathom/sensitivity/solve.hpp"
