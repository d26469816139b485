/// What the functions of fathom.h share: handles, the way in for structs and numbers, the way out for errors.
///
///   return answer(error, [&] { ...; });      // nothing thrown leaves it
#pragma once

#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fathom/fathom.h"
#include "fathom/program_field.hpp"
#include "fathom/runtime/model.hpp"
#include "fathom/session.hpp"
#include "fathom/support/error.hpp"

struct fathom_model {
  fathom::runtime::Model model;
  fathom::ProgramField field;
  std::vector<double> parameters;  // of the field
  std::string specification;
  std::vector<const char*> columns, labels, targets;
};

struct fathom_workspace {
  fathom::runtime::Workspace workspace;
  std::atomic_flag in_use = {};
};

struct fathom_field {
  fathom::ProgramField field;
  int32_t type = 0;  // of its callbacks; 0: either
};

namespace fathom::capi {

/// A Session with the C++ structs that its calls fill again and again.
template <class T> struct Typed {
  Session<T> session;
  Data<T> data = {};
  Gradient<T> gradient = {};
  Loss<T> loss = {};
  std::span<const int64_t> counts = {};  // of the call under way, where each sample has depths of its own
  View<const T> solved = {};  // shape of the last solve's states, as the Session sees them; else 0 x 0
};

}  // namespace fathom::capi

struct fathom_session {
  std::variant<fathom::capi::Typed<float>, fathom::capi::Typed<double>> typed;
  std::atomic_flag in_use = {};
};

namespace fathom::capi {

/// What a callback reported. Errors of the library pass through a solve as they are.
class CallbackFailure : public Error {
 public:
  using Error::Error;
};

/// The code and message of the exception under way.
fathom_code write_error(fathom_error* error) noexcept;

template <class Work> fathom_code answer(fathom_error* error, const Work& work) noexcept {
  try {
    work();
  } catch (...) { return write_error(error); }
  if (error) error->code = FATHOM_OK, error->message[0] = '\0';
  return FATHOM_OK;
}

inline void require_given(const void* pointer, const char* what) {
  require(pointer != nullptr, "`", what, "` must be given, got NULL");
}

template <class Struct> std::size_t size_of(const Struct* given, const char* what) {
  require_given(given, what);
  constexpr std::size_t most = 4096;
  require(given->size >= sizeof(std::size_t) && given->size <= most, "`size` of `", what, "` must be sizeof(",
          what, "), got ", given->size);
  return given->size;
}

/// A struct of the caller's as this version knows it: what an older caller's lacks is 0, and what a newer caller's has beyond must be.
template <class Struct> Struct known(const Struct* given, const char* what) {
  const std::size_t size = size_of(given, what);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t n = sizeof(Struct); n < size; ++n)
    require(bytes[n] == 0, "`", what, "` has a member that this version of fathom does not know");
  Struct result = {};
  std::memcpy(&result, given, std::min(size, sizeof(Struct)));
  return result;
}
template <class Struct> Struct known_or_default(const Struct* given, const char* what) {
  return given ? known(given, what) : Struct{};
}

/// As much of `all` as a struct of the caller's has members for. Its size stays; members unknown here become 0.
template <class Struct> void write_known(Struct* to, Struct all, const char* what) {
  const std::size_t size = all.size = size_of(to, what);
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  std::memcpy(bytes, &all, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) std::memset(bytes + sizeof(Struct), 0, size - sizeof(Struct));
}

template <class T> constexpr int32_t type_of = sizeof(T) == 4 ? FATHOM_FLOAT32 : FATHOM_FLOAT64;

inline int64_t product(int64_t rows, int64_t columns, const char* what) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 16;  // in bytes, they fit as well
  if (rows >= 0 && columns >= 0 && (columns == 0 || rows <= most / columns)) return rows * columns;
  throw InvalidArgument(text("`", what, "` cannot have ", rows, " x ", columns, " numbers"));
}

/// A view or an output, checked but for its shape; without data: nothing.
template <class T, class Numbers> auto numbers_of(const Numbers& given, const char* what) {
  using Element = std::conditional_t<std::is_same_v<Numbers, fathom_view>, const T, T>;
  if (!given.data) return View<Element>{};
  require(given.type == type_of<T>, "`", what, "` must be of the type ", type_of<T>, " (FATHOM_FLOAT",
          8 * sizeof(T), "), got ", given.type);
  product(given.rows, given.columns, what);
  return View<Element>{static_cast<Element*>(given.data), given.rows, given.columns};
}

/// The same with its shape. Without rows there need be no data.
template <class T, class Numbers>
auto numbers_of(const Numbers& given, int64_t rows, int64_t columns, const char* what) {
  const auto view = numbers_of<T>(given, what);
  const bool fits = view ? view.rows == rows && view.columns == columns : rows == 0;
  if (fits) return view;
  throw InvalidArgument(text("`", what, "` must be ", rows, " x ", columns, ", got ",
                             view ? text(view.rows, " x ", view.columns) : "none"));
}

/// One row of as many columns as there are; nothing without data.
template <class T, class Numbers> auto row_of(const Numbers& given, const char* what) {
  const auto view = numbers_of<T>(given, what);
  require(!view || view.rows == 1, "`", what, "` must be one row, got ", view.rows);
  return std::span(view.data, view.size());
}

/// Numbers of the library into an output of either type.
template <class Numbers> void write_row(const Numbers& numbers, const fathom_out& to, const char* what) {
  const auto write = [&](auto view) { std::copy(numbers.begin(), numbers.end(), view.data); };
  const int64_t size = int64_t(numbers.size());
  if (to.type == FATHOM_FLOAT32)
    write(numbers_of<float>(to, 1, size, what));
  else
    write(numbers_of<double>(to, 1, size, what));
}

/// Marks what is for one thread at a time.
class InUse {
 public:
  InUse(std::atomic_flag& flag, const char* what) : flag_(flag) {
    require(!flag_.test_and_set(std::memory_order_acquire), "this ", what,
            " is in use, by another thread or by the callback that calls: make one for each");
  }
  ~InUse() { flag_.clear(std::memory_order_release); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::atomic_flag& flag_;
};

/// The layers of a network or a head, each as long as its caller's version has it, in the memory of `all`.
void read_layers(const fathom_layer* layers, std::size_t count, std::vector<Layer>& all);

}  // namespace fathom::capi
