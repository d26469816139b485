/// What the experiment `images` claims and shows, from what its models answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/image_models.hpp"
#include "experiments/run.hpp"
#include "fathom/data/labelled.hpp"

namespace fathom::experiments {

inline constexpr std::int64_t paper_epochs = 20;
/// MNIST's training set, or that of CIFAR-10.
inline std::int64_t paper_images(std::int64_t channels) { return channels == 1 ? 60'000 : 50'000; }

struct ImageAnswers {
  std::string model;
  Tensor scores;       ///< (test images, 10)
  Tensor states = {};  ///< (depths, shown, channels, height, width)
};

struct ImageReport {
  Labelled test;
  std::int64_t train_images = 0;
  std::vector<ImageAnswers> answers = {};  ///< of the Neural ODEs
};

/// z(s) of the first few test images at equally spaced depths.
Tensor states_shown(ImageModel& model, const Labelled& test);

void claim_rankings(Run& run, const ImageReport& report);
void show_images(Run& run, const ImageReport& report);

}  // namespace fathom::experiments
