#include "fathom/file/state_dict.hpp"

#include <algorithm>
#include <cstring>

#include "fathom/file/pickle.hpp"
#include "fathom/read/zip.hpp"
#include "fathom/support/whole_file.hpp"

namespace fathom {

namespace {

constexpr std::string_view zip_mark = "PK";
constexpr std::string_view pickle_name = "data.pkl";

const std::map<std::string, DataType> storage_types = {
    {"FloatStorage", DataType::f32},     {"DoubleStorage", DataType::f64}, {"HalfStorage", DataType::f16},
    {"BFloat16Storage", DataType::bf16}, {"LongStorage", DataType::i64},   {"IntStorage", DataType::i32},
    {"ShortStorage", DataType::i16},     {"CharStorage", DataType::i8},    {"ByteStorage", DataType::u8},
    {"BoolStorage", DataType::boolean}};

std::string content(std::string_view archive, const ZipEntry& entry, const std::string& source) {
  if (entry.method != 0) throw Error(text("`", entry.name, "` is compressed, which torch does not do"));
  return read_string(*unpacked(archive, entry, source), entry.size, entry.name);
}

/// The elements of a view, row by row. The shape and strides were checked.
std::string gathered(std::string_view storage, const PickledTensor& view, std::size_t element) {
  std::uint64_t count = 1;
  for (std::int64_t size : view.shape) count *= std::uint64_t(size);
  std::string bytes(count * element, '\0');
  std::vector<std::int64_t> index(view.shape.size(), 0);
  std::int64_t place = view.offset;
  for (std::uint64_t n = 0; n < count; ++n) {
    std::memcpy(bytes.data() + n * element, storage.data() + std::uint64_t(place) * element, element);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < view.shape[axis]) {
        place += view.strides[axis];
        break;
      }
      // Back to the axis' first element; check_view() knows that this product exists, unlike stride times size.
      place -= view.strides[axis] * (view.shape[axis] - 1);
      index[axis] = 0;
    }
  }
  return bytes;
}

/// Throws unless every element of the view lies in its storage, and there are no more of them than the storage has.
void check_view(const std::string& name, const PickledTensor& view) {
  const auto fail = [&] { throw Error(text("tensor `", name, "` reaches beyond its storage")); };
  const std::int64_t limit = view.storage.count;
  if (view.shape.size() != view.strides.size() || view.offset < 0 || view.offset > limit) fail();
  std::int64_t count = 1, last = view.offset;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    const std::int64_t size = view.shape[axis], stride = view.strides[axis];
    if (size < 0 || stride < 0 || __builtin_mul_overflow(count, size, &count)) fail();
    std::int64_t reach = 0;
    if (size > 0 &&
        (__builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last)))
      fail();
  }
  if (count > limit || (count > 0 && last >= limit)) fail();
}

class Archive {
 public:
  Archive(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {
    for (ZipEntry& entry : zip_entries(bytes, source)) entries_.emplace(entry.name, entry);
  }

  std::map<std::string, StoredTensor> tensors() {
    const auto pickle = std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) {
      return entry.first.ends_with("/" + std::string(pickle_name));
    });
    if (pickle == entries_.end())
      throw Error("there is no `data.pkl` in it; a TorchScript module is not a state_dict");
    folder_ = pickle->first.substr(0, pickle->first.size() - pickle_name.size());
    std::map<std::string, StoredTensor> tensors;
    std::uint64_t total = 0;
    for (const auto& [name, view] : unpickled_state_dict(content(bytes_, pickle->second, source_))) {
      StoredTensor tensor = stored(name, view);
      total += tensor.bytes.size();
      // Layers may share weights, but not so that a small file becomes a large model.
      if (total > 8 * bytes_.size()) throw Error("its tensors are far larger than the file");
      tensors.insert_or_assign(name, std::move(tensor));
    }
    return tensors;
  }

 private:
  StoredTensor stored(const std::string& name, const PickledTensor& view) {
    const auto type = storage_types.find(view.storage.type);
    if (type == storage_types.end())
      throw Error(text("tensor `", name, "` is of an unknown type, `", view.storage.type, "`"));
    const std::string& storage = storage_named(view.storage.key);
    const std::size_t element = bytes_of(type->second);
    const bool fits = view.storage.count >= 0 && storage.size() % element == 0 &&
                      storage.size() / element == std::uint64_t(view.storage.count);
    if (!fits)
      throw Error(text("the storage of tensor `", name, "` has ", storage.size(), " bytes, not ",
                       view.storage.count, " elements"));
    check_view(name, view);
    return {.type = type->second, .shape = view.shape, .bytes = gathered(storage, view, element)};
  }

  const std::string& storage_named(const std::string& key) {
    const auto known = storages_.find(key);
    if (known != storages_.end()) return known->second;
    const auto entry = entries_.find(folder_ + "data/" + key);
    if (entry == entries_.end()) throw Error(text("the storage `", key, "` is missing"));
    return storages_.emplace(key, content(bytes_, entry->second, source_)).first->second;
  }

  std::string_view bytes_;
  const std::string& source_;
  std::map<std::string, ZipEntry> entries_;
  std::map<std::string, std::string> storages_;
  std::string folder_;
};

}  // namespace

std::map<std::string, StoredTensor> parse_state_dict(std::string_view bytes, const std::string& source) {
  if (!bytes.starts_with(zip_mark))
    throw Error(text(source, " is not a state_dict of torch 1.6 or newer, which are zip archives"));
  try {
    return Archive(bytes, source).tensors();
  } catch (const Error& error) { throw Error(text(source, " is not a readable state_dict: ", error.what())); }
}

std::map<std::string, StoredTensor> read_tensors(const std::filesystem::path& path) {
  const std::string bytes = read_whole(path), source = "`" + path.string() + "`";
  return bytes.starts_with(zip_mark) ? parse_state_dict(bytes, source)
                                     : parse_safetensors(bytes, source).tensors;
}

}  // namespace fathom
