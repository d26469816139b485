/// Fields on graphs: the state is (nodes, features), and a layer mixes the features of neighbours.            (M14)
///   h  ->  A_hat h W + b,   A_hat = D^(-1/2) (A + I) D^(-1/2)
///
///   const Tensor adjacency = normalized_adjacency(nodes, edges);
///   Field field = autonomous(DepthSequential(GraphLinear(8, 16, adjacency), torch::nn::Tanh(), GraphLinear(16, 8, adjacency)));
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fathom/depth/depth_module.hpp"

namespace fathom {

/// The sparse, symmetrically normalised adjacency with self-loops; each undirected edge is given once or twice.
Tensor normalized_adjacency(std::int64_t nodes,
                            const std::vector<std::pair<std::int64_t, std::int64_t>>& edges);

class GraphLinearImpl : public torch::nn::Module {
 public:
  GraphLinearImpl(std::int64_t inputs, std::int64_t outputs, Tensor adjacency);
  Tensor forward(const Tensor& h);
  void to(torch::Device device, torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Dtype type, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;
  std::shared_ptr<torch::nn::Module> clone(
      const torch::optional<torch::Device>& device = torch::nullopt) const override;

 private:
  torch::nn::Linear linear_;
  void convert_adjacency();

  Tensor adjacency_;  // sparse (nodes, nodes); not registered as a buffer: `to(dtype)` fails on sparse ones
  Tensor
      converted_;  // the same, of the type and on the device of the layer; forward() only reads it, in any thread
};
TORCH_MODULE(GraphLinear);

}  // namespace fathom
