/// `fathom predict MODEL data.csv`: a trained model's answers for the rows of a table.
#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.hpp"
#include "fathom/train/chunks.hpp"
#include "fathom/train/model.hpp"
#include "model_table.hpp"
#include "output.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string model, data;
  OutputOptions output;
};

/// (rows) numbers of the model's labels
Tensor label_numbers(const Table& table, const ModelSpec& spec) {
  const Column& column = table.column(spec.targets.front());
  std::vector<std::int64_t> places;
  for (const std::string& level : column.levels) {
    const auto found = std::find(spec.labels.begin(), spec.labels.end(), level);
    require(found != spec.labels.end(), "`", table.source, "` has the class `", level, "` in column `",
            column.name, "`, which the model does not know");
    places.push_back(found - spec.labels.begin());
  }
  std::vector<std::int64_t> numbers;
  for (const double value : column.values) numbers.push_back(places[std::size_t(value)]);
  return torch::tensor(numbers);
}

Answer classes(const Tensor& probabilities, const Table& table, const ModelSpec& spec) {
  Answer answer{.header = {spec.targets.front()}};
  for (const std::string& label : spec.labels) answer.header.push_back("p(" + label + ")");
  const Tensor chosen = probabilities.argmax(1);
  answer.rows = rows_of(probabilities);
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    const std::string& label = spec.labels[std::size_t(chosen.data_ptr<std::int64_t>()[i])];
    answer.rows[i].insert(answer.rows[i].begin(), label);
  }
  if (!table.has(spec.targets.front())) return answer;
  const Tensor truth = label_numbers(table, spec);
  answer.figures = {{"accuracy", (chosen == truth).to(torch::kFloat64).mean().item<double>()},
                    {"cross entropy", torch::nll_loss(probabilities.log(), truth).item<double>()}};
  return answer;
}

Answer targets(const Tensor& predicted, const Table& table, const ModelSpec& spec) {
  Answer answer{.header = spec.targets, .rows = rows_of(predicted)};
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    if (!table.has(spec.targets[i])) continue;
    const Tensor truth = torch::tensor(table.column(spec.targets[i]).values, torch::kFloat64);
    const Tensor error = predicted.select(1, std::int64_t(i)) - truth;
    const std::string of = spec.targets.size() == 1 ? "" : " of " + spec.targets[i];
    answer.figures.emplace_back("rmse" + of, std::sqrt(error.square().mean().item<double>()));
    const double spread = (truth - truth.mean()).square().sum().item<double>();
    if (spread > 0) answer.figures.emplace_back("R2" + of, 1 - error.square().sum().item<double>() / spread);
  }
  return answer;
}

void predict(const Request& request) {
  Model model = load(request.model).model;
  const ModelSpec& spec = model->spec();
  require(spec.task != Task::series, "`", request.model,
          "` is the model of a series: use `fathom forecast MODEL --from data.csv --until T --every dt`");
  const bool classifies = spec.task == Task::classification;
  const Table table = read_for_model(
      request.data, spec, {.optional = spec.targets, .categories = classifies ? spec.targets : Words()});
  const Tensor inputs = tensor_of(table, spec.inputs);
  const Tensor answers = in_chunks(inputs.size(0), [&](std::int64_t first, std::int64_t count) {
    return model->predict(inputs.narrow(0, first, count));
  });
  Answer answer;
  if (classifies) answer = classes(answers, table, spec);
  if (spec.task == Task::regression) answer = targets(answers, table, spec);
  if (spec.task == Task::density) {
    answer = {.header = {"log density"},
              .rows = rows_of(answers.unsqueeze(1)),
              .figures = {{"nll", -answers.mean().item<double>()}}};
  }
  answer.report = model->report();
  give_out(answer, request.output);
}

}  // namespace

void add_predict(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("predict", "A trained model's answers for the rows of a table");
  command->add_option("model", request->model, "A model.safetensors of `fathom train`")->required();
  command
      ->add_option("data", request->data,
                   "Table with the model's input columns; with its targets too, answers are judged")
      ->required();
  add_output(*command, request->output);
  command->footer(
      "Examples:\n"
      "  fathom predict runs/iris/model.safetensors new.csv\n"
      "  fathom predict runs/iris/model.safetensors test.csv --out answers.csv\n"
      "  fathom predict runs/iris/model.safetensors test.csv --json");
  command->callback([request] { predict(*request); });
}

}  // namespace fathom::app
