/// A Neural ODE on a graph: the state is a vector for each node, and neighbours mix.
///   Z'(s) = A_hat tanh(A_hat Z W_1 + b_1) W_2 + b_2,   A_hat = D^(-1/2) (A + I) D^(-1/2),   Z(0) = [X, 0]
/// Two groups of friends, one edge between them, and one known member of each: who belongs where?
#include <fathom/fathom.hpp>
#include <iostream>

using namespace fathom;

int main() {
  torch::manual_seed(0);
  constexpr std::int64_t nodes = 10, added = 2;
  std::vector<std::pair<std::int64_t, std::int64_t>> edges = {{4, 5}};
  for (std::int64_t first : {0, 5}) {
    for (std::int64_t i = first; i < first + 5; ++i)
      for (std::int64_t j = i + 1; j < first + 5; ++j) edges.emplace_back(i, j);
  }
  const Tensor adjacency = normalized_adjacency(nodes, edges);
  const Tensor features = torch::eye(nodes);
  const Tensor known = torch::tensor({0, 9}), groups = torch::tensor({0, 1});

  constexpr std::int64_t width = nodes + added;
  NeuralOde ode(autonomous(DepthSequential(GraphLinear(width, 16, adjacency), torch::nn::Tanh(),
                                           GraphLinear(16, width, adjacency))));
  torch::nn::Sequential model(ZeroAugmentation(added), ode, torch::nn::Linear(width, 2));
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  for (int iteration = 0; iteration <= 60; ++iteration) {
    const Tensor scores = model->forward(features);  // (nodes, 2)
    const Tensor loss = torch::nn::functional::cross_entropy(scores.index_select(0, known), groups);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (iteration % 20 == 0) std::cout << iteration << ": loss " << loss.item<double>() << "\n";
  }

  const torch::NoGradGuard no_graph;
  const Tensor found = model->forward(features).argmax(1);
  const Tensor truth = (torch::arange(nodes) >= 5).to(torch::kInt64);
  std::cout << "groups found: " << found.view({1, -1}) << "\n" << ode->report().brief() << "\n";
  return torch::equal(found, truth) ? 0 : 1;
}
