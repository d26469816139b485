/// A small HTTP server for this machine: answers GET and HEAD, one thread, nothing else.
///
///   Server server({.port = 8017}, [](const Request& request) { return Response{.body = "hello"}; });
///   server.serve();   // until stop(), which a signal handler may call
///
/// Whatever a client does costs it, not us: requests are bounded in size and time, connections in number, and a slow or
/// silent client holds up nobody. On a loopback address the Host must be this machine too, so that no page of the web can
/// reach the server through a name of its own (DNS rebinding).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fathom::report {

struct Request {
  std::string method;
  std::string target;  ///< as sent: percent-encoded, starts with a slash
};

struct Response {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string body = {};
  std::string location = {};  ///< where to go instead, for status 302
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;                      ///< 0: any that is free
  std::chrono::milliseconds patience{10'000};  ///< for a whole request, and again for its answer to be taken
  std::size_t largest_request = 8192;          ///< bytes, headers included
  std::size_t most_connections = 64;
};

class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  /// Binds and listens; throws Error with one sentence when that is not possible.
  Server(const ServerOptions& options, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const;

  /// Answers until stop() is called.
  void serve();

  /// Safe in a signal handler and from other threads.
  void stop() noexcept;

 private:
  struct Connection;

  /// Whether newcomers are taken in now; else they wait in the kernel's queue.
  bool has_place(std::chrono::steady_clock::time_point now) const;
  void accept_one();
  void advance(Connection& connection);
  void read_from(Connection& connection);
  void write_to(Connection& connection);
  std::string answer(const std::string& head) const;

  ServerOptions options_;
  Handler handler_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};  // a pipe: stop() writes, the loop reads
  std::uint16_t port_ = 0;
  bool loopback_ = true;
  std::chrono::steady_clock::time_point closed_until_ = {};  // the machine had no socket left for a newcomer
  std::vector<Connection> connections_;
};

}  // namespace fathom::report
