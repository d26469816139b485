#include "fathom/file/pickle.hpp"

#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <variant>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

// Values refer to each other by their place in one list: a file may tie knots without anybody recursing or leaking.
using Ref = std::size_t;

struct None {};
struct Mark {};
struct Global {
  std::string name;  // "module name"
};
struct Sequence {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
using Value = std::variant<None, Mark, bool, std::int64_t, double, std::string, Global, Sequence, Dict,
                           PickledStorage, PickledTensor>;

[[noreturn]] void refuse(const std::string& what) { throw Error("the pickle " + what); }

/// Bytes from front to back.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) refuse("ends early");
    const std::string_view part = left_.substr(0, count);
    left_.remove_prefix(count);
    return part;
  }
  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string line() {
    const auto end = left_.find('\n');
    if (end == std::string_view::npos) refuse("ends early");
    return std::string(take(end + 1).substr(0, end));
  }

 private:
  std::string_view left_;
};

class Machine {
 public:
  explicit Machine(std::string_view pickle) : bytes_(pickle) {}

  Ref run() {
    while (!stopped_) step(bytes_.number<std::uint8_t>());
    return pop();
  }

  const Value& value(Ref ref) const { return values_[ref]; }
  template <class T> const T& get(Ref ref, const char* what) const {
    const T* found = std::get_if<T>(&values_[ref]);
    if (!found) refuse(text("has something else where ", what, " should be"));
    return *found;
  }

 private:
  void push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(values_.size() - 1);
  }
  Ref pop() {
    if (stack_.empty()) refuse("takes from an empty stack");
    const Ref ref = stack_.back();
    stack_.pop_back();
    if (std::holds_alternative<Mark>(values_[ref])) refuse("takes a mark for a value");
    return ref;
  }
  std::vector<Ref> pop(std::size_t count) {
    std::vector<Ref> items(count);
    while (count-- > 0) items[count] = pop();
    return items;
  }
  std::vector<Ref> pop_to_mark() {
    std::size_t begin = stack_.size();
    while (begin > 0 && !std::holds_alternative<Mark>(values_[stack_[begin - 1]])) --begin;
    if (begin == 0) refuse("has no mark where one is needed");
    std::vector<Ref> items(stack_.begin() + std::ptrdiff_t(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }
  Ref top() const {
    if (stack_.empty()) refuse("takes from an empty stack");
    return stack_.back();
  }
  template <class T> T& top_as(const char* what) {
    T* found = std::get_if<T>(&values_[top()]);
    if (!found) refuse(text("has something else where ", what, " should be"));
    return *found;
  }

  void step(std::uint8_t code) {
    switch (code) {
      case 0x80: check_protocol(bytes_.number<std::uint8_t>()); break;
      case 0x95: bytes_.take(8); break;  // a frame: how far to read ahead
      case '.': stopped_ = true; break;
      case 'N': push(None{}); break;
      case '(': push(Mark{}); break;
      case 0x88: push(true); break;
      case 0x89: push(false); break;
      case 'J': push(std::int64_t(bytes_.number<std::int32_t>())); break;
      case 'K': push(std::int64_t(bytes_.number<std::uint8_t>())); break;
      case 'M': push(std::int64_t(bytes_.number<std::uint16_t>())); break;
      case 0x8a: push(long_integer()); break;
      case 'G': push(std::bit_cast<double>(__builtin_bswap64(bytes_.number<std::uint64_t>()))); break;
      case 'X': push(std::string(bytes_.take(bytes_.number<std::uint32_t>()))); break;
      case 0x8c: push(std::string(bytes_.take(bytes_.number<std::uint8_t>()))); break;
      case ')':
      case ']': push(Sequence{}); break;
      case '}': push(Dict{}); break;
      case 0x85: push(Sequence{pop(1)}); break;
      case 0x86: push(Sequence{pop(2)}); break;
      case 0x87: push(Sequence{pop(3)}); break;
      case 't': push(Sequence{pop_to_mark()}); break;
      case 'a': append({pop()}); break;
      case 'e': append(pop_to_mark()); break;
      case 's': set_items(pop(2)); break;
      case 'u': set_items(pop_to_mark()); break;
      case 'q': remember(bytes_.number<std::uint8_t>()); break;
      case 'r': remember(bytes_.number<std::uint32_t>()); break;
      case 0x94: remember(std::uint32_t(memo_.size())); break;
      case 'h': recall(bytes_.number<std::uint8_t>()); break;
      case 'j': recall(bytes_.number<std::uint32_t>()); break;
      case 'c': line_global(); break;
      case 0x93: stacked_global(); break;
      case 'Q': push(storage(pop())); break;
      case 'R': reduce(); break;
      case 'b': pop(); break;  // attributes of an OrderedDict; a state_dict keeps version numbers there
      case 0x81: refuse("makes objects of a class; save model.state_dict(), not the model");
      default: refuse(text("has an instruction (", int(code), ") that no state_dict needs"));
    }
  }

  static void check_protocol(std::uint8_t protocol) {
    if (protocol < 2 || protocol > 5) refuse(text("is of protocol ", int(protocol), ", 2 to 5 are read"));
  }

  std::int64_t long_integer() {
    const std::string_view digits = bytes_.take(bytes_.number<std::uint8_t>());
    if (digits.size() > sizeof(std::int64_t)) refuse("has a whole number beyond 64 bits");
    const bool negative = !digits.empty() && (digits.back() & 0x80) != 0;
    std::int64_t value = negative ? -1 : 0;
    if (!digits.empty()) std::memcpy(&value, digits.data(), digits.size());
    return value;
  }

  void append(const std::vector<Ref>& items) {
    auto& list = top_as<Sequence>("a list").items;
    list.insert(list.end(), items.begin(), items.end());
  }
  void set_items(const std::vector<Ref>& items) {
    if (items.size() % 2 != 0) refuse("has a key without a value");
    auto& dict = top_as<Dict>("a dictionary").items;
    for (std::size_t i = 0; i < items.size(); i += 2) dict.emplace_back(items[i], items[i + 1]);
  }
  void remember(std::uint32_t key) { memo_[key] = top(); }
  void recall(std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse("recalls what it never remembered");
    stack_.push_back(found->second);
  }
  void line_global() {
    const std::string module = bytes_.line();
    push(Global{module + " " + bytes_.line()});
  }
  void stacked_global() {
    const std::string name = get<std::string>(pop(), "a name");
    push(Global{get<std::string>(pop(), "a module") + " " + name});
  }

  /// ("storage", torch.FloatStorage, "0", "cpu", 6)
  PickledStorage storage(Ref ref) const {
    const auto& items = get<Sequence>(ref, "the address of a storage").items;
    if (items.size() < 5) refuse("has a storage without address");
    const std::string& type = get<Global>(items[1], "the type of a storage").name;
    constexpr std::string_view torch = "torch ";
    if (!type.starts_with(torch)) refuse(text("names `", type, "` as the type of a storage"));
    return {.type = type.substr(torch.size()),
            .key = get<std::string>(items[2], "the name of a storage"),
            .count = get<std::int64_t>(items[4], "the size of a storage")};
  }

  std::vector<std::int64_t> integers(Ref ref, const char* what) const {
    std::vector<std::int64_t> values;
    for (Ref item : get<Sequence>(ref, what).items) values.push_back(get<std::int64_t>(item, what));
    return values;
  }

  void reduce() {
    const Ref arguments = pop();
    const std::string name = get<Global>(pop(), "a constructor").name;
    const auto& items = get<Sequence>(arguments, "arguments").items;
    if (name == "collections OrderedDict") return push(Dict{});
    if (name == "torch._utils _rebuild_tensor_v2" && items.size() >= 4) {
      return push(PickledTensor{.storage = get<PickledStorage>(items[0], "a storage"),
                                .offset = get<std::int64_t>(items[1], "an offset"),
                                .shape = integers(items[2], "a shape"),
                                .strides = integers(items[3], "strides")});
    }
    if (name == "torch._utils _rebuild_parameter" && !items.empty())
      return push(PickledTensor(get<PickledTensor>(items[0], "a tensor")));
    refuse(text("makes a `", name,
                "`, which is no part of a state_dict; save model.state_dict(), not the model"));
  }

  Bytes bytes_;
  std::deque<Value> values_;
  std::vector<Ref> stack_;
  std::map<std::uint32_t, Ref> memo_;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::pair<std::string, PickledTensor>> unpickled_state_dict(std::string_view pickle) {
  Machine machine(pickle);
  const Ref result = machine.run();
  std::vector<std::pair<std::string, PickledTensor>> tensors;
  for (const auto& [key, item] : machine.get<Dict>(result, "a dictionary of tensors").items) {
    const std::string& name = machine.get<std::string>(key, "the name of a tensor");
    if (!std::holds_alternative<PickledTensor>(machine.value(item)))
      refuse(text("has `", name, "`, which is not a tensor"));
    tensors.emplace_back(name, std::get<PickledTensor>(machine.value(item)));
  }
  return tensors;
}

}  // namespace fathom
