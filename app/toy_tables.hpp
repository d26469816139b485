/// The made data of src/fathom/data as CSV, so that `fathom train` has something to start with.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace fathom::app {

/// What was asked for on the command line; a set takes its own default for what was not.
struct ToyRequest {
  std::optional<std::int64_t> samples = {};     ///< of point sets
  std::optional<std::int64_t> classes = {};     ///< of spirals and gaussians
  std::optional<std::int64_t> dimensions = {};  ///< of spheres
  std::optional<std::int64_t> series = {};      ///< of trajectories, as are the next three
  std::optional<std::int64_t> points = {};
  std::optional<double> duration = {};
  bool irregular = false;
  std::optional<double> noise = {};
  std::uint64_t seed = 0;
};

struct ToyTable {
  std::string name;
  std::string summary;
  bool trajectories = false;            ///< columns series, t, components; else coordinates and label
  std::vector<std::string> flags = {};  ///< those it understands beside --noise, --seed and --to
  void (*write)(std::ostream&, const ToyRequest&) = nullptr;
};

const std::vector<ToyTable>& toy_tables();

}  // namespace fathom::app
