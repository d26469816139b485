#include "experiments/experiment.hpp"

namespace fathom::experiments {

std::string size_name(Size size) {
  switch (size) {
    case Size::quick: return "quick";
    case Size::standard: return "default";
    case Size::paper: return "paper";
  }
  return {};
}

double Setting::at(Size size) const {
  return size == Size::quick ? quick : size == Size::paper ? paper : standard;
}

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {tracking(),         spirals(),        images(),
                                              crossing(),         annuli(),         input_network(),
                                              conditional_flow(), adaptive_depth(), activations(),
                                              regularisers(),     approximation(),  functional_descent(),
                                              deep_limit()};
  return all;
}

}  // namespace fathom::experiments
