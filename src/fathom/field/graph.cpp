#include "fathom/field/graph.hpp"

#include <cmath>
#include <set>

#include "fathom/support/error.hpp"

namespace fathom {

Tensor normalized_adjacency(std::int64_t nodes,
                            const std::vector<std::pair<std::int64_t, std::int64_t>>& edges) {
  require(nodes >= 1, "a graph needs at least one node, got ", nodes);
  std::set<std::pair<std::int64_t, std::int64_t>> entries;
  for (std::int64_t node = 0; node < nodes; ++node) entries.insert({node, node});
  for (const auto& [from, to] : edges) {
    require(0 <= from && from < nodes && 0 <= to && to < nodes, "an edge must join nodes 0 to ", nodes - 1,
            ", got ", from, " - ", to);
    entries.insert({from, to});
    entries.insert({to, from});
  }
  std::vector<double> degree(std::size_t(nodes), 0.0);
  for (const auto& entry : entries) degree[std::size_t(entry.first)] += 1;
  std::vector<std::int64_t> rows, columns;
  std::vector<double> values;
  for (const auto& [row, column] : entries) {
    rows.push_back(row);
    columns.push_back(column);
    values.push_back(1 / std::sqrt(degree[std::size_t(row)] * degree[std::size_t(column)]));
  }
  const Tensor indices =
      torch::stack({torch::tensor(rows, torch::kInt64), torch::tensor(columns, torch::kInt64)});
  return torch::sparse_coo_tensor(indices, torch::tensor(values, torch::kFloat64), {nodes, nodes}).coalesce();
}

GraphLinearImpl::GraphLinearImpl(std::int64_t inputs, std::int64_t outputs, Tensor adjacency)
    : linear_(inputs, outputs), adjacency_(std::move(adjacency)) {
  require(adjacency_.dim() == 2 && adjacency_.size(0) == adjacency_.size(1),
          "an adjacency must be square, got shape ", adjacency_.sizes());
  register_module("linear", linear_);
  convert_adjacency();
}

void GraphLinearImpl::convert_adjacency() {
  converted_ = adjacency_.to(linear_->weight.device(), linear_->weight.scalar_type());
}

void GraphLinearImpl::to(torch::Device device, torch::Dtype type, bool non_blocking) {
  Module::to(device, type, non_blocking);
  convert_adjacency();
}

void GraphLinearImpl::to(torch::Dtype type, bool non_blocking) {
  Module::to(type, non_blocking);
  convert_adjacency();
}

void GraphLinearImpl::to(torch::Device device, bool non_blocking) {
  Module::to(device, non_blocking);
  convert_adjacency();
}

Tensor GraphLinearImpl::forward(const Tensor& h) {
  require(h.dim() == 2 && h.size(0) == adjacency_.size(0), "a graph of ", adjacency_.size(0),
          " nodes needs a state of shape (nodes, features), got ", h.sizes());
  const bool fits = converted_.scalar_type() == h.scalar_type() && converted_.device() == h.device();
  const Tensor adjacency = fits ? converted_ : adjacency_.to(h.device(), h.scalar_type());
  return torch::mm(adjacency, torch::matmul(h, linear_->weight.t())) + linear_->bias;
}

std::shared_ptr<torch::nn::Module> GraphLinearImpl::clone(
    const torch::optional<torch::Device>& device) const {
  const auto& options = linear_->options;
  auto copy = std::make_shared<GraphLinearImpl>(options.in_features(), options.out_features(), adjacency_);
  copy->linear_ = copy->replace_module(
      "linear", std::dynamic_pointer_cast<torch::nn::LinearImpl>(linear_->clone(device)));
  copy->convert_adjacency();
  return copy;
}

}  // namespace fathom
