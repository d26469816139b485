/// `fathom predict MODEL data.csv`: a trained model's answers for the rows of a table.
#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.hpp"
#include "fathom/train/model.hpp"
#include "output.hpp"
#include "task_data.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string model, data;
  OutputOptions output;
};

/// The columns that the model needs, and its targets where the table has them.
Table read_for(const std::string& path, const ModelSpec& spec) {
  const std::vector<std::string> present = TableReader(open_source(path)).names();
  const auto has = [&](const std::string& name) {
    return std::find(present.begin(), present.end(), name) != present.end();
  };
  TableOptions options;
  const auto want = [&](const std::string& name) {
    if (std::find(options.columns.begin(), options.columns.end(), name) == options.columns.end())
      options.columns.push_back(name);
  };
  for (const std::string& name : spec.inputs) want(has(name) ? name : name.substr(0, name.find('=')));
  for (const std::string& name : spec.targets) {
    if (has(name)) want(name);
  }
  if (spec.task == Task::classification && has(spec.targets.front())) options.categories = spec.targets;
  return read_table(path, options);
}

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
  for (std::int64_t i = 0; i < probabilities.size(0); ++i) {
    answer.rows.push_back({spec.labels[std::size_t(chosen[i].item<std::int64_t>())]});
    for (std::int64_t j = 0; j < probabilities.size(1); ++j)
      answer.rows.back().push_back(probabilities[i][j].item<double>());
  }
  if (!table.has(spec.targets.front())) return answer;
  const Tensor truth = label_numbers(table, spec);
  answer.figures = {{"accuracy", (chosen == truth).to(torch::kFloat64).mean().item<double>()},
                    {"cross entropy", torch::nll_loss(probabilities.log(), truth).item<double>()}};
  return answer;
}

Answer numbers(const Tensor& values, const Words& header) {
  Answer answer{.header = header};
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    answer.rows.emplace_back();
    for (std::int64_t j = 0; j < values.size(1); ++j)
      answer.rows.back().push_back(values[i][j].item<double>());
  }
  return answer;
}

Answer targets(const Tensor& predicted, const Table& table, const ModelSpec& spec) {
  Answer answer = numbers(predicted, spec.targets);
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    if (!table.has(spec.targets[i])) continue;
    const Tensor truth = torch::tensor(table.column(spec.targets[i]).values, torch::kFloat64);
    const Tensor error = predicted.select(1, std::int64_t(i)) - truth;
    const std::string of = spec.targets.size() == 1 ? "" : " of " + spec.targets[i];
    answer.figures.emplace_back("rmse" + of, std::sqrt(error.square().mean().item<double>()));
    answer.figures.emplace_back(
        "R2" + of, 1 - (error.square().sum() / (truth - truth.mean()).square().sum()).item<double>());
  }
  return answer;
}

void predict(const Request& request) {
  Model model = load(request.model).model;
  const ModelSpec& spec = model->spec();
  require(spec.task != Task::series, "`", request.model,
          "` is the model of a series: use `fathom forecast MODEL --from data.csv --until T --every dt`");
  const Table table = read_for(request.data, spec);
  const Tensor answers = model->predict(input_columns(table, spec));
  Answer answer;
  if (spec.task == Task::classification) answer = classes(answers, table, spec);
  if (spec.task == Task::regression) answer = targets(answers, table, spec);
  if (spec.task == Task::density) {
    answer = numbers(answers.unsqueeze(1), {"log density"});
    answer.figures = {{"nll", -answers.mean().item<double>()}};
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
