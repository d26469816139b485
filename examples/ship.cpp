/// A model from a training loop of your own, written to a file that fathom::runtime reads without libtorch: where a pendulum with friction
/// will be half a second and a second from now.
///   angle' = speed,   speed' = -sin(angle) - speed / 5
#include <fathom/fathom.hpp>
#include <fathom/runtime/model.hpp>
#include <filesystem>
#include <iostream>

using namespace fathom;

const std::vector<double> times = {0, 0.25, 0.5, 0.75, 1};

/// (times, batch, 2)
Tensor observed_from(const Tensor& start) {
  const torch::NoGradGuard no_graph;
  NeuralOde pendulum(own_field({.rate = [](const Tensor&, const Tensor&, const Tensor& z) {
    const Tensor angle = z.select(1, 0), speed = z.select(1, 1);
    return torch::stack({speed, -angle.sin() - speed / 5}, 1);
  }}));
  return pendulum->trajectory(start, times);
}

int main() {
  torch::manual_seed(1);
  const Tensor start = 4 * torch::rand({256, 2}, torch::kFloat64) - 2;
  const Tensor observed = observed_from(start);
  const auto path = std::filesystem::temp_directory_path() / "fathom pendulum.safetensors";

  // [ship]
  Model model = build_model({.task = Task::series,
                             .inputs = {"angle", "speed"},
                             .field = {.hidden = {32}},
                             .head = HeadKind::none,
                             .precision = Precision::float64});
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  for (int iteration = 0; iteration < 400; ++iteration) {
    const Tensor loss = torch::mse_loss(model->trajectory(start, times), observed);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  save(path, model, {{"data", "a pendulum with friction"}});

  const runtime::Model shipped = runtime::load(path);  // in the program of the robot, without libtorch
  const std::vector<double> ahead = shipped.forecast(std::vector{0.5, 1.0}, {0, 0.5, 1});
  // [/ship]

  const Tensor now = torch::tensor({{0.5, 1.0}}, torch::kFloat64);
  const Tensor here = model->forecast(now, {0, 0.5, 1}).flatten();
  const Tensor truth = observed_from(now).index_select(0, torch::tensor({0, 2, 4})).flatten();
  const Tensor there = torch::tensor(ahead, torch::kFloat64);
  std::cout << "angle and speed after 1 s: " << ahead[4] << " " << ahead[5] << ", the pendulum's own "
            << truth[4].item<double>() << " " << truth[5].item<double>() << "\n";
  std::filesystem::remove(path);
  const double difference = (there - here).abs().max().item<double>();
  const double error = (there - truth).abs().max().item<double>();
  std::cout << "shipped and trained model differ by " << difference << ", the model and the pendulum by "
            << error << "\n";
  return difference < 1e-12 && error < 0.05 ? 0 : 1;
}
