/// The server of run folders as a client meets it, a hostile one included.
#include "fathom/report/site.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fathom/report/page.hpp"
#include "fathom/support/error.hpp"

namespace {

std::atomic<bool> no_sockets_left = false;
std::atomic<int> refused_newcomers = 0;

}  // namespace

/// Stands before the C library's function, to play a process that may open no more files.
extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  if (!no_sockets_left) return int(syscall(SYS_accept4, listener, address, size, flags));
  ++refused_newcomers;
  errno = EMFILE;
  return -1;
}

namespace fathom::report {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// runs/done and runs/training, with a secret beside them.
class Runs : public testing::Test {
 protected:
  Runs() {
    fs::remove_all(root_);
    fs::create_directories(root_ / "runs/done/models");
    fs::create_directories(root_ / "runs/a run with spaces");
    write("secret.txt", "SECRET");
    write("runs/secret.txt", "SECRET");
    write("runs/a run with spaces/metrics.jsonl", R"({"model": "m", "iteration": 1, "loss": 0.5})");
    write("runs/done/metrics.jsonl", R"({"model": "m", "iteration": 1, "loss": 0.5})");
    write("runs/done/metrics.json",
          R"({"experiment": "annuli", "size": "quick", "seed": 3, "models": {"m": {"loss": 0.5}},
        "verdicts": [{"claim": "closes <the> disc", "value": 1, "threshold": 1, "holds": true}]})");
    write("runs/done/report.html", "<p>the report</p>");
    write("runs/done/models/m.safetensors", "weights");
    fs::create_symlink(root_ / "secret.txt", root_ / "runs/done/link");
    fs::create_directory_symlink(root_, root_ / "runs/done/outside");
    fs::create_symlink("metrics.json", root_ / "runs/done/inside.json");
    server_ = std::make_unique<Server>(
        ServerOptions{.patience = 1500ms, .largest_request = 2000, .most_connections = 8},
        [this](const Request& request) { return site_->answer(request); });
    site_ = std::make_unique<Site>(std::vector{root_ / "runs"});
    thread_ = std::thread([this] { server_->serve(); });
  }
  ~Runs() override {
    server_->stop();
    thread_.join();
    fs::remove_all(root_);
  }

  void write(const std::string& file, const std::string& content) { std::ofstream(root_ / file) << content; }

  int connected() const {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval limit{60, 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return client;
  }

  static std::string received(int client) {
    std::string answer;
    char buffer[4096];
    for (ssize_t count; (count = recv(client, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, std::size_t(count));
    close(client);
    return answer;
  }

  std::string sent(const std::string& request) const {
    const int client = connected();
    EXPECT_EQ(send(client, request.data(), request.size(), MSG_NOSIGNAL), ssize_t(request.size()));
    return received(client);
  }

  std::string get(const std::string& target, const std::string& method = "GET") const {
    return sent(method + " " + target + " HTTP/1.1\r\nHost: localhost:" + std::to_string(server_->port()) +
                "\r\n\r\n");
  }

  static int status(const std::string& answer) {
    return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
  }
  static std::string body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  fs::path root_ = fs::temp_directory_path() / ("fathom site test " + std::to_string(getpid()));
  std::unique_ptr<Site> site_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(Runs, HaveAnIndexWithTheirVerdicts) {
  const std::string page = get("/");
  EXPECT_EQ(status(page), 200);
  EXPECT_TRUE(contains(page, "2 runs, 1 of 1 claims hold"));
  EXPECT_TRUE(contains(page, "closes &lt;the&gt; disc"));
  EXPECT_TRUE(contains(page, "href=\"/a%20run%20with%20spaces/\""));
}

TEST_F(Runs, ShowTheirReportWhenDone) {
  EXPECT_EQ(body(get("/done/")), "<p>the report</p>");
  EXPECT_EQ(body(get("/done/models/m.safetensors")), "weights");
  EXPECT_TRUE(contains(get("/done"), "Location: /done/\r\n"));
}

TEST_F(Runs, WithoutAReportShowTheirFigures) {
  fs::remove(root_ / "runs/done/report.html");
  const std::string page = get("/done/");
  EXPECT_TRUE(contains(page, "<td>0.5</td>")) << page.substr(0, 300);
  EXPECT_FALSE(contains(page, "data-live"));
}

TEST_F(Runs, ThatStillTrainTellTheirStateUntilTheyAreDone) {
  EXPECT_TRUE(contains(get("/a%20run%20with%20spaces/"), "data-live=\"live.json\""));
  const auto live = [&] { return nlohmann::json::parse(body(get("/a%20run%20with%20spaces/live.json"))); };
  EXPECT_FALSE(live()["finished"]);
  EXPECT_TRUE(contains(live()["status"], "m: iteration 1, loss 0.5"));
  std::ofstream(root_ / "runs/a run with spaces/metrics.jsonl", std::ios::app)
      << "\n"
      << R"({"model": "m", "iteration": 2, "loss": 0.25})"
      << "\n"
      << R"({"model": "m", "itera)";
  EXPECT_TRUE(contains(live()["status"], "m: iteration 2, loss 0.25"))
      << "a line that is still being written is left out";
  write("runs/a run with spaces/metrics.json", R"({"experiment": "annuli", "models": {}, "verdicts": []})");
  EXPECT_TRUE(live()["finished"]);
}

TEST_F(Runs, ThatWereStartedAgainAreNotTakenForFinished) {
  fs::last_write_time(root_ / "runs/done/metrics.json", fs::file_time_type::clock::now() - 1h);
  EXPECT_TRUE(contains(get("/"), "0 of 0 claims hold"));
  EXPECT_TRUE(contains(get("/done/"), "data-live"));
}

TEST_F(Runs, AnswerOnlyGetAndHead) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"}) {
    const std::string answer = get("/done/", method);
    EXPECT_EQ(status(answer), 405) << method;
    EXPECT_TRUE(contains(answer, "Allow: GET, HEAD")) << method;
  }
  const std::string head = get("/done/", "HEAD");
  EXPECT_EQ(status(head), 200);
  EXPECT_TRUE(contains(head, "Content-Length: 17\r\n"));
  EXPECT_EQ(body(head), "");
}

TEST_F(Runs, LetNoPathEscape) {
  for (const char* target : {"/../secret.txt",
                             "/secret.txt",
                             "/done/../../secret.txt",
                             "/done/%2e%2e/%2e%2e/secret.txt",
                             "/done/%2E%2E/secret.txt",
                             "/done/..%2f..%2fsecret.txt",
                             "/done/%2e%2e%2fsecret.txt",
                             "/done/%252e%252e/secret.txt",
                             "/done//secret.txt",
                             "/done/./../secret.txt",
                             "/done/..\\..\\secret.txt",
                             "/done/%5c..%5csecret.txt",
                             "/done/link",
                             "/done/outside/secret.txt",
                             "/done/outside/runs/secret.txt",
                             "/done/models/..;/secret.txt",
                             "/done/%00",
                             "/done/%",
                             "/done/%2",
                             "/done/%zz",
                             "/done/models",
                             "/done/metrics.json/x",
                             "//",
                             "/%2f",
                             "/done/report.html%00.png"}) {
    const std::string answer = get(target);
    EXPECT_EQ(status(answer), 404) << target << "\n" << answer;
    EXPECT_FALSE(contains(answer, "SECRET")) << target;
  }
  const std::string absolute = get((root_ / "secret.txt").string());
  EXPECT_NE(status(absolute), 200);
  EXPECT_EQ(status(get("/done/inside.json")), 200) << "a link that stays inside is followed";
}

TEST_F(Runs, RefuseWhatIsNotARequest) {
  for (const char* words :
       {"hello\r\n\r\n", "GET\r\n\r\n", "GET / SPDY/3\r\n\r\n", "GET http://x/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1 and more\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_EQ(status(sent(words)), 400) << words;
  }
}

TEST_F(Runs, RefuseAForeignHost) {
  for (const char* host : {"Host: evil.example\r\n", "Host: localhost.evil.example:80\r\n", ""})
    EXPECT_EQ(status(sent(std::string("GET / HTTP/1.1\r\n") + host + "\r\n")), 403) << host;
  EXPECT_EQ(status(sent("GET / HTTP/1.1\r\nhOsT:   127.0.0.1  \r\n\r\n")), 200);
}

TEST_F(Runs, RefuseARequestThatIsTooLong) {
  EXPECT_EQ(status(get("/" + std::string(3000, 'a'))), 431);
  EXPECT_EQ(status(sent(std::string(5000, 'a'))), 431);
}

TEST_F(Runs, DropASlowClientAndServeTheOthersMeanwhile) {
  const int slow = connected();
  send(slow, "GET / HT", 8, 0);
  EXPECT_EQ(status(get("/done/")), 200);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(received(slow), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST_F(Runs, OutliveMoreSilentClientsThanThereArePlaces) {
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connected());
  EXPECT_EQ(status(get("/done/")), 200);
  for (const int client : silent) close(client);
}

TEST_F(Runs, WaitWhenNoSocketIsLeftAndServeTheNewcomerLater) {
  no_sockets_left = true;
  refused_newcomers = 0;
  const auto began = std::chrono::steady_clock::now();
  const int newcomer = connected();  // by the kernel, not yet by the server
  while (refused_newcomers == 0) std::this_thread::yield();
  std::this_thread::sleep_for(250ms);
  const int attempts = refused_newcomers;
  const auto waited = std::chrono::steady_clock::now() - began;
  EXPECT_LE(attempts, 1 + waited / 100ms) << "the server spins";
  no_sockets_left = false;
  const std::string request = "GET /done/ HTTP/1.1\r\nHost: localhost\r\n\r\n";
  send(newcomer, request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_EQ(status(received(newcomer)), 200);
}

TEST_F(Runs, SurviveAClientThatLeavesInTheMiddleOfTheAnswer) {
  write("runs/done/report.html", std::string(2 << 20, 'x'));
  for (int i = 0; i < 5; ++i) {
    const int client = connected();
    const std::string request = "GET /done/ HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send(client, request.data(), request.size(), 0);
    close(client);
  }
  EXPECT_EQ(body(get("/done/")).size(), std::size_t(2 << 20));
}

TEST_F(Runs, ThatAppearLaterAreFound) {
  EXPECT_EQ(status(get("/new/")), 404);
  fs::create_directories(root_ / "runs/new");
  write("runs/new/metrics.jsonl", "");
  EXPECT_EQ(status(get("/new/")), 200);
}

TEST_F(Runs, WithDamagedMetricsAreShownWithoutThem) {
  write("runs/done/metrics.json", "{\"experiment\": ");
  EXPECT_EQ(status(get("/")), 200);
  EXPECT_EQ(status(get("/done/")), 200);
}

TEST(Server, ListensOnThisMachineAloneByDefault) {
  EXPECT_EQ(ServerOptions{}.address, "127.0.0.1");
  EXPECT_THROW(Server({.address = "everywhere"}, {}), InvalidArgument);
}

TEST(Server, SaysThatAPortIsTaken) {
  const Server first({}, {});
  try {
    const Server second({.port = first.port()}, {});
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("choose another with --port"), std::string::npos)
        << error.what();
  }
}

TEST(Site, NeedsFolders) { EXPECT_THROW(Site({"/no/such/folder"}), InvalidArgument); }

}  // namespace
}  // namespace fathom::report
