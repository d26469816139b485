/// The explicit Runge-Kutta methods of the library, each a value; what they claim is checked by tests with rooted trees.
///
///   Solver{.method = tsit5()}
///
/// Sources: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I (HNW), and the papers named in methods.cpp.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fathom/ode/stability.hpp"
#include "fathom/ode/tableau.hpp"

namespace fathom::ode {

ButcherTableau euler();        ///< order 1
ButcherTableau midpoint();     ///< order 2
ButcherTableau heun2();        ///< order 2(1), the trapezoidal rule made explicit
ButcherTableau ralston2();     ///< order 2(1), smallest error bound of its family
ButcherTableau heun3();        ///< order 3
ButcherTableau bosh3();        ///< order 3(2), Bogacki-Shampine, FSAL
ButcherTableau rk4();          ///< order 4, the classical one
ButcherTableau rk4_38();       ///< order 4, Kutta's 3/8 rule
ButcherTableau fehlberg45();   ///< order 4(5)
ButcherTableau cash_karp54();  ///< order 5(4)
ButcherTableau dopri5();       ///< order 5(4), Dormand-Prince, FSAL, dense output of order 4
ButcherTableau tsit5();        ///< order 5(4), Tsitouras, FSAL, dense output of order 4
ButcherTableau dop853();       ///< order 8(5,3), Hairer's Dormand-Prince, FSAL, dense output of order 7

/// A method as a solve carries it from place to place: shared and never changed, so that a copy costs nothing.
class Method {
 public:
  Method();                       ///< dopri5
  Method(ButcherTableau method);  // NOLINT: a tableau is a method

  // Copies only: a method that was moved from is still one.
  Method(const Method&) = default;
  Method& operator=(const Method&) = default;
  ~Method() = default;

  const ButcherTableau& operator*() const { return kept_->tableau; }
  const ButcherTableau* operator->() const { return &kept_->tableau; }
  operator const ButcherTableau&() const { return kept_->tableau; }  // NOLINT

  /// Null: it has none.
  const StabilityGauge* gauge() const { return kept_->gauge ? &*kept_->gauge : nullptr; }

 private:
  struct Kept {
    ButcherTableau tableau;
    std::optional<StabilityGauge> gauge;
  };
  std::shared_ptr<const Kept> kept_;
};

/// All of the above, by rising order.
const std::vector<ButcherTableau>& all_methods();

}  // namespace fathom::ode
