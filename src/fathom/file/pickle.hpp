/// The part of Python's pickle language that a torch state_dict is written in, as plain values.
/// (https://docs.python.org/3/library/pickletools.html; protocols 2 to 5)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom {

/// Numbers of a state_dict that lie in a file of their own.
struct PickledStorage {
  std::string type;  ///< "FloatStorage"
  std::string key;
  std::int64_t count = 0;
};

/// A view of a storage.
struct PickledTensor {
  PickledStorage storage;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

/// The named tensors of a pickled state_dict. Throws Error with one sentence for anything else.
std::vector<std::pair<std::string, PickledTensor>> unpickled_state_dict(std::string_view pickle);

}  // namespace fathom
