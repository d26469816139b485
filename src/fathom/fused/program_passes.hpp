/// What is found out about a program once all its operations are there, so that the kernels need not: who sets an adjoint row and
/// who adds to it, which layers go on through each other's functions, and which rows are not worth keeping.
///
///   pass_cheap_rows(program), plan_adjoints(program), join_functions(program);
#pragma once

#include "fathom/fused/program.hpp"

namespace fathom::fused {

inline bool same(const Rows& a, const Rows& b) {
  return a.bank == b.bank && a.begin == b.begin && a.count == b.count;
}

inline bool contains(const Rows& outer, const Rows& inner) {
  return outer.bank == inner.bank && outer.begin <= inner.begin &&
         inner.begin + inner.count <= outer.begin + outer.count && inner.count > 0;
}

/// Lets layers on few rows of the argument write to the bank `passing`.
void pass_cheap_rows(Program& program);

/// Goes through the operations backwards, as the kernels will, and notes who is the first to write each adjoint row.
void plan_adjoints(Program& program);

/// Finds the layers whose answer one other layer reads, and nobody else. After plan_adjoints().
void join_functions(Program& program);

}  // namespace fathom::fused
