/// Bases by name and size, for files and the command line: "galerkin:fourier:5".
#pragma once

#include "fathom/depth/basis.hpp"
#include "fathom/support/names.hpp"

namespace fathom {

template <> const NameTable<BasisKind>& names<BasisKind>();

DepthBasis named_basis(BasisKind kind, std::size_t size, const DepthSpan& span);

/// The number of functions in named_basis(kind, size, ...).
std::size_t basis_size(BasisKind kind, std::size_t size);

}  // namespace fathom
