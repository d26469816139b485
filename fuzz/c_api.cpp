/// Sequences of calls of fathom.h: whatever is called with whatever, there is a code, a message with it, and nothing worse.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fathom/fathom.h"
#include "support/harness.hpp"

namespace fathom::fuzz {

namespace {

/// Bytes of the input as small numbers; zeros behind its end.
class Bytes {
 public:
  explicit Bytes(std::string_view input) : left_(input) {}
  bool empty() const { return left_.empty(); }
  std::uint8_t next() {
    if (left_.empty()) return 0;
    const auto byte = std::uint8_t(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  /// Mostly small, at times not to be meant.
  std::int64_t size() {
    static constexpr std::int64_t odd[] = {-1, INT64_MIN, INT64_MAX, std::int64_t(1) << 40};
    const std::uint8_t byte = next();
    return byte < 248 ? byte % 9 : odd[byte % 4];
  }
  double number() {
    static constexpr double odd[] = {0, -1, 1e300, 1e-300, -1e18, 0.1, 1 / 3.0};
    const std::uint8_t byte = next();
    if (byte == 255) return std::strtod("nan", nullptr);
    return byte < 240 ? double(byte) / 64 - 1 : odd[byte % 7];
  }

 private:
  std::string_view left_;
};

constexpr std::int64_t most_numbers = 4096;

/// The numbers that calls read and write, and the handles that they made.
class Caller {
 public:
  explicit Caller(std::string_view input) : bytes_(input), doubles_(most_numbers), floats_(most_numbers) {}
  ~Caller() {
    fathom_model_free(model_);
    fathom_workspace_free(workspace_);
    fathom_field_free(field_);
    fathom_session_free(session_);
  }

  void run() {
    constexpr int most_calls = 200;
    for (int calls = 0; calls < most_calls && !bytes_.empty(); ++calls) call();
  }

 private:
  void call() {
    switch (bytes_.next() % 14) {
      case 0: return load();
      case 1: return make_workspace();
      case 2: return predict();
      case 3: return forecast();
      case 4: return sample();
      case 5: return describe();
      case 6: return make_network();
      case 7: return make_callbacks();
      case 8: return make_session();
      case 9: return solve();
      case 10: return backward();
      case 11: return take_loss();
      case 12: return initialise();
      default: return fill();
    }
  }

  void judge(fathom_code code) {
    check(error_.code == code, "the error has the code");
    check((code == FATHOM_OK) == (error_.message[0] == '\0'), "an error says something");
    check(code != FATHOM_INTERNAL, "no error is a surprise");
    check(std::memchr(error_.message, 0, sizeof error_.message) != nullptr, "a message has an end");
  }
  std::size_t struct_size(std::size_t real) {
    const std::uint8_t byte = bytes_.next();
    return byte < 240 ? real : std::size_t(byte - 240) * 8;
  }
  /// A shape that fits in what there is, or one that no caller can have.
  template <class Numbers> Numbers numbers() {
    Numbers made = {};
    const std::int64_t rows = bytes_.size(), columns = bytes_.size();
    made.rows = rows, made.columns = columns;
    const std::uint8_t byte = bytes_.next();
    made.type = byte % 3 == 0 ? FATHOM_FLOAT32 : FATHOM_FLOAT64;
    if (byte == 255) made.type = 9;
    if (byte % 16 == 15) return made;  // no data
    // Data that are not there must not be claimed, unless the claim is refused anyway.
    const bool can_be = rows >= 0 && columns >= 0 && rows < 1000 && columns < 1000;
    if (!can_be && rows >= 0 && columns >= 0 && rows < (1LL << 50) && columns < (1LL << 50)) made.rows = -1;
    made.data = made.type == FATHOM_FLOAT32 ? static_cast<void*>(floats_.data())
                                            : static_cast<void*>(doubles_.data());
    return made;
  }
  /// The shape that a handle asks for, so that deeper code is reached; at times any.
  template <class Numbers> Numbers numbers(std::int64_t rows, std::int64_t columns) {
    const auto is_small = [](std::int64_t size) { return size >= 0 && size <= 64; };
    if (bytes_.next() % 8 == 0 || !is_small(rows) || columns < 0 || columns > most_numbers / 64)
      return numbers<Numbers>();
    Numbers made = {};
    made.rows = rows, made.columns = columns, made.type = type_;
    made.data =
        type_ == FATHOM_FLOAT32 ? static_cast<void*>(floats_.data()) : static_cast<void*>(doubles_.data());
    return made;
  }

  void load() {
    static const std::string folder = FATHOM_SOURCE_DIR "/fuzz/corpus/model_file/";
    static const char* const names[] = {"good-classes", "good-controlled", "good-density",
                                        "good-series",  "newer",           "none"};
    fathom_model_options options = {};
    options.size = struct_size(sizeof options);
    options.threads = bytes_.next() % 4 - 1;
    fathom_model_free(model_);
    judge(fathom_model_load((folder + names[bytes_.next() % 6] + ".safetensors").c_str(),
                            bytes_.next() % 2 ? &options : nullptr, &model_, &error_));
    about_ = {};
    about_.size = sizeof about_;
    if (model_) judge(fathom_model_describe(model_, &about_, &error_));
    if (model_ && bytes_.next() % 2) {
      fathom_field_free(field_);
      judge(fathom_field_of_model(model_, &field_, &error_));
    }
  }
  void make_workspace() {
    fathom_workspace_free(workspace_);
    judge(fathom_workspace_create(model_, &workspace_, &error_));
  }
  fathom_workspace* workspace() { return bytes_.next() % 2 ? workspace_ : nullptr; }
  void predict() {
    type_ = FATHOM_FLOAT64;
    const std::int64_t rows = bytes_.next() % 4;
    const auto from = numbers<fathom_view>(rows, about_.inputs);
    judge(
        fathom_model_predict(model_, from, numbers<fathom_out>(rows, about_.answers), workspace(), &error_));
  }
  void forecast() {
    type_ = FATHOM_FLOAT64;
    const std::int64_t rows = bytes_.next() % 4;
    const double times[] = {bytes_.number(), bytes_.number(), bytes_.number()};
    const std::size_t count = bytes_.next() % 4;
    const auto from = numbers<fathom_view>(rows, about_.inputs);
    judge(fathom_model_forecast(model_, from, times, count,
                                numbers<fathom_out>(rows * std::int64_t(count), about_.answers), workspace(),
                                &error_));
  }
  void sample() {
    type_ = FATHOM_FLOAT64;
    judge(fathom_model_sample(model_, bytes_.next(), numbers<fathom_out>(bytes_.next() % 4, about_.inputs),
                              &error_));
  }
  void describe() {
    fathom_model_description about = {};
    about.size = struct_size(sizeof about);
    judge(fathom_model_describe(model_, &about, &error_));
    fathom_field_description field = {};
    field.size = struct_size(sizeof field);
    judge(fathom_field_describe(field_, &field, &error_));
    judge(fathom_model_parameters(model_, numbers<fathom_out>(1, about_.parameters), &error_));
  }
  void make_network() {
    std::vector<fathom_layer> layers(bytes_.next() % 4);
    fathom_network_options options = {};
    options.size = struct_size(sizeof options);
    options.features = bytes_.size(), options.inputs = bytes_.next() % 4 ? 0 : bytes_.size();
    options.order = bytes_.next() % 4 ? 0 : bytes_.size();
    for (fathom_layer& layer : layers) {
      layer = {sizeof(fathom_layer), bytes_.size(), bytes_.next() % 9, bytes_.next() % 2};
      if (bytes_.next() % 2) layer.features = options.features;
    }
    options.layers = layers.data(), options.layer_count = layers.size();
    fathom_field_free(field_);
    judge(fathom_field_network(&options, &field_, &error_));
  }
  static std::int32_t rate(void* context, const fathom_evaluation* at, void* to) {
    Caller& self = *static_cast<Caller*>(context);
    for (std::int64_t n = 0; n < at->samples * self.callback_features_; ++n) {
      if (self.callback_type_ == FATHOM_FLOAT32)
        static_cast<float*>(to)[n] = -static_cast<const float*>(at->state)[n];
      else
        static_cast<double*>(to)[n] = -static_cast<const double*>(at->state)[n];
    }
    return self.callback_answer_;
  }
  static std::int32_t product(void* context, const fathom_evaluation* at, const void* adjoint,
                              const fathom_product* to) {
    Caller& self = *static_cast<Caller*>(context);
    const std::size_t size = self.callback_type_ == FATHOM_FLOAT32 ? 4 : 8;
    std::memcpy(to->state, adjoint, std::size_t(at->samples * self.callback_features_) * size);
    return self.callback_answer_;
  }
  void make_callbacks() {
    fathom_callback_options options = {};
    options.size = struct_size(sizeof options);
    options.type = bytes_.next() % 4;
    options.features = bytes_.size(), options.parameters = bytes_.size(), options.inputs = bytes_.next() % 2;
    options.rate = bytes_.next() % 16 ? rate : nullptr;
    options.product = bytes_.next() % 4 ? product : nullptr;
    options.context = this;
    fathom_field_free(field_);
    fathom_session_free(session_);  // one of an earlier field would ask for other sizes
    session_ = nullptr;
    callback_features_ = options.features, callback_type_ = options.type;
    callback_answer_ = bytes_.next() % 16 ? 0 : 3;
    judge(fathom_field_callbacks(&options, &field_, &error_));
  }
  void make_session() {
    static const char* const methods[] = {nullptr, "dopri5", "rk4", "bosh3", "euler", "dop853", "none"};
    fathom_session_options options = {};
    options.size = struct_size(sizeof options);
    options.type = bytes_.next() % 4;
    options.method = methods[bytes_.next() % 7];
    options.fixed_steps = bytes_.next() % 2 ? bytes_.next() % 20 : 0;
    options.step_limit = 300;
    options.relative_tolerance = bytes_.next() % 2 ? 0 : bytes_.number();
    options.derivative = bytes_.next() % 5;
    options.threads = bytes_.next() % 4 - 1;
    session_type_ = options.type == 0 ? int(FATHOM_FLOAT64) : options.type;
    fathom_session_free(session_);
    judge(fathom_session_create(field_, &options, &session_, &error_));
    field_about_ = {};
    field_about_.size = sizeof field_about_;
    if (session_) judge(fathom_field_describe(field_, &field_about_, &error_));
  }
  fathom_data data(std::int64_t samples) {
    type_ = session_type_;
    fathom_data made = {};
    made.size = struct_size(sizeof made);
    made.start = numbers<fathom_view>(samples, field_about_.features);
    made.parameters = numbers<fathom_view>(1, field_about_.parameters);
    if (field_about_.inputs > 0) made.input = numbers<fathom_view>(samples, field_about_.inputs);
    if (bytes_.next() % 8 == 0) {
      counts_.assign(std::size_t(samples), bytes_.next() % 4);
      made.depth_counts = counts_.data();
      made.depth_counts_size = bytes_.next() % 8 ? counts_.size() : 0;
    }
    return made;
  }
  fathom_gradient gradient(std::int64_t samples, std::int64_t depths) {
    fathom_gradient made = {};
    made.size = struct_size(sizeof made);
    const std::uint8_t wanted = bytes_.next();
    type_ = session_type_;
    if (wanted & 1) made.start = numbers<fathom_out>(samples, field_about_.features);
    if (wanted & 2) made.parameters = numbers<fathom_out>(1, field_about_.parameters);
    if (wanted & 4) made.input = numbers<fathom_out>(samples, field_about_.inputs);
    if (wanted & 8) type_ = FATHOM_FLOAT64, made.depths = numbers<fathom_out>(1, depths);
    type_ = session_type_;
    return made;
  }
  std::vector<double> depths() {
    std::vector<double> made(bytes_.next() % 5);
    for (double& depth : made) depth = bytes_.number();
    if (bytes_.next() % 4) std::sort(made.begin(), made.end());
    return made;
  }
  void solve() {
    samples_ = bytes_.next() % 5;
    const std::vector<double> at = depths();
    const fathom_data from = data(samples_);
    fathom_report report = {};
    report.size = struct_size(sizeof report);
    depth_count_ = std::int64_t(at.size());
    judge(fathom_session_solve(session_, &from, at.data(), at.size(),
                               numbers<fathom_out>(depth_count_ * samples_, field_about_.features),
                               bytes_.next() % 2 ? &report : nullptr, &error_));
  }
  void backward() {
    const fathom_gradient to = gradient(samples_, depth_count_);
    judge(fathom_session_backward(
        session_, numbers<fathom_view>(depth_count_ * samples_, field_about_.features), &to, &error_));
  }
  void take_loss() {
    samples_ = bytes_.next() % 5;
    const std::vector<double> at = depths(), weights(bytes_.next() % 4, 0.5);
    const std::vector<std::int64_t> labels(bytes_.next() % 8, std::int64_t(bytes_.next() % 4) - 1);
    const fathom_data from = data(samples_);
    const auto points = std::int64_t(bytes_.next() % 2 ? at.size() : 1);
    fathom_layer head = {sizeof(fathom_layer), bytes_.size(), bytes_.next() % 8, 0};
    fathom_loss loss = {};
    loss.size = struct_size(sizeof loss);
    loss.function = bytes_.next() % 7;
    if (bytes_.next() % 4 == 0) loss.head = &head, loss.head_count = 1;
    const std::int64_t answers = loss.head ? head.features : field_about_.features;
    const bool is_small = answers >= 0 && answers <= 9;
    if (loss.head)
      loss.head_parameters = numbers<fathom_view>(1, is_small ? answers * (field_about_.features + 1) : 0);
    loss.targets = numbers<fathom_view>(points * samples_, answers);
    if (bytes_.next() % 2)
      loss.mask = numbers<fathom_view>(points * samples_, bytes_.next() % 2 ? 1 : answers);
    if (bytes_.next() % 2) loss.labels = labels.data(), loss.label_count = labels.size();
    if (bytes_.next() % 2) loss.depth_weights = weights.data(), loss.depth_weight_count = weights.size();
    const fathom_gradient to = gradient(samples_, std::int64_t(at.size()));
    double value = 0;
    judge(fathom_session_loss(session_, &from, at.data(), at.size(), &loss, bytes_.next() % 2 ? &to : nullptr,
                              &value, &error_));
  }
  void initialise() {
    type_ = bytes_.next() % 2 ? FATHOM_FLOAT32 : FATHOM_FLOAT64;
    judge(fathom_field_initialise(field_, bytes_.next(), numbers<fathom_out>(1, field_about_.parameters),
                                  &error_));
  }
  void fill() {
    for (int n = 0; n < 16; ++n) doubles_[std::size_t(n)] = bytes_.number();
    for (int n = 0; n < 16; ++n) floats_[std::size_t(n)] = float(doubles_[std::size_t(n)]);
  }

  Bytes bytes_;
  std::vector<double> doubles_;
  std::vector<float> floats_;
  fathom_error error_ = {};
  fathom_model* model_ = nullptr;
  fathom_workspace* workspace_ = nullptr;
  fathom_field* field_ = nullptr;
  fathom_session* session_ = nullptr;
  fathom_model_description about_ = {};
  fathom_field_description field_about_ = {};  // of the session
  std::int32_t type_ = FATHOM_FLOAT64, session_type_ = FATHOM_FLOAT64;
  std::int64_t samples_ = 0, depth_count_ = 0;
  std::vector<std::int64_t> counts_;
  std::int64_t callback_features_ = 0;
  std::int32_t callback_type_ = 0, callback_answer_ = 0;
};

}  // namespace

void read_input(std::string_view input) { Caller(input).run(); }

}  // namespace fathom::fuzz
