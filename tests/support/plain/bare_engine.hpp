/// An engine that can do no more than the loop must have: it can neither send a scout ahead nor measure.
///
///   BareEngine engine{other};
///   integrate(engine, plan, depths);
#pragma once

#include <string>

#include "fathom/ode/integrate.hpp"

namespace fathom::testing {

template <class E> struct BareEngine {
  E& engine;
  ode::StartNorms start_norms(const ode::Step& step) { return engine.start_norms(step); }
  double curvature(const ode::Step& probe) { return engine.curvature(probe); }
  ode::TrialError attempt(const ode::Step& step) { return engine.attempt(step); }
  void accept() { engine.accept(); }
  void save_state(std::size_t place) { engine.save_state(place); }
  void save_inside(std::size_t place, double fraction) { engine.save_inside(place, fraction); }
  void forget_rate() { engine.forget_rate(); }
  std::int64_t evaluations() const { return engine.evaluations(); }
  std::string offender() const { return engine.offender(); }
};

}  // namespace fathom::testing
