/// The paper's experiments by name. Each is one file that reads like the paper's paragraph: its settings for three sizes,
/// then a function that trains, measures and draws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fathom/sensitivity/sensitivity.hpp"

namespace fathom::experiments {

class Run;

enum class Size {
  quick,     ///< seconds
  standard,  ///< minutes; the default
  paper      ///< the paper's own numbers, as long as it takes
};
std::string size_name(Size size);

/// A number of the set-up, for each size. Where the paper does not say, `paper` is our choice and the meaning says so.
struct Setting {
  std::string name;
  double quick = 0;
  double standard = 0;
  double paper = 0;
  std::string meaning;

  double at(Size size) const;
};

/// A word of the set-up.
struct Choice {
  std::string name;
  std::string usual;
  std::vector<std::string> values;  ///< empty: any word
  std::string meaning;
};

struct RunOptions {
  Size size = Size::standard;
  std::uint64_t seed = 0;
  std::map<std::string, double> set = {};            ///< settings by name, before those of the size
  std::map<std::string, std::string> choose = {};    ///< choices by name
  std::filesystem::path images = {};                 ///< the folder of the choice `data`
  bool resume = false;                               ///< go on from the checkpoints in the folder
  std::optional<ode::ButcherTableau> method = {};    ///< default: dopri5
  std::optional<Sensitivity> sensitivity = {};       ///< default: Discrete
  std::optional<std::filesystem::path> folder = {};  ///< metrics.jsonl and models go there while it runs
  bool quiet = false;
};

struct Experiment {
  std::string id;       ///< of the specification, for example "E5"
  std::string name;     ///< on the command line
  std::string title;    ///< of its page
  std::string summary;  ///< one line
  std::string claim;    ///< of the paper, in our words
  std::vector<Setting> settings;
  std::vector<Choice> choices = {};
  std::function<void(Run&)> run;
};

Experiment tracking();
Experiment spirals();
Experiment annuli();
Experiment images();
Experiment crossing();
Experiment input_network();
Experiment conditional_flow();
Experiment adaptive_depth();
Experiment activations();
Experiment regularisers();
Experiment approximation();
Experiment functional_descent();
Experiment deep_limit();

/// All experiments, in the order of the paper.
const std::vector<Experiment>& all_experiments();

}  // namespace fathom::experiments
