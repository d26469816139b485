/// `fathom view RUNS`: run folders in a browser, on this machine alone unless asked otherwise.
#include <csignal>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "fathom/report/server.hpp"
#include "fathom/report/site.hpp"

namespace fathom::app {

namespace {

struct Request {
  std::vector<std::string> folders = {"runs"};
  report::ServerOptions server{.port = 8017};
};

report::Server* running = nullptr;  // a signal handler has no other way to it

void view(const Request& request) {
  const report::Site site({request.folders.begin(), request.folders.end()});
  report::Server server(request.server, [&](const report::Request& asked) { return site.answer(asked); });
  running = &server;
  for (const int each : {SIGINT, SIGTERM}) std::signal(each, [](int) { running->stop(); });
  std::cout << server.url() << "\nCtrl-C ends it." << std::endl;
  server.serve();
  for (const int each : {SIGINT, SIGTERM}) std::signal(each, SIG_DFL);
  running = nullptr;
}

}  // namespace

void add_view(CLI::App& app) {
  auto request = std::make_shared<Request>();
  CLI::App* command = app.add_subcommand("view", "Look at runs in a browser, also while they train");
  command->add_option("folders", request->folders, "Run folders, or folders that hold them")
      ->capture_default_str();
  command->add_option("--port", request->server.port, "Port; 0 picks a free one")->capture_default_str();
  command
      ->add_option("--address", request->server.address,
                   "Which of this machine's addresses; 0.0.0.0: all, for everybody on the network")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  fathom view                     the runs in ./runs, at http://127.0.0.1:8017/\n"
      "  fathom view runs/annuli --port 0");
  command->callback([request] { view(*request); });
}

}  // namespace fathom::app
