/// `fathom data NAME`: synthetic data as CSV, and well-known image sets.
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "commands.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"
#include "image_sets.hpp"
#include "names.hpp"
#include "toy_tables.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::string name;
  std::string to;
  bool quiet = false;
  ToyRequest toy;
};

void list() {
  const auto line = [](const std::string& name, const std::string& summary) {
    std::cout << "  " << std::left << std::setw(15) << name << summary << "\n";
  };
  std::cout << "Points with labels, as CSV:\n";
  for (const ToyTable& table : toy_tables())
    if (!table.trajectories) line(table.name, table.summary);
  std::cout << "Trajectories, as CSV with columns series and t:\n";
  for (const ToyTable& table : toy_tables())
    if (table.trajectories) line(table.name, table.summary);
  std::cout << "Images, fetched and verified:\n";
  for (const ImageSet& set : image_sets())
    line(set.name, set.summary + "; " + set.download + " from " + set.package);
}

/// A flag that the set does not have would do nothing, so it is refused.
void check_flags(const CLI::App& command, const std::string& name,
                 const std::vector<std::string>& understood) {
  for (const char* flag : {"--samples", "--classes", "--dimensions", "--series", "--points", "--duration",
                           "--irregular", "--noise"}) {
    if (command.get_option(flag)->count() == 0) continue;
    std::string listed;
    for (const std::string& each : understood) listed += " " + each;
    require(std::find(understood.begin(), understood.end(), flag) != understood.end(), "`", flag,
            "` means nothing for ", name, "; it understands", listed.empty() ? " --to" : listed);
  }
}

void write_toy(const ToyTable& table, const Request& request) {
  std::ostringstream content;
  table.write(content, request.toy);
  if (request.to.empty()) {
    std::cout << content.str();
    return;
  }
  write_atomically(request.to, content.str());
  if (!request.quiet) std::cout << request.to << "\n";
}

void run(const CLI::App& command, const Request& request) {
  if (request.name == "list") return list();
  std::vector<std::string> names = {"list"};
  for (const ToyTable& table : toy_tables()) names.push_back(table.name);
  for (const ImageSet& set : image_sets()) names.push_back(set.name);
  checked_name("data set", request.name, names);
  for (const ToyTable& table : toy_tables()) {
    if (table.name != request.name) continue;
    std::vector<std::string> understood = table.flags;
    understood.emplace_back("--noise");
    check_flags(command, table.name, understood);
    return write_toy(table, request);
  }
  for (const ImageSet& set : image_sets()) {
    if (set.name != request.name) continue;
    check_flags(command, set.name, {});
    const std::string folder = request.to.empty() ? "data/" + set.name : request.to;
    fetch_images(set, folder, request.quiet);
    if (!request.quiet) std::cout << folder << "\n";
  }
}

}  // namespace

void add_data(CLI::App& app) {
  auto request = std::make_shared<Request>();
  ToyRequest& toy = request->toy;
  CLI::App* command = app.add_subcommand("data", "Make data as CSV, or fetch an image set");
  command->add_option("name", request->name, "A set of `fathom data list`")->required();
  command->add_option("--to", request->to,
                      "A CSV file (default: print it), or a folder for images (default: data/NAME)");
  command->add_option("--samples", toy.samples, "Points of a set")->check(CLI::PositiveNumber);
  command->add_option("--classes", toy.classes, "Classes (spirals, gaussians)")->check(CLI::PositiveNumber);
  command->add_option("--dimensions", toy.dimensions, "Dimensions (spheres)")->check(CLI::PositiveNumber);
  command->add_option("--series", toy.series, "Trajectories")->check(CLI::PositiveNumber);
  command->add_option("--points", toy.points, "Points of each trajectory")->check(CLI::PositiveNumber);
  command->add_option("--duration", toy.duration, "Time from the first to the last point")
      ->check(CLI::PositiveNumber);
  command->add_flag("--irregular", toy.irregular, "Points at random times");
  command->add_option("--noise", toy.noise, "Deviation of the Gaussian noise")->check(CLI::NonNegativeNumber);
  command->add_option("--seed", toy.seed, "The same seed gives the same data")->capture_default_str();
  command->add_flag("--quiet", request->quiet, "Say nothing but errors");
  command->footer(
      "Examples:\n"
      "  fathom data list\n"
      "  fathom data moons --samples 500 --to moons.csv\n"
      "  fathom data vanderpol --series 8 --points 60 --irregular --noise 0.05 --to vdp.csv\n"
      "  fathom data fashion-mnist --to data/fashion-mnist");
  command->callback([command, request] { run(*command, *request); });
}

}  // namespace fathom::app
