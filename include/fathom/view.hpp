/// Borrowed numbers in rows: what goes in and out of a Session.
///
///   std::vector<float> x = ...;                     // 64 samples of 2 features
///   const View<float> samples = view_of(x, 2);      // 64 rows, 2 columns
///
/// A view owns nothing: the numbers must stay where they are for as long as the function it is given to says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fathom {

/// `rows` rows of `columns` numbers, one row after the other. Without numbers (`data` null): nothing is given, or wanted.
template <class T> struct View {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  std::size_t size() const { return std::size_t(rows) * std::size_t(columns); }
  explicit operator bool() const { return data != nullptr; }
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns}; }
};

/// A vector, an array or a span as rows of `columns` numbers; what does not fill a whole row is left out.
template <class Numbers> auto view_of(Numbers& numbers, std::int64_t columns) {
  using T = std::remove_pointer_t<decltype(numbers.data())>;
  return View<T>{numbers.data(), columns > 0 ? std::int64_t(numbers.size()) / columns : 0, columns};
}

}  // namespace fathom
