#include "fathom/ode/order_conditions.hpp"

#include <algorithm>
#include <cmath>

namespace fathom::ode {

namespace {

/// A tree is the multiset of trees that hang from its root, named by their places in the list of all smaller trees.
struct RootedTree {
  int nodes = 1;
  long double gamma = 1;
  std::vector<std::size_t> branches = {};  // non-increasing, so that each multiset is met once
};

void grow(std::vector<RootedTree>& trees, int missing_nodes, std::size_t largest_branch, RootedTree& tree) {
  if (missing_nodes == 0) {
    RootedTree grown = tree;
    grown.gamma = grown.nodes;
    for (std::size_t branch : grown.branches) grown.gamma *= trees[branch].gamma;
    trees.push_back(grown);
    return;
  }
  for (std::size_t branch = 0; branch <= largest_branch; ++branch) {
    if (trees[branch].nodes > missing_nodes) continue;
    tree.branches.push_back(branch);
    grow(trees, missing_nodes - trees[branch].nodes, branch, tree);
    tree.branches.pop_back();
  }
}

std::vector<RootedTree> rooted_trees(int order) {
  std::vector<RootedTree> trees = {RootedTree{}};
  for (int nodes = 2; nodes <= order; ++nodes) {
    const std::size_t largest = trees.size() - 1;
    RootedTree tree{.nodes = nodes};
    grow(trees, nodes - 1, largest, tree);
  }
  return trees;
}

using StageValues = std::vector<long double>;

StageValues elementary_weights(const ButcherTableau& method, const RootedTree& tree,
                               const std::vector<StageValues>& smaller) {
  StageValues values(method.c.size(), 1.0L);
  for (std::size_t branch : tree.branches) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      long double sum = 0;
      for (std::size_t j = 0; j < method.a[i].size(); ++j) sum += method.a[i][j] * smaller[branch][j];
      values[i] *= sum;
    }
  }
  return values;
}

}  // namespace

double order_residual(const ButcherTableau& method, const std::vector<double>& weights, int order,
                      double fraction) {
  std::vector<StageValues> values;
  long double worst = 0;
  for (const RootedTree& tree : rooted_trees(order)) {
    values.push_back(elementary_weights(method, tree, values));
    if (tree.nodes != order) continue;
    long double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values.back()[i];
    const long double exact = std::pow(static_cast<long double>(fraction), tree.nodes) / tree.gamma;
    worst = std::max(worst, std::abs(sum - exact));
  }
  return static_cast<double>(worst);
}

std::size_t rooted_tree_count(int order) {
  const auto trees = rooted_trees(order);
  return std::size_t(
      std::count_if(trees.begin(), trees.end(), [&](const auto& tree) { return tree.nodes == order; }));
}

}  // namespace fathom::ode
