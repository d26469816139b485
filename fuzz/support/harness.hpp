/// What a harness is: one function that reads an input as its parser would and checks what came out.
/// fuzz/NAME.cpp defines it; fuzz/corpus/NAME/ has inputs to start from, where those called good... must be accepted.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fathom/support/error.hpp"

namespace fathom::fuzz {

/// Returns if the input was accepted, throws Error if it was refused. Anything else is a finding.
void read_input(std::string_view input);

/// Stops the program, so that the fuzzer keeps the input.
inline void check(bool condition, const char* claim) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", claim);
  std::abort();
}

inline bool accepts(std::string_view input) {
  try {
    read_input(input);
    return true;
  } catch (const Error& error) {
    check(error.what()[0] != '\0', "an error says something");
    return false;
  }
}

}  // namespace fathom::fuzz
