/// fathom.h: sessions.
#include <cmath>

#include "fathom/capi/handles.hpp"
#include "fathom/support/nearest.hpp"

namespace fathom::capi {

namespace {

Method method_named(const char* name) {
  if (!name) return dopri5();
  std::vector<std::string> known_names;
  for (const auto& method : ode::all_methods()) {
    if (method.name == name) return method;
    known_names.push_back(method.name);
  }
  throw InvalidArgument(text("unknown method `", name, "`", did_you_mean(name, known_names)));
}

Derivative derivative_of(int32_t number) {
  switch (number) {
    case 0:
    case FATHOM_DISCRETE: return Derivative::discrete;
    case FATHOM_ADJOINT: return Derivative::adjoint;
    case FATHOM_NONE: return Derivative::none;
  }
  throw InvalidArgument(text("`derivative` must be a fathom_derivative, got ", number));
}

SolveOptions options_of(const fathom_session_options& given) {
  AdaptiveSteps adaptive;
  const auto read_tolerance = [](double tolerance, double& to, const char* what) {
    require(std::isfinite(tolerance) && tolerance >= 0, "`", what,
            "` must be positive, or 0 for the default, got ", tolerance);
    if (tolerance > 0) to = tolerance;
  };
  read_tolerance(given.relative_tolerance, adaptive.relative_tolerance, "relative_tolerance");
  read_tolerance(given.absolute_tolerance, adaptive.absolute_tolerance, "absolute_tolerance");
  require(given.step_limit >= 0 && given.fixed_steps >= 0,
          "`step_limit` and `fixed_steps` must not be negative, got ", given.step_limit, " and ",
          given.fixed_steps);
  require(given.threads >= 0, "`threads` must be at least 1, or 0 for the default, got ", given.threads);
  if (given.step_limit > 0) adaptive.step_limit = given.step_limit;
  SolveOptions options{.method = method_named(given.method),
                       .steps = adaptive,
                       .derivative = derivative_of(given.derivative),
                       .threads = given.threads == 0 ? 1 : given.threads};
  if (given.fixed_steps > 0) options.steps = FixedSteps{.count = given.fixed_steps};
  return options;
}

template <class T> void read(const fathom_data* given, Typed<T>& typed) {
  const int64_t features = typed.session.field().features();
  Data<T>& data = typed.data;
  typed.solved = {};
  const fathom_data all = known(given, "fathom_data");
  require(all.depth_counts || all.depth_counts_size == 0, "`depth_counts` must be given, got NULL");
  typed.counts = {all.depth_counts, all.depth_counts_size};
  require(!all.depth_counts || !typed.counts.empty(),
          "`depth_counts` needs a number for each sample, got none");
  data.start = numbers_of<T>(all.start, all.start.rows, features, "start");
  data.parameters = row_of<T>(all.parameters, "parameters");
  data.inputs.clear();
  if (all.input.data) data.inputs.push_back(numbers_of<T>(all.input, "input"));
}

template <class T> void read(const fathom_gradient* given, Gradient<T>& gradient) {
  const fathom_gradient all = known(given, "fathom_gradient");
  gradient.start = numbers_of<T>(all.start, "gradient.start");
  gradient.parameters = row_of<T>(all.parameters, "gradient.parameters");
  gradient.inputs.clear();
  if (all.input.data) gradient.inputs.push_back(numbers_of<T>(all.input, "gradient.input"));
  gradient.depths = row_of<double>(all.depths, "gradient.depths");
  gradient.head = row_of<T>(all.head, "gradient.head");
}

LossFunction function_of(int32_t number) {
  switch (number) {
    case 0:
    case FATHOM_SQUARES: return LossFunction::squares;
    case FATHOM_ABSOLUTE: return LossFunction::absolute;
    case FATHOM_HUBER: return LossFunction::huber;
    case FATHOM_CROSS_ENTROPY: return LossFunction::cross_entropy;
    case FATHOM_NORMAL_LIKELIHOOD: return LossFunction::normal_likelihood;
  }
  throw InvalidArgument(text("`function` must be a fathom_loss_function, got ", number));
}

template <class T> void read(const fathom_loss* given, Loss<T>& loss) {
  const fathom_loss all = known(given, "fathom_loss");
  loss.function = function_of(all.function);
  loss.huber_threshold = all.huber_threshold == 0 ? 1 : all.huber_threshold;
  loss.targets = numbers_of<T>(all.targets, "targets");
  require(all.labels || all.label_count == 0, "`labels` must be given, got NULL");
  loss.labels = {all.labels, all.label_count};
  loss.mask = numbers_of<T>(all.mask, "mask");
  require(all.depth_weights || all.depth_weight_count == 0, "`depth_weights` must be given, got NULL");
  loss.depth_weights = {all.depth_weights, all.depth_weight_count};
  read_layers(all.head, all.head_count, loss.head);
  loss.head_parameters = row_of<T>(all.head_parameters, "head_parameters");
}

std::span<const double> depths_of(const double* depths, size_t count) {
  require_given(depths, "depths");
  constexpr size_t most = size_t(1) << 40;
  require(count <= most, "there can be ", most, " depths at most, got ", count);
  return {depths, count};
}

void write(fathom_report* to, const SolveReport& report) {
  if (!to) return;
  write_known(to,
              {.size = 0,
               .evaluations = report.evaluations,
               .backward_evaluations = report.backward_evaluations,
               .accepted = report.accepted,
               .rejected = report.rejected,
               .seconds = report.seconds},
              "fathom_report");
}

/// Works with a session in its type, while nobody else does.
template <class Work>
fathom_code with_session(fathom_session* session, fathom_error* error, const Work& work) {
  return answer(error, [&] {
    require_given(session, "session");
    const InUse in_use(session->in_use, "session");
    std::visit(work, session->typed);
  });
}
template <class T> T number_type(const Typed<T>&);

}  // namespace

}  // namespace fathom::capi

using namespace fathom;
using namespace fathom::capi;

fathom_code fathom_session_create(const fathom_field* field, const fathom_session_options* options,
                                  fathom_session** session, fathom_error* error) {
  return answer(error, [&] {
    require_given(session, "session");
    *session = nullptr;
    require_given(field, "field");
    const fathom_session_options given = known_or_default(options, "fathom_session_options");
    const int32_t type = given.type == 0 ? FATHOM_FLOAT64 : given.type;
    require(type == FATHOM_FLOAT32 || type == FATHOM_FLOAT64,
            "`type` must be FATHOM_FLOAT32 or FATHOM_FLOAT64, got ", type);
    require(field->type == 0 || field->type == type, "the callbacks of this field are of the type ",
            field->type, ", and the session is of the type ", type);
    SolveOptions solve = options_of(given);
    if (type == FATHOM_FLOAT32)
      *session = new fathom_session{.typed = Typed<float>{Session<float>(field->field, std::move(solve))}};
    else
      *session = new fathom_session{.typed = Typed<double>{Session<double>(field->field, std::move(solve))}};
  });
}

void fathom_session_free(fathom_session* session) { delete session; }

fathom_code fathom_session_solve(fathom_session* session, const fathom_data* data, const double* depths,
                                 size_t depth_count, fathom_out states, fathom_report* report,
                                 fathom_error* error) {
  return with_session(session, error, [&](auto& typed) {
    using T = decltype(number_type(typed));
    read(data, typed);
    const int64_t features = typed.session.field().features();
    const std::span<const double> at = depths_of(depths, depth_count);
    const int64_t points = int64_t(depth_count), samples = typed.data.start.rows;
    if (report) size_of(report, "fathom_report");
    const bool is_ragged = !typed.counts.empty();
    const int64_t rows = is_ragged ? points : product(points, samples, "states");
    const auto to = numbers_of<T>(states, rows, features, "states");
    const View<T> seen =
        is_ragged ? View<T>{to.data, points, features} : View<T>{to.data, points, samples * features};
    const SolveReport found = is_ragged
                                  ? typed.session.solve(typed.data, RaggedDepths{at, typed.counts}, seen)
                                  : typed.session.solve(typed.data, at, seen);
    typed.solved = {nullptr, seen.rows, seen.columns};
    write(report, found);
  });
}

fathom_code fathom_session_backward(fathom_session* session, fathom_view states,
                                    const fathom_gradient* gradient, fathom_error* error) {
  return with_session(session, error, [&](auto& typed) {
    using T = decltype(number_type(typed));
    read(gradient, typed.gradient);
    require(typed.solved.rows > 0, "a gradient needs a solve before it that succeeded");
    const int64_t features = typed.session.field().features();
    const auto from = numbers_of<T>(states, int64_t(typed.solved.size()) / features, features, "states");
    typed.session.backward({from.data, typed.solved.rows, typed.solved.columns}, typed.gradient);
  });
}

fathom_code fathom_session_loss(fathom_session* session, const fathom_data* data, const double* depths,
                                size_t depth_count, const fathom_loss* loss, const fathom_gradient* gradient,
                                double* value, fathom_error* error) {
  return with_session(session, error, [&](auto& typed) {
    using T = decltype(number_type(typed));
    require_given(value, "value");
    read(data, typed);
    read(loss, typed.loss);
    if (gradient) read(gradient, typed.gradient);
    const Gradient<T>* wanted = gradient ? &typed.gradient : nullptr;
    const std::span<const double> at = depths_of(depths, depth_count);
    *value = typed.counts.empty()
                 ? typed.session.loss(typed.data, at, typed.loss, wanted)
                 : typed.session.loss(typed.data, RaggedDepths{at, typed.counts}, typed.loss, wanted);
  });
}
