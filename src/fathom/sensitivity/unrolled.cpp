/// The plain graph: accepted steps are found without one, then repeated with one.
#include "fathom/sensitivity/field_rules.hpp"
#include "fathom/sensitivity/replay.hpp"

namespace fathom {

Keep kept_for(const Unrolled&) { return {}; }

Tensor unroll(const ForwardPass& pass, const Tensor& start, const Tensor& depths) {
  const Tensor moving = depths.requires_grad() ? depths : Tensor{};
  std::vector<Tensor> states(pass.depths.size());
  Tensor state = start;
  for (const StepRecord& record : pass.records) {
    const ReplayedStep step = ode::with_site([&] { return replay(pass, record, state, moving); },
                                             site_on_way_back(pass, record.step.start, record.step.size()));
    pass.report->backward_evaluations += step.evaluations;
    for (const SavedPoint& point : record.saved) states[point.place] = step.end;
    for (std::size_t i = 0; i < step.saved.size(); ++i) states[step.places[i]] = step.saved[i];
    state = step.end;
  }
  if (!differ_by_rounding(state, pass.states[-1], pass.start))
    check_pure(pass, inside_first(pass), pass.start);
  for (std::size_t place = 0; place < states.size(); ++place) {
    if (states[place].defined()) continue;
    states[place] = start;
    if (!moving.defined() || place == 0) continue;
    const Tensor rate = rate_at(pass, inside_first(pass), start);
    const Tensor apart = anchored(0.0, moving[std::int64_t(place)]) - anchored(0.0, moving[0]);
    states[place] = start + apart.to(start.scalar_type()) * rate;
  }
  return at::stack(states);
}

}  // namespace fathom
