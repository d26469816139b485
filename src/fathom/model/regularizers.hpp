/// Regularisers of the flow, as running losses or terminal ones (R1 to R3). A running one is integrated along with z:
///
///   NeuralOde ode(field, NeuralOdeOptions{.running_losses = {kinetic_energy()}});
///   const Solution solution = ode->solve(x);
///   const Tensor loss = data_loss + 0.01 * solution.running_loss[-1].mean() + 0.01 * terminal_speed(*ode, x, z).mean();
#pragma once

#include "fathom/model/neural_ode.hpp"

namespace fathom {

/// int |f|_2 ds: the length of the path                                          (R1)
RunningLoss path_length();
/// int |f|^2 ds
RunningLoss kinetic_energy();
/// int |z - target(s)|^2 ds, for a state that follows a curve; the target is any function of depth:
///   tracking(own_basis("circle", 2, [](double s) { return std::vector{std::cos(s), std::sin(s)}; }))
RunningLoss tracking(const DepthBasis& target);
/// int |e^T df/dz|^2 ds with a random probe e: an unbiased estimate of the Jacobian's squared Frobenius norm (Finlay et al.
/// 2020), fixed for the life of the returned value. Costs one more evaluation and a product with the Jacobian.   (R3)
RunningLoss jacobian_norm(const Field& field, const Tensor& probe);
/// |f(S, x, z(S))|_2 for each sample: does the flow come to rest?               (R2)
Tensor terminal_speed(NeuralOdeImpl& ode, const Tensor& x, const Tensor& final_state);

}  // namespace fathom
