/// What a field throws becomes a SolveFailure that says where.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "fathom/ode/failure.hpp"

namespace fathom::ode {

/// Runs `work`, and if the field throws in it, says where by `site()`. Errors of the library pass as they are, and so does the want of
/// memory, which is nobody's fault.
template <class Work, class Site> auto with_site(Work&& work, Site&& site) {
  try {
    return work();
  } catch (const Error&) { throw; } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    // torch appends a stack trace to its messages; the first line says what is wrong.
    const std::string message = error.what();
    std::throw_with_nested(
        SolveFailure(FailureReason::field_threw, site(), message.substr(0, message.find('\n'))));
  }
}

}  // namespace fathom::ode
