#include "fathom/read/md5.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fathom {

namespace {

constexpr std::size_t block_size = 64;
using State = std::array<std::uint32_t, 4>;
using Table = std::array<std::uint32_t, 64>;

/// T[i] = floor(2^32 |sin(i + 1)|)
const Table& sines() {
  static const Table table = [] {
    Table values = {};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint32_t>(std::floor(std::ldexp(std::abs(std::sin(double(i + 1))), 32)));
    return values;
  }();
  return table;
}

std::uint32_t little_endian(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void add_block(State& state, const char* block) {
  static constexpr int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  const Table& sine = sines();
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::size_t word = 0;
    switch (i / 16) {
      case 0: mixed = (b & c) | (~b & d), word = i; break;
      case 1: mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16; break;
      case 2: mixed = b ^ c ^ d, word = (3 * i + 5) % 16; break;
      default: mixed = c ^ (b | ~d), word = 7 * i % 16; break;
    }
    const std::uint32_t sum = a + mixed + sine[i] + little_endian(block + 4 * word);
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, turns[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

/// The end of the message: a one bit, zeros, and the number of bits, to the end of a block.
std::string padding(std::uint64_t bytes) {
  std::string tail(1, '\x80');
  while ((bytes + tail.size()) % block_size != block_size - 8) tail += '\0';
  for (int i = 0; i < 8; ++i) tail += static_cast<char>(8 * bytes >> 8 * i & 0xFF);
  return tail;
}

}  // namespace

std::string md5(ByteSource& source) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::uint64_t total = 0;
  std::string pending;  // less than a block between two reads
  std::array<char, 1 << 16> piece;
  const auto add = [&](std::string_view bytes) {
    pending += bytes;
    std::size_t used = 0;
    for (; used + block_size <= pending.size(); used += block_size) add_block(state, pending.data() + used);
    pending.erase(0, used);
  };
  while (const std::size_t count = source.read(piece)) {
    total += count;
    add({piece.data(), count});
  }
  add(padding(total));
  std::string digest;
  for (const std::uint32_t word : state) {
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t byte = word >> 8 * i & 0xFF;
      digest += "0123456789abcdef"[byte >> 4];
      digest += "0123456789abcdef"[byte & 15];
    }
  }
  return digest;
}

}  // namespace fathom
