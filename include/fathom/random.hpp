/// Random numbers from a counter: the n-th number of a stream does not depend on who asked for the others, and is the same on every
/// platform. Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
///
///   Random random(seed, /*stream=*/3);
///   const double u = random.uniform(n);      // in [0, 1), the n-th of its stream
///   const double z = random.normal(n);
///
/// A Random is a value without state: threads may share it.
#pragma once

#include <array>
#include <cstdint>

namespace fathom {

/// The block of four words that belongs to a counter and a key.
std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key);

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint64_t bits(std::uint64_t n) const;
  double uniform(std::uint64_t n) const;  ///< in [0, 1), a multiple of 2^-53
  double normal(
      std::uint64_t n) const;  ///< of mean 0 and deviation 1, by Box and Muller from a block of its own

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t n) const;

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace fathom
