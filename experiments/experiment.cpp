#include "experiments/experiment.hpp"

namespace fathom::experiments {

const std::vector<Experiment>& all_experiments() {
  static const std::vector<Experiment> all = {annuli()};
  return all;
}

}  // namespace fathom::experiments
