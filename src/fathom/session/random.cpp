#include "fathom/random.hpp"

#include <cmath>
#include <numbers>

namespace fathom {

namespace {

/// Of 64 bits, the 53 that a double can tell apart.
double in_unit_interval(std::uint64_t bits) { return double(bits >> 11) * 0x1p-53; }

std::uint64_t joined(std::uint32_t low, std::uint32_t high) { return std::uint64_t(high) << 32 | low; }

}  // namespace

std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key) {
  constexpr int rounds = 10;
  constexpr std::uint64_t multiplier_0 = 0xD2511F53,
                          multiplier_1 = 0xCD9E8D57;  // of the paper, as are the next two
  constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = multiplier_0 * c0, second = multiplier_1 * c2;
    c0 = std::uint32_t(second >> 32) ^ c1 ^ k0;
    c1 = std::uint32_t(second);
    c2 = std::uint32_t(first >> 32) ^ c3 ^ k1;
    c3 = std::uint32_t(first);
    k0 += weyl_0;
    k1 += weyl_1;
  }
  return {c0, c1, c2, c3};
}

std::array<std::uint32_t, 4> Random::block(std::uint64_t n) const {
  return philox(
      {std::uint32_t(n), std::uint32_t(n >> 32), std::uint32_t(stream_), std::uint32_t(stream_ >> 32)},
      {std::uint32_t(seed_), std::uint32_t(seed_ >> 32)});
}

std::uint64_t Random::bits(std::uint64_t n) const {
  const auto words = block(n);
  return joined(words[0], words[1]);
}

double Random::uniform(std::uint64_t n) const { return in_unit_interval(bits(n)); }

double Random::normal(std::uint64_t n) const {
  const auto words = block(n);
  // 1 - u is never 0, whose logarithm would be infinite.
  const double u = 1 - in_unit_interval(joined(words[0], words[1]));
  const double angle = 2 * std::numbers::pi * in_unit_interval(joined(words[2], words[3]));
  return std::sqrt(-2 * std::log(u)) * std::cos(angle);
}

}  // namespace fathom
