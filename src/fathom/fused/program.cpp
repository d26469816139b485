#include "fathom/fused/program.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

bool same(const Rows& a, const Rows& b) {
  return a.bank == b.bank && a.begin == b.begin && a.count == b.count;
}

bool contains(const Rows& outer, const Rows& inner) {
  return outer.bank == inner.bank && outer.begin <= inner.begin &&
         inner.begin + inner.count <= outer.begin + outer.count && inner.count > 0;
}

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

template <class Part> bool all_same(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Part& one, const Part& other) { return same(one, other); });
}

bool overlap(const Rows& a, const Rows& b) {
  return a.bank == b.bank && a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

bool is_of_stage(const Rows& rows) { return rows.bank == Bank::registers || rows.bank == Bank::passing; }

/// Is function' found from the function's value alone, cheaply and without loss?
bool slope_follows_from_value(FunctionKind kind) {
  return kind != FunctionKind::softplus && kind != FunctionKind::silu;
}

}  // namespace

bool Program::varies_with_depth() const {
  const auto varies = [](const Matrix& matrix) { return matrix.basis >= 0; };
  const auto reads_depth = [](const Op& op) { return op.kind == OpKind::depth || op.kind == OpKind::signal; };
  return std::any_of(matrices.begin(), matrices.end(), varies) ||
         std::any_of(ops.begin(), ops.end(), reads_depth);
}

bool are_alike(const Program& a, const Program& b) {
  if (&a == &b) return true;
  return !a.has_functions() && !b.has_functions() && all_same(a.ops, b.ops) &&
         all_same(a.cleared, b.cleared) && all_same(a.matrices, b.matrices) && all_same(a.inputs, b.inputs) &&
         a.state_rows == b.state_rows && a.loss_rows == b.loss_rows && a.register_rows == b.register_rows &&
         a.passing_rows == b.passing_rows && a.input_rows == b.input_rows && a.signal_size == b.signal_size;
}

Code Program::code() const {
  return {.ops = ops.data(),
          .op_count = std::int32_t(ops.size()),
          .cleared = cleared.data(),
          .cleared_count = std::int32_t(cleared.size()),
          .argument_rows = state_rows,
          .register_rows = register_rows,
          .passing_rows = passing_rows,
          .input_rows = input_rows,
          .rate_rows = state_rows};
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
  if (!slope_follows_from_value(function.kind)) op.slope = fresh(out.count);
  return out;
}

Rows Builder::activated(Rows in, Function function) {
  const Rows out = fresh(in.count);
  Op& op = push({.kind = OpKind::layer, .out = out, .first = in, .function = function});
  if (!slope_follows_from_value(function.kind)) op.slope = fresh(out.count);
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
Rows Builder::squares(Rows in) { return push({.kind = OpKind::squares, .out = fresh(1), .first = in}).out; }
Rows Builder::surprise(Rows scores, Rows label) {
  require(label.count == 1, "a label is one row, got ", label.count);
  return push({.kind = OpKind::surprise, .out = fresh(1), .first = scores, .second = label}).out;
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

/// A layer that reads few rows of the argument, and whose answer is read as a whole. Not one that runs as a pair.
bool Builder::is_cheap(std::size_t n) const {
  const std::vector<Op>& ops = program_.ops;
  const Op& op = ops[n];
  const Rows argument{Bank::registers, 0, program_.state_rows};
  const bool is_small = op.kind == OpKind::layer && op.matrix >= 0 && op.slope.count == 0 &&
                        op.first.count <= most_outer_rows && contains(argument, op.first) &&
                        op.out.bank == Bank::registers;
  if (!is_small) return false;
  if (n + 1 < ops.size() && ops[n + 1].kind == OpKind::layer && ops[n + 1].matrix >= 0 &&
      same(ops[n + 1].first, op.out) && can_pair(op, ops[n + 1]))
    return false;
  return std::all_of(ops.begin(), ops.end(), [&](const Op& other) {
    const auto is_whole = [&](const Rows& rows) { return !overlap(rows, op.out) || same(rows, op.out); };
    return is_whole(other.first) && is_whole(other.second) && is_whole(other.out);
  });
}

void Builder::pass_cheap_rows() {
  for (std::size_t n = 0; n < program_.ops.size(); ++n) {
    if (!is_cheap(n)) continue;
    const Rows from = program_.ops[n].out, to{Bank::passing, program_.passing_rows, from.count};
    program_.passing_rows += from.count;
    program_.register_rows -= from.count;
    for (Op& op : program_.ops) {
      for (Rows* rows : {&op.out, &op.first, &op.second, &op.slope}) {
        if (same(*rows, from)) {
          *rows = to;
        } else if (rows->bank == Bank::registers && rows->begin >= from.begin + from.count) {
          rows->begin -= from.count;  // the gap is closed
        }
      }
    }
  }
}

/// Goes through the operations backwards, as the kernels will, and notes who is the first to write each adjoint row.
void Builder::plan_adjoints() {
  std::array<std::vector<char>, bank_count> written;  // whole bytes: this runs before many a solve
  written[std::size_t(Bank::registers)].resize(std::size_t(program_.register_rows));
  written[std::size_t(Bank::passing)].resize(std::size_t(program_.passing_rows));
  // Adjoints of the rate are given, those of inputs are sums over all stages: both are only ever added to.
  const auto marks_of = [&](const Rows& rows) {
    return std::span(written[std::size_t(rows.bank)])
        .subspan(std::size_t(rows.begin), std::size_t(rows.count));
  };
  const auto clear = [&](const Rows& rows) {
    if (!is_of_stage(rows)) return;
    const std::span<char> marks = marks_of(rows);
    for (std::int32_t row = 0; row < rows.count; ++row) {
      if (marks[std::size_t(row)]) continue;
      program_.cleared.push_back(part(rows, row, 1));
      marks[std::size_t(row)] = true;
    }
  };
  const auto visit = [&](const Rows& rows) {
    if (rows.count == 0 || !is_of_stage(rows)) return false;
    const std::span<char> marks = marks_of(rows);
    const bool none = std::memchr(marks.data(), true, marks.size()) == nullptr;
    if (!none) clear(rows);
    std::fill(marks.begin(), marks.end(), char(true));
    return none;
  };
  for (std::size_t n = program_.ops.size(); n-- > 0;) {
    Op& op = program_.ops[n];
    clear(op.out);  // an answer that nobody uses
    if (op.slope_is_read) clear(op.slope);
    op.sets_first = visit(op.first);
    op.sets_second = visit(op.second);
  }
  clear({Bank::registers, 0, program_.state_rows});
}

/// Finds the layers whose answer one other layer reads, and nobody else.
void Builder::join_functions() {
  std::vector<Op>& ops = program_.ops;
  for (Op& reader : ops) {
    if (reader.kind != OpKind::layer || reader.matrix < 0 || !is_of_stage(reader.first)) continue;
    const auto reads = [&](const Op& op) {
      return overlap(op.first, reader.first) || overlap(op.second, reader.first);
    };
    if (std::count_if(ops.begin(), ops.end(), reads) != 1) continue;
    const auto below =
        std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return same(op.out, reader.first); });
    if (below == ops.end() || below->kind != OpKind::layer || below->slope_is_read ||
        below->function.kind == FunctionKind::identity)
      continue;
    require(reader.sets_first, "a layer's only reader sets its adjoint");
    reader.below = std::int32_t(below - ops.begin());
    below->function_is_passed = true;
    below->is_pair_with_next = &*below + 1 == &reader && can_pair(*below, reader);
  }
}

bool Builder::can_pair(const Op& below, const Op& above) const {
  const auto has_bias = [&](const Op& op) { return program_.matrices[std::size_t(op.matrix)].bias >= 0; };
  return below.matrix >= 0 && has_bias(below) && has_bias(above) && below.slope.count == 0 &&
         above.slope.count == 0 && above.function.kind == FunctionKind::identity &&
         is_of_stage(below.first) && below.first.count <= most_outer_rows &&
         above.out.count <= most_outer_rows;
}

Program Builder::finish(bool passes_cheap_rows) && {
  resolve_names();
  if (passes_cheap_rows) pass_cheap_rows();
  std::vector<bool> given(std::size_t(program_.state_rows), false);
  for (const Op& op : program_.ops) {
    if (op.out.bank != Bank::rate) continue;
    std::fill_n(given.begin() + op.out.begin, op.out.count, true);
  }
  require(std::all_of(given.begin(), given.end(), [](bool is) { return is; }),
          "a program must give the rate of every feature and running loss");
  plan_adjoints();
  join_functions();
  return std::move(program_);
}

}  // namespace fathom::fused
