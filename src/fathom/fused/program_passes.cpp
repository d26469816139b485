#include "fathom/fused/program_passes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

bool overlap(const Rows& a, const Rows& b) {
  return a.bank == b.bank && a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

bool is_of_stage(const Rows& rows) { return rows.bank == Bank::registers || rows.bank == Bank::passing; }

/// May the two layers, the second of which alone reads the first, run as one?
bool can_pair(const Program& program, const Op& below, const Op& above) {
  const auto has_bias = [&](const Op& op) { return program.matrices[std::size_t(op.matrix)].bias >= 0; };
  return below.matrix >= 0 && has_bias(below) && has_bias(above) && below.slope.count == 0 &&
         above.slope.count == 0 && above.function.kind == FunctionKind::identity &&
         is_of_stage(below.first) && below.first.count <= most_outer_rows &&
         above.out.count <= most_outer_rows;
}

/// A layer that reads few rows of the argument, and whose answer is read as a whole. Not one that runs as a pair.
bool is_cheap(const Program& program, std::size_t n) {
  const std::vector<Op>& ops = program.ops;
  const Op& op = ops[n];
  const Rows argument{Bank::registers, 0, program.state_rows};
  const bool is_small = op.kind == OpKind::layer && op.matrix >= 0 && op.slope.count == 0 &&
                        op.first.count <= most_outer_rows && contains(argument, op.first) &&
                        op.out.bank == Bank::registers;
  if (!is_small) return false;
  if (n + 1 < ops.size() && ops[n + 1].kind == OpKind::layer && ops[n + 1].matrix >= 0 &&
      same(ops[n + 1].first, op.out) && can_pair(program, op, ops[n + 1]))
    return false;
  return std::all_of(ops.begin(), ops.end(), [&](const Op& other) {
    const auto is_whole = [&](const Rows& rows) { return !overlap(rows, op.out) || same(rows, op.out); };
    return is_whole(other.first) && is_whole(other.second) && is_whole(other.out);
  });
}

}  // namespace

void pass_cheap_rows(Program& program) {
  for (std::size_t n = 0; n < program.ops.size(); ++n) {
    if (!is_cheap(program, n)) continue;
    const Rows from = program.ops[n].out, to{Bank::passing, program.passing_rows, from.count};
    program.passing_rows += from.count;
    program.register_rows -= from.count;
    for (Op& op : program.ops) {
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

void plan_adjoints(Program& program) {
  std::array<std::vector<char>, bank_count> written;  // whole bytes: this runs before many a solve
  written[std::size_t(Bank::registers)].resize(std::size_t(program.register_rows));
  written[std::size_t(Bank::passing)].resize(std::size_t(program.passing_rows));
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
      program.cleared.push_back(Builder::part(rows, row, 1));
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
  for (std::size_t n = program.ops.size(); n-- > 0;) {
    Op& op = program.ops[n];
    clear(op.out);  // an answer that nobody uses
    if (op.slope_is_read) clear(op.slope);
    op.sets_first = visit(op.first);
    op.sets_second = visit(op.second);
  }
  clear({Bank::registers, 0, program.state_rows});
}

void join_functions(Program& program) {
  std::vector<Op>& ops = program.ops;
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
    below->is_pair_with_next = &*below + 1 == &reader && can_pair(program, *below, reader);
  }
}

}  // namespace fathom::fused
