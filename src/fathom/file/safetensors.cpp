#include "fathom/file/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "fathom/support/whole_file.hpp"

namespace fathom {

static_assert(std::endian::native == std::endian::little, "the format is little endian, and so is this code");

template <> const NameTable<DataType>& names<DataType>() {
  static const NameTable<DataType> table = {
      {DataType::boolean, "BOOL"}, {DataType::u8, "U8"},   {DataType::i8, "I8"},     {DataType::i16, "I16"},
      {DataType::u16, "U16"},      {DataType::f16, "F16"}, {DataType::bf16, "BF16"}, {DataType::i32, "I32"},
      {DataType::u32, "U32"},      {DataType::f32, "F32"}, {DataType::f64, "F64"},   {DataType::i64, "I64"},
      {DataType::u64, "U64"}};
  return table;
}

std::size_t bytes_of(DataType type) {
  switch (type) {
    case DataType::boolean:
    case DataType::u8:
    case DataType::i8: return 1;
    case DataType::i16:
    case DataType::u16:
    case DataType::f16:
    case DataType::bf16: return 2;
    case DataType::i32:
    case DataType::u32:
    case DataType::f32: return 4;
    case DataType::f64:
    case DataType::i64:
    case DataType::u64: return 8;
  }
  throw InvalidArgument("a tensor of unknown type");
}

std::string shape_text(const Shape& shape) {
  std::string inner;
  for (std::int64_t size : shape) inner += (inner.empty() ? "" : ", ") + std::to_string(size);
  return "(" + inner + ")";
}

namespace {

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t header_limit = 16 << 20;  // room for a hundred thousand tensors
constexpr std::size_t axis_limit = 64;
constexpr int depth_limit = 3;  // {name: {"shape": [numbers]}}
constexpr const char* metadata_key = "__metadata__";

/// Bytes of a tensor; none where the product leaves 64 bits.
std::optional<std::uint64_t> byte_count(DataType type, const Shape& shape) {
  std::uint64_t total = bytes_of(type);
  // A zero anywhere makes the tensor empty however large the other sizes are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (std::int64_t size : shape) {
    if (__builtin_mul_overflow(total, std::uint64_t(size), &total)) return {};
  }
  return total;
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu,
                      fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float small = float(fraction) * 0x1p-24f;
    return sign ? -small : small;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;  // the bias of 15 becomes one of 127
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <class Stored, class T, class Convert>
std::vector<T> converted(const std::string& bytes, Convert convert) {
  std::vector<T> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = T(convert(stored));
  }
  return values;
}

/// Complains about one file.
class HeaderReader {
 public:
  HeaderReader(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  TensorFile read() {
    const std::string_view header = header_text();
    data_ = bytes_.substr(length_bytes + header.size());
    const Json document = parsed(header);
    if (!document.is_object()) fail("its header is not a JSON object");
    TensorFile file;
    for (const auto& [name, entry] : document.items()) {
      if (name == metadata_key)
        file.metadata = metadata(entry);
      else
        file.tensors.emplace(name, tensor(name, entry));
    }
    check_places();
    return file;
  }

 private:
  struct Place {
    std::uint64_t begin, end;
    std::string name;
  };

  template <class... Parts> [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(text(source_, " is not a valid safetensors file: ", parts...));
  }

  std::string_view header_text() const {
    if (bytes_.size() < length_bytes) fail("it has only ", bytes_.size(), " byte(s)");
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), length_bytes);
    if (length > header_limit)
      fail("its header would have ", length, " bytes; at most ", header_limit, " are read");
    if (length > bytes_.size() - length_bytes)
      fail("its header should have ", length, " bytes, but only ", bytes_.size() - length_bytes,
           " follow; it is cut off");
    return bytes_.substr(length_bytes, length);
  }

  Json parsed(std::string_view header) const {
    std::set<std::string> seen;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      const bool opens =
          event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
      if (opens && depth >= depth_limit) fail("its header is nested too deeply");
      if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(value.get<std::string>()).second)
        fail("the name `", value.get<std::string>(), "` occurs twice");
      return true;
    };
    try {
      return Json::parse(header.begin(), header.end(), watch);
    } catch (const Json::exception&) { fail("its header is not JSON"); }
  }

  std::map<std::string, std::string> metadata(const Json& entry) const {
    if (!entry.is_object()) fail("its metadata is not an object of texts");
    std::map<std::string, std::string> texts;
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("the metadata `", key, "` is not a text");
      texts.emplace(key, value.get<std::string>());
    }
    return texts;
  }

  StoredTensor tensor(const std::string& name, const Json& entry) {
    if (!entry.is_object()) fail("the entry of tensor `", name, "` is not an object");
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!entry.contains(key)) fail("tensor `", name, "` has no `", key, "`");
    }
    StoredTensor stored;
    stored.type = type_of(name, entry["dtype"]);
    stored.shape = shape_of(name, entry["shape"]);
    const Json& offsets = entry["data_offsets"];
    const bool two = offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                     offsets[1].is_number_unsigned();
    if (!two) fail("the `data_offsets` of tensor `", name, "` are not two numbers");
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    if (begin > end || end > data_.size())
      fail("tensor `", name, "` should lie at bytes ", begin, " to ", end, " of ", data_.size(),
           "; the file is cut off or damaged");
    const auto needed = byte_count(stored.type, stored.shape);
    if (!needed || *needed != end - begin)
      fail("tensor `", name, "` of shape ", shape_text(stored.shape), " does not fit its ", end - begin,
           " bytes");
    stored.bytes = data_.substr(begin, end - begin);
    places_.push_back({begin, end, name});
    return stored;
  }

  DataType type_of(const std::string& name, const Json& value) const {
    for (const auto& [type, known] : names<DataType>()) {
      if (value.is_string() && value.get_ref<const std::string&>() == known) return type;
    }
    fail("tensor `", name, "` is of an unknown type");
  }

  Shape shape_of(const std::string& name, const Json& value) const {
    if (!value.is_array() || value.size() > axis_limit)
      fail("the shape of tensor `", name, "` is not a list of at most ", axis_limit, " sizes");
    Shape shape;
    for (const Json& size : value) {
      const bool fits = size.is_number_unsigned() && size.get<std::uint64_t>() <= std::uint64_t(INT64_MAX);
      if (!fits) fail("the shape of tensor `", name, "` has a size that is not a whole number");
      shape.push_back(size.get<std::int64_t>());
    }
    return shape;
  }

  /// The format allows neither holes nor overlaps: one byte, one owner.
  void check_places() {
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t reached = 0;
    for (const Place& place : places_) {
      if (place.begin != reached)
        fail("tensor `", place.name, "` begins at byte ", place.begin, " of the data, not at ", reached,
             " where the one before ends");
      reached = place.end;
    }
    if (reached != data_.size()) fail(data_.size() - reached, " byte(s) of its data belong to no tensor");
  }

  std::string_view bytes_;
  std::string_view data_;
  const std::string& source_;
  std::vector<Place> places_;
};

}  // namespace

template <class T> std::vector<T> StoredTensor::numbers() const {
  switch (type) {
    case DataType::f32: return converted<float, T>(bytes, [](float value) { return value; });
    case DataType::f64: return converted<double, T>(bytes, [](double value) { return value; });
    case DataType::f16: return converted<std::uint16_t, T>(bytes, from_half);
    case DataType::bf16:
      return converted<std::uint16_t, T>(
          bytes, [](std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t(upper) << 16); });
    default: throw Error(text("a tensor of type ", name_of(type), " does not hold floating-point numbers"));
  }
}
template std::vector<float> StoredTensor::numbers() const;
template std::vector<double> StoredTensor::numbers() const;

template <class T> StoredTensor stored_tensor(Shape shape, std::span<const T> values) {
  const DataType type = sizeof(T) == sizeof(float) ? DataType::f32 : DataType::f64;
  const auto needed = byte_count(type, shape);
  require(needed && *needed == values.size_bytes(), "a tensor of shape ", shape_text(shape), " cannot hold ",
          values.size(), " value(s)");
  std::string bytes(values.size_bytes(), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {.type = type, .shape = std::move(shape), .bytes = std::move(bytes)};
}
template StoredTensor stored_tensor(Shape, std::span<const float>);
template StoredTensor stored_tensor(Shape, std::span<const double>);

std::string to_bytes(const TensorFile& file) {
  // Large elements first, so that every tensor is aligned to its own type.
  std::vector<const std::pair<const std::string, StoredTensor>*> order;
  for (const auto& entry : file.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return bytes_of(a->second.type) > bytes_of(b->second.type);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[metadata_key] = file.metadata;
  std::uint64_t end = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    require(name != metadata_key, "a tensor cannot have the name `", metadata_key, "`");
    require(byte_count(tensor.type, tensor.shape) == tensor.bytes.size(), "tensor `", name, "` of shape ",
            shape_text(tensor.shape), " cannot have ", tensor.bytes.size(), " bytes");
    const std::uint64_t begin = end;
    end += tensor.bytes.size();
    header[name] = {{"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const Json::exception&) {
    throw InvalidArgument("names and metadata of a model file must be UTF-8");
  }
  json.append((length_bytes - json.size() % length_bytes) % length_bytes, ' ');
  require(json.size() <= header_limit, "the header of a model file would have ", json.size(),
          " bytes; at most ", header_limit, " are read");

  const std::uint64_t length = json.size();
  std::string bytes(length_bytes, '\0');
  std::memcpy(bytes.data(), &length, length_bytes);
  bytes.reserve(length_bytes + json.size() + end);
  bytes += json;
  for (const auto* entry : order) bytes += entry->second.bytes;
  return bytes;
}

TensorFile parse_safetensors(std::string_view bytes, const std::string& source) {
  return HeaderReader(bytes, source).read();
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  write_atomically(path, to_bytes(file));
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_whole(path), "`" + path.string() + "`");
}

}  // namespace fathom
