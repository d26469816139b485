#include "fathom/fused/program.hpp"

#include <algorithm>
#include <utility>

#include "fathom/fused/program_passes.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

bool same(const Function& a, const Function& b) { return a.kind == b.kind && a.a == b.a && a.b == b.b; }

bool same(const Op& a, const Op& b) {
  return a.kind == b.kind && same(a.out, b.out) && same(a.first, b.first) && same(a.second, b.second) &&
         same(a.slope, b.slope) && same(a.function, b.function) && a.matrix == b.matrix &&
         a.place == b.place && a.sets_first == b.sets_first && a.sets_second == b.sets_second &&
         a.slope_is_read == b.slope_is_read && a.below == b.below &&
         a.function_is_passed == b.function_is_passed && a.is_pair_with_next == b.is_pair_with_next;
}

bool same(const Matrix& a, const Matrix& b) {
  return a.weight == b.weight && a.bias == b.bias && a.outputs == b.outputs && a.inputs == b.inputs &&
         a.basis == b.basis;
}

bool same(const SampleInput& a, const SampleInput& b) { return a.tensor == b.tensor && same(a.rows, b.rows); }

bool same(const DepthFunctions& a, const DepthFunctions& b) {
  return a.size == b.size && a.data && a.data == b.data;
}

bool same(const Callbacks& a, const Callbacks& b) { return a.context == b.context; }

template <class Part> bool all_same(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Part& one, const Part& other) { return same(one, other); });
}

}  // namespace

bool Program::varies_with_depth() const {
  const auto varies = [](const Matrix& matrix) { return matrix.basis >= 0; };
  const auto reads_depth = [](const Op& op) {
    return op.kind == OpKind::depth || op.kind == OpKind::signal || op.kind == OpKind::call;
  };
  return std::any_of(matrices.begin(), matrices.end(), varies) ||
         std::any_of(ops.begin(), ops.end(), reads_depth);
}

namespace {

void read(const std::function<std::vector<double>(double)>& function, double s, std::int32_t size,
          std::vector<double>& to) {
  to = function(s);
  require(to.size() == std::size_t(size), "a function of depth must give ", size, " values, got ", to.size());
}

}  // namespace

void DepthFunctions::read_values(double s, std::vector<double>& to) const {
  if (!data) return read(values, s, size, to);
  to.resize(std::size_t(size));
  evaluate(*data, s, to);
}

void DepthFunctions::read_slopes(double s, std::vector<double>& to) const {
  if (!data) return read(slopes, s, size, to);
  to.resize(std::size_t(size));
  evaluate_slopes(*data, s, to);
}

DepthFunctions functions_of(const Basis& basis) {
  return {.size = function_count(basis), .values = {}, .slopes = {}, .data = basis};
}

bool are_alike(const Program& a, const Program& b) {
  if (&a == &b) return true;
  return all_same(a.callbacks, b.callbacks) && all_same(a.bases, b.bases) && all_same(a.signals, b.signals) &&
         all_same(a.ops, b.ops) && all_same(a.cleared, b.cleared) && all_same(a.matrices, b.matrices) &&
         all_same(a.inputs, b.inputs) && a.state_rows == b.state_rows && a.loss_rows == b.loss_rows &&
         a.register_rows == b.register_rows && a.passing_rows == b.passing_rows &&
         a.input_rows == b.input_rows && a.signal_size == b.signal_size;
}

Code Program::code() const {
  return {.ops = ops.data(),
          .op_count = std::int32_t(ops.size()),
          .cleared = cleared.data(),
          .cleared_count = std::int32_t(cleared.size()),
          .register_rows = register_rows,
          .passing_rows = passing_rows,
          .input_rows = input_rows,
          .rate_rows = state_rows,
          .callbacks = callbacks.data()};
}

Builder::Builder(std::int32_t features, std::int32_t losses) : features_(features) {
  require(features >= 1 && losses >= 0, "a program needs at least one feature, got ", features);
  program_.state_rows = program_.register_rows = features + losses;
  program_.loss_rows = losses;
  program_.ops.reserve(8);
  program_.matrices.reserve(8);
  renamed_.reserve(4);
}

Rows Builder::fresh(std::int32_t count) {
  const Rows rows{Bank::registers, program_.register_rows, count};
  program_.register_rows += count;
  return rows;
}

Op& Builder::push(const Op& op) {
  program_.ops.push_back(op);
  return program_.ops.back();
}

Rows Builder::input(std::int32_t tensor, std::int32_t features) {
  for (const SampleInput& known : program_.inputs) {
    if (known.tensor == tensor) return known.rows;
  }
  const Rows rows{Bank::inputs, program_.input_rows, features};
  program_.inputs.push_back({tensor, rows});
  program_.input_rows += features;
  return rows;
}

std::int32_t Builder::matrix(const Matrix& matrix) {
  program_.matrices.push_back(matrix);
  return std::int32_t(program_.matrices.size()) - 1;
}

std::int32_t Builder::basis(DepthFunctions functions) {
  program_.bases.push_back(std::move(functions));
  return std::int32_t(program_.bases.size()) - 1;
}

Rows Builder::layer(Rows in, std::int32_t matrix, Function function) {
  const Matrix& shape = program_.matrices[std::size_t(matrix)];
  require(shape.inputs == in.count, "a layer with ", shape.inputs, " inputs cannot read ", in.count, " rows");
  const Rows out = fresh(shape.outputs);
  Op& op = push({.kind = OpKind::layer, .out = out, .first = in, .function = function, .matrix = matrix});
  if (!slope_follows_from_value[std::size_t(function.kind)]) op.slope = fresh(out.count);
  return out;
}

Rows Builder::activated(Rows in, Function function) {
  const Rows out = fresh(in.count);
  Op& op = push({.kind = OpKind::layer, .out = out, .first = in, .function = function});
  if (!slope_follows_from_value[std::size_t(function.kind)]) op.slope = fresh(out.count);
  return out;
}

Rows Builder::slope(Rows of) {
  for (Op& op : program_.ops) {
    if (op.kind != OpKind::layer || !same(op.out, of)) continue;
    if (op.slope.count == 0) op.slope = fresh(of.count);
    op.slope_is_read = true;
    return op.slope;
  }
  throw Error("only a layer has a slope");
}

void Builder::check_equal(Rows first, Rows second) const {
  require(first.count == second.count, "an operation joins rows of equal number, got ", first.count, " and ",
          second.count);
}

Rows Builder::add(Rows first, Rows second) {
  check_equal(first, second);
  return push({.kind = OpKind::add, .out = fresh(first.count), .first = first, .second = second}).out;
}
Rows Builder::multiply(Rows first, Rows second) {
  check_equal(first, second);
  return push({.kind = OpKind::multiply, .out = fresh(first.count), .first = first, .second = second}).out;
}
Rows Builder::scale(Rows rows, Rows by) {
  require(by.count == 1, "rows are scaled by one row, got ", by.count);
  return push({.kind = OpKind::scale, .out = fresh(rows.count), .first = rows, .second = by}).out;
}
Rows Builder::zeros(std::int32_t count) { return push({.kind = OpKind::zero, .out = fresh(count)}).out; }
Rows Builder::depth(std::optional<Rows> of_samples) {
  return push({.kind = OpKind::depth, .out = fresh(1), .first = of_samples.value_or(Rows{})}).out;
}
Rows Builder::signal(DepthFunctions functions) {
  const Op op{.kind = OpKind::signal, .out = fresh(functions.size), .place = program_.signal_size};
  program_.signal_size += functions.size;
  program_.signals.push_back(std::move(functions));
  return push(op).out;
}
Rows Builder::column(Rows slopes, std::int32_t matrix, std::int32_t place) {
  const Matrix& shape = program_.matrices[std::size_t(matrix)];
  require(place >= 0 && place < shape.inputs && slopes.count == shape.outputs, "a matrix of ", shape.outputs,
          " x ", shape.inputs, " has no column ", place, " for ", slopes.count, " rows");
  return push({.kind = OpKind::column,
               .out = fresh(slopes.count),
               .first = slopes,
               .matrix = matrix,
               .place = place})
      .out;
}
Rows Builder::row_dot(Rows in, std::int32_t matrix, std::int32_t place) {
  const Matrix& shape = program_.matrices[std::size_t(matrix)];
  require(place >= 0 && place < shape.outputs && in.count == shape.inputs, "a matrix of ", shape.outputs,
          " x ", shape.inputs, " has no row ", place, " for ", in.count, " rows");
  return push({.kind = OpKind::row_dot, .out = fresh(1), .first = in, .matrix = matrix, .place = place}).out;
}
Rows Builder::sum(Rows in) { return push({.kind = OpKind::sum, .out = fresh(1), .first = in}).out; }
Rows Builder::distance(Rows first, Rows second) {
  check_equal(first, second);
  return push({.kind = OpKind::distance, .out = fresh(1), .first = first, .second = second}).out;
}
Rows Builder::absolute(Rows first, Rows second) {
  check_equal(first, second);
  return push({.kind = OpKind::absolute, .out = fresh(1), .first = first, .second = second}).out;
}
Rows Builder::huber(Rows first, Rows second, double threshold) {
  check_equal(first, second);
  return push({.kind = OpKind::huber,
               .out = fresh(1),
               .first = first,
               .second = second,
               .function = {FunctionKind::identity, threshold}})
      .out;
}
Rows Builder::call(const Callbacks& callbacks, std::shared_ptr<const void> owner, Rows controls,
                   std::int32_t parameters, std::int32_t tensor) {
  Op op{.kind = OpKind::call,
        .out = fresh(features_),
        .first = state(),
        .second = controls,
        .place = std::int32_t(program_.callbacks.size())};
  if (parameters > 0) op.matrix = matrix({.weight = tensor, .outputs = 1, .inputs = parameters});
  program_.callbacks.push_back(callbacks);
  program_.callback_owners.push_back(std::move(owner));
  return push(op).out;
}
Rows Builder::squares(Rows in) { return push({.kind = OpKind::squares, .out = fresh(1), .first = in}).out; }
Rows Builder::cross_entropy(Rows scores, Rows label) {
  require(label.count == 1, "a label is one row, got ", label.count);
  return push({.kind = OpKind::cross_entropy, .out = fresh(1), .first = scores, .second = label}).out;
}
Rows Builder::norm(Rows in) { return push({.kind = OpKind::norm, .out = fresh(1), .first = in}).out; }

Rows Builder::joined(const std::vector<Rows>& parts) {
  std::int32_t count = 0;
  for (const Rows& rows : parts) count += rows.count;
  const Rows whole = fresh(count);
  std::int32_t begin = 0;
  for (const Rows& rows : parts) {
    place(rows, part(whole, begin, rows.count));
    begin += rows.count;
  }
  return whole;
}

void Builder::place(Rows rows, Rows target) {
  const auto known = std::find_if(renamed_.begin(), renamed_.end(),
                                  [&](const Renamed& name) { return contains(name.from, rows); });
  const bool has_writer =
      std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) { return same(op.out, rows); });
  const bool is_block = std::any_of(renamed_.begin(), renamed_.end(),
                                    [&](const Renamed& name) { return contains(rows, name.to); });
  if (known == renamed_.end() && rows.bank == Bank::registers && (has_writer || is_block)) {
    renamed_.push_back({rows, target});
  } else {
    push({.kind = OpKind::copy, .out = target, .first = rows});
  }
}

void Builder::give(Rows rate) {
  require(rate.count == features_, "the rate must have the ", features_, " features of the state, got ",
          rate.count);
  place(rate, {Bank::rate, 0, features_});
}

void Builder::give_loss(std::int32_t index, Rows value) {
  require(value.count == 1 && index < program_.loss_rows, "a running loss is one row a sample, got ",
          value.count);
  place(value, {Bank::rate, features_ + index, 1});
}

Rows Builder::resolved(Rows rows) const {
  for (bool changed = rows.count > 0; changed;) {
    changed = false;
    for (const Renamed& name : renamed_) {
      if (!contains(name.from, rows)) continue;
      rows = part(name.to, rows.begin - name.from.begin, rows.count);
      changed = true;
      break;
    }
  }
  return rows;
}

void Builder::resolve_names() {
  for (Op& op : program_.ops) {
    for (Rows* rows : {&op.out, &op.first, &op.second, &op.slope}) *rows = resolved(*rows);
  }
}

Program Builder::finish(bool passes_cheap_rows) && {
  resolve_names();
  if (passes_cheap_rows) pass_cheap_rows(program_);
  std::vector<bool> given(std::size_t(program_.state_rows), false);
  for (const Op& op : program_.ops) {
    if (op.out.bank != Bank::rate) continue;
    std::fill_n(given.begin() + op.out.begin, op.out.count, true);
  }
  require(std::all_of(given.begin(), given.end(), [](bool is) { return is; }),
          "a program must give the rate of every feature and running loss");
  plan_adjoints(program_);
  join_functions(program_);
  return std::move(program_);
}

}  // namespace fathom::fused
