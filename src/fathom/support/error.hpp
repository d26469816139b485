/// Errors of the library and the one vocabulary of argument checks.
///
///   require(depths.size() >= 2, "`depths` needs a start and an end, got ", depths.size(), " value(s)");
///
/// A message says what is required, what was given and, where it is not plain, what to do.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace fathom {

/// Everything the library throws by itself.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An argument that cannot be meant: found at the border, before anything is computed.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// Its arguments, written one after the other.
template <class... Parts> std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws InvalidArgument with the given message parts unless `condition` holds.
template <class... Parts> void require(bool condition, const Parts&... message) {
  if (!condition) throw InvalidArgument(text(message...));
}

}  // namespace fathom
