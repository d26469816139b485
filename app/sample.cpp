/// `fathom sample MODEL -n 1000`: fresh rows from a learned density.
#include <memory>

#include "commands.hpp"
#include "fathom/train/chunks.hpp"
#include "fathom/train/model.hpp"
#include "output.hpp"

namespace fathom::app {

namespace {

constexpr std::int64_t largest_count = 100'000'000;

struct Request {
  std::string model;
  std::int64_t count = 1000;
  std::uint64_t seed = 0;
  OutputOptions output;
};

void sample(const Request& request) {
  Model model = load(request.model).model;
  require(model->spec().task == Task::density, "`", request.model, "` is for ", name_of(model->spec().task),
          "; only the model of a density can be sampled");
  torch::manual_seed(request.seed);
  const Tensor points =
      in_chunks(request.count, [&](std::int64_t, std::int64_t count) { return model->sample(count); });
  give_out({.header = model->spec().inputs, .rows = rows_of(points)}, request.output);
}

}  // namespace

void add_sample(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("sample", "Fresh rows from a learned density");
  command->add_option("model", request->model, "A model.safetensors of `fathom train --task density`")
      ->required();
  command->add_option("-n,--count", request->count, "How many")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t(1), largest_count));
  command->add_option("--seed", request->seed, "Of the random numbers")->capture_default_str();
  add_output(*command, request->output);
  command->footer("Examples:\n  fathom sample runs/points/model.safetensors -n 1000 --out samples.csv");
  command->callback([request] { sample(*request); });
}

}  // namespace fathom::app
