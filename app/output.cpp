#include "output.hpp"

#include <charconv>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fathom/report/page.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom::app {

namespace {

/// The shortest text that reads back as the same number.
std::string field(double value) {
  if (std::isnan(value)) return "";
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string field(const std::string& value) {
  if (value.find_first_of(",\"\n\r") == std::string::npos) return value;
  std::string quoted = "\"";
  for (const char letter : value) quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

std::string csv(const Answer& answer) {
  std::string out;
  const auto line = [&](const auto& cells, auto text_of) {
    for (std::size_t i = 0; i < cells.size(); ++i) out += (i ? "," : "") + text_of(cells[i]);
    out += "\n";
  };
  line(answer.header, [](const std::string& name) { return field(name); });
  for (const auto& row : answer.rows) {
    line(row, [](const Cell& cell) { return cell.is_text ? field(cell.text) : field(cell.number); });
  }
  return out;
}

std::string json(const Answer& answer) {
  nlohmann::ordered_json document;
  document["figures"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : answer.figures) document["figures"][name] = value;
  document["rows"] = nlohmann::ordered_json::array();
  for (const auto& row : answer.rows) {
    nlohmann::ordered_json object;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].is_text)
        object[answer.header[i]] = row[i].text;
      else
        object[answer.header[i]] = row[i].number;
    }
    document["rows"].push_back(std::move(object));
  }
  return document.dump(1) + "\n";
}

}  // namespace

std::vector<std::vector<Cell>> rows_of(const Tensor& values) {
  const Tensor plain =
      values.to(torch::kFloat64).contiguous();  // read at once: a number by itself costs three calls of torch
  const std::int64_t columns = plain.size(1);
  std::vector<std::vector<Cell>> rows;
  for (std::int64_t i = 0; i < plain.size(0); ++i) {
    const double* row = plain.data_ptr<double>() + i * columns;
    rows.emplace_back(row, row + columns);
  }
  return rows;
}

void add_output(CLI::App& command, OutputOptions& output) {
  command.add_option("--out", output.file, "Write here instead of to standard output")->type_name("FILE");
  command.add_flag("--json", output.json, "JSON instead of CSV");
  command.add_flag("--quiet", output.quiet, "No figures on standard error");
}

void give_out(const Answer& answer, const OutputOptions& options) {
  const std::string content = options.json ? json(answer) : csv(answer);
  if (!options.file.empty()) {
    write_atomically(options.file, content);
  } else {
    std::cout << content << std::flush;
    if (!std::cout) throw Error("cannot write to standard output: disk full or closed");
  }
  if (options.quiet || options.json) return;
  for (const auto& [name, value] : answer.figures)
    std::cerr << name << " " << report::readable(value) << "\n";
  tell_limits(answer.report);
}

void tell_limits(const ode::SolveReport& report) {
  if (const std::string advice = report.limits.advice(); !advice.empty())
    std::cerr << "fathom: " << advice << "\n";
}

}  // namespace fathom::app
