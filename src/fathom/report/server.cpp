#include "fathom/report/server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "fathom/support/error.hpp"

namespace fathom::report {

using Clock = std::chrono::steady_clock;

struct Server::Connection {
  enum class Stage { reading, writing, draining, done };
  int socket;
  Clock::time_point deadline;
  Stage stage = Stage::reading;
  std::string received = {};
  std::string answer = {};
  std::size_t sent = 0;
};

namespace {

constexpr auto drain_time = std::chrono::seconds(1);
constexpr auto pause_without_sockets = std::chrono::milliseconds(100);

std::string reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 302: return "Found";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Internal Server Error";
  }
}

std::string head_of(const Response& response) {
  return text("HTTP/1.1 ", response.status, " ", reason(response.status), "\r\nContent-Type: ", response.type,
              "\r\nContent-Length: ", response.body.size(),
              "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
              "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n",
              response.status == 405 ? "Allow: GET, HEAD\r\n" : "",
              response.location.empty() ? "" : "Location: " + response.location + "\r\n", "\r\n");
}

Response refusal(int status, const std::string& why) {
  return {.status = status, .type = "text/plain; charset=utf-8", .body = why + "\n"};
}

/// The value of a header, or nothing. `head` is all lines of the request.
std::string header(const std::string& head, const std::string& name) {
  std::istringstream lines(head);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(':');
    if (colon != name.size() || strncasecmp(line.c_str(), name.c_str(), colon) != 0) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1), last = line.find_last_not_of(" \t\r");
    return first == std::string::npos || last < first ? "" : line.substr(first, last - first + 1);
  }
  return {};
}

bool names_this_machine(const std::string& host) {
  const std::string name = host.substr(0, host.rfind(':'));
  return host == "localhost" || host == "127.0.0.1" || name == "localhost" || name == "127.0.0.1";
}

}  // namespace

Server::Server(const ServerOptions& options, Handler handler)
    : options_(options), handler_(std::move(handler)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  require(inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) == 1, "`", options.address,
          "` is not an IPv4 address; use 127.0.0.1 for this machine alone");
  loopback_ = (ntohl(address.sin_addr.s_addr) >> 24) == 127;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 64) != 0) {
    const std::string why = std::strerror(errno);
    close(listener_);
    throw Error(text("cannot listen on ", options.address, " port ", options.port, ": ", why,
                     "; choose another with --port"));
  }
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(text("cannot make a pipe: ", std::strerror(errno)));
}

Server::~Server() {
  for (const Connection& connection : connections_) close(connection.socket);
  for (const int descriptor : {listener_, wake_[0], wake_[1]}) close(descriptor);
}

std::string Server::url() const { return text("http://", options_.address, ":", port_, "/"); }

void Server::stop() noexcept {
  const char byte = 1;
  static_cast<void>(!write(wake_[1], &byte, 1));
}

void Server::serve() {
  while (true) {
    std::vector<pollfd> waits = {{wake_[0], POLLIN, 0}};
    const auto now = Clock::now();
    waits.push_back({has_place(now) ? listener_ : -1, POLLIN, 0});
    auto next = now + std::chrono::hours(1);
    if (closed_until_ > now) next = closed_until_;
    for (const Connection& connection : connections_) {
      waits.push_back(
          {connection.socket, short(connection.stage == Connection::Stage::writing ? POLLOUT : POLLIN), 0});
      next = std::min(next, connection.deadline);
    }
    const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count() + 1;
    if (poll(waits.data(), waits.size(), int(std::max<long>(0, pause))) < 0 && errno != EINTR)
      throw Error(text("waiting for requests failed: ", std::strerror(errno)));
    if (waits[0].revents) return;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      if (waits[i + 2].revents) advance(connection);
      if (Clock::now() > connection.deadline) connection.stage = Connection::Stage::done;
      if (connection.stage == Connection::Stage::done) close(connection.socket);
    }
    std::erase_if(connections_, [](const Connection& each) { return each.stage == Connection::Stage::done; });
    if (waits[1].revents) accept_one();
  }
}

bool Server::has_place(Clock::time_point now) const {
  return connections_.size() < options_.most_connections && now >= closed_until_;
}

void Server::accept_one() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    connections_.push_back({socket, Clock::now() + options_.patience});
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    // The newcomer stays in the queue, and poll() would return for it at once, again and again.
    closed_until_ = Clock::now() + pause_without_sockets;
  }
}

void Server::advance(Connection& connection) {
  if (connection.stage == Connection::Stage::writing) {
    write_to(connection);
  } else {
    read_from(connection);
  }
}

void Server::read_from(Connection& connection) {
  char buffer[4096];
  const ssize_t count = recv(connection.socket, buffer, sizeof buffer, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    connection.stage = Connection::Stage::done;
    return;
  }
  if (connection.stage == Connection::Stage::draining) return;
  connection.received.append(buffer, std::size_t(count));
  const std::size_t end = connection.received.find("\r\n\r\n");
  if (end == std::string::npos && connection.received.size() <= options_.largest_request) return;
  if (end == std::string::npos || end > options_.largest_request) {
    const Response refused =
        refusal(431, text("a request may have at most ", options_.largest_request, " bytes"));
    connection.answer = head_of(refused) + refused.body;
  } else {
    connection.answer = answer(connection.received.substr(0, end + 2));
  }
  connection.stage = Connection::Stage::writing;
  connection.deadline = Clock::now() + options_.patience;
  write_to(connection);
}

void Server::write_to(Connection& connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t count = send(connection.socket, connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      connection.stage = Connection::Stage::done;
      return;
    }
    connection.sent += std::size_t(count);
  }
  // Closing while unread bytes wait would reset the connection and could take the answer with it.
  shutdown(connection.socket, SHUT_WR);
  connection.stage = Connection::Stage::draining;
  connection.deadline = Clock::now() + drain_time;
}

std::string Server::answer(const std::string& head) const {
  std::istringstream first_line(head.substr(0, head.find("\r\n")));
  Request request;
  std::string version, further;
  first_line >> request.method >> request.target >> version;
  const bool well_formed =
      version.starts_with("HTTP/1.") && !(first_line >> further) && request.target.starts_with("/");
  Response response;
  if (!well_formed) {
    response = refusal(400, "a request needs a method, a path and HTTP/1.x");
  } else if (request.method != "GET" && request.method != "HEAD") {
    response = refusal(405, "only GET and HEAD are answered here");
  } else if (loopback_ && !names_this_machine(header(head, "Host"))) {
    response = refusal(403, "the Host of a request must be localhost or 127.0.0.1");
  } else {
    try {
      response = handler_(request);
    } catch (const std::exception& error) { response = refusal(500, error.what()); }
  }
  return head_of(response) + (request.method == "HEAD" ? "" : response.body);
}

}  // namespace fathom::report
