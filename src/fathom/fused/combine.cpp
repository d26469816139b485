#include "fathom/fused/combine.hpp"

#include "fathom/fused/program_passes.hpp"
#include "fathom/support/error.hpp"

namespace fathom::fused {

namespace {

/// Where the rows of an included program are in the whole.
struct Places {
  std::int32_t features = 0;                       // of the state, which both have in the same rows
  std::int32_t registers = 0;                      // begin of its registers behind the state
  std::int32_t passing = 0, rate = 0;              // begin of these, in registers of the whole
  std::vector<std::pair<Rows, Rows>> inputs = {};  // from, to

  Rows operator()(const Rows& rows) const {
    if (rows.count == 0) return rows;
    switch (rows.bank) {
      case Bank::registers: return rows.begin < features ? rows : moved(rows, registers - features);
      case Bank::passing: return moved(rows, passing);
      case Bank::rate: return moved(rows, rate);
      case Bank::inputs: break;
    }
    for (const auto& [from, to] : inputs) {
      if (contains(from, rows)) return moved(rows, to.begin - from.begin);
    }
    throw Error("a program reads rows that no input fills");
  }

 private:
  static Rows moved(const Rows& rows, std::int32_t by) {
    return {rows.bank == Bank::inputs ? Bank::inputs : Bank::registers, rows.begin + by, rows.count};
  }
};

/// What an operation does, without what was found out about the program it comes from.
Op plain(Op op) {
  op.sets_first = op.sets_second = false;
  op.function_is_passed = op.is_pair_with_next = false;
  op.below = -1;
  return op;
}

}  // namespace

Rows Builder::include(const Program& other, std::int32_t parameters, std::int32_t count,
                      std::int32_t inputs) {
  require(other.features() == features_ && other.loss_rows == 0 && program_.loss_rows == 0,
          "fields are combined where they have the same features and no running losses, got ", features_,
          " and ", other.features(), " features with ", other.loss_rows, " running losses");
  const auto tensor = [&](std::int32_t place) {
    return place < count ? parameters + place : inputs + place - count;
  };
  const std::int32_t matrices = std::int32_t(program_.matrices.size()),
                     bases = std::int32_t(program_.bases.size()),
                     callbacks = std::int32_t(program_.callbacks.size()), signals = program_.signal_size;
  for (Matrix each : other.matrices) {
    each.weight = tensor(each.weight);
    if (each.bias >= 0) each.bias = tensor(each.bias);
    if (each.basis >= 0) each.basis += bases;
    program_.matrices.push_back(each);
  }
  program_.bases.insert(program_.bases.end(), other.bases.begin(), other.bases.end());
  program_.signals.insert(program_.signals.end(), other.signals.begin(), other.signals.end());
  program_.signal_size += other.signal_size;
  program_.callbacks.insert(program_.callbacks.end(), other.callbacks.begin(), other.callbacks.end());
  program_.callback_owners.insert(program_.callback_owners.end(), other.callback_owners.begin(),
                                  other.callback_owners.end());

  Places places{.features = features_};
  for (const SampleInput& each : other.inputs)
    places.inputs.emplace_back(each.rows, input(tensor(each.tensor), each.rows.count));
  places.registers = fresh(other.register_rows - features_).begin;
  places.passing = fresh(other.passing_rows).begin;
  const Rows rate = fresh(features_);
  places.rate = rate.begin;
  for (const Op& each : other.ops) {
    Op op = plain(each);
    for (Rows* rows : {&op.out, &op.first, &op.second, &op.slope}) *rows = places(*rows);
    if (op.matrix >= 0) op.matrix += matrices;
    if (op.kind == OpKind::signal) op.place += signals;
    if (op.kind == OpKind::call) op.place += callbacks;
    push(op);
  }
  return rate;
}

Program combined(const Program& f, const Program& g, OpKind how, const CombinedTensors& tensors) {
  const std::int32_t inputs = tensors.f_count + tensors.g_count;
  Builder build(f.features(), f.loss_rows);
  const Rows of_f = build.include(f, 0, tensors.f_count, inputs);
  const Rows of_g = build.include(g, tensors.f_count, tensors.g_count, inputs);
  build.give(how == OpKind::add ? build.add(of_f, of_g) : build.multiply(of_f, of_g));
  return std::move(build).finish(/*passes_cheap_rows=*/true);
}

}  // namespace fathom::fused
