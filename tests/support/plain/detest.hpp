/// The 25 non-stiff problems of DETEST on [0, 20]: T. E. Hull, W. H. Enright, B. M. Fellen, A. E. Sedgwick, Comparing
/// numerical methods for ordinary differential equations, SIAM J. Numer. Anal. 9 (1972).
///
///   for (const Problem& problem : detest()) solve(problem, plan, {0.0, detest_last});
#pragma once

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "support/plain/problems.hpp"

namespace fathom::testing {

constexpr double detest_last = 20;

namespace detest_detail {

/// Class A, single equations.
inline std::vector<Problem> single_equations() {
  const auto scalar = [](auto f) {
    return Rate([f](double x, const State& y, State& rate) { rate[0] = f(x, y[0]); });
  };
  return {
      {"A1", scalar([](double, double y) { return -y; }), {1}, [](double x) { return State{std::exp(-x)}; }},
      {"A2",
       scalar([](double, double y) { return -y * y * y / 2; }),
       {1},
       [](double x) { return State{1 / std::sqrt(x + 1)}; }},
      {"A3",
       scalar([](double x, double y) { return y * std::cos(x); }),
       {1},
       [](double x) { return State{std::exp(std::sin(x))}; }},
      {"A4",
       scalar([](double, double y) { return y / 4 * (1 - y / 20); }),
       {1},
       [](double x) { return State{20 / (1 + 19 * std::exp(-x / 4))}; }},
      {"A5", scalar([](double x, double y) { return (y - x) / (y + x); }), {4}},
  };
}

/// Class B, small systems: predator and prey, a linear and a nonlinear reaction, a torus, a rigid body.
inline std::vector<Problem> small_systems() {
  return {
      {"B1",
       [](double, const State& y, State& rate) {
         rate = {2 * (y[0] - y[0] * y[1]), -(y[1] - y[0] * y[1])};
       },
       {1, 3}},
      {"B2",
       [](double, const State& y, State& rate) {
         rate = {-y[0] + y[1], y[0] - 2 * y[1] + y[2], y[1] - y[2]};
       },
       {2, 0, 1},
       [](double x) {
         const double slow = 0.5 * std::exp(-x), fast = 0.5 * std::exp(-3 * x);
         return State{1 + slow + fast, 1 - 2 * fast, 1 - slow + fast};
       }},
      {"B3",
       [](double, const State& y, State& rate) {
         rate = {-y[0], y[0] - y[1] * y[1], y[1] * y[1]};
       },
       {1, 0, 0}},
      {"B4",
       [](double, const State& y, State& rate) {
         const double r = std::hypot(y[0], y[1]);
         rate = {-y[1] - y[0] * y[2] / r, y[0] - y[1] * y[2] / r, y[0] / r};
       },
       {3, 0, 0}},
      {"B5",
       [](double, const State& y, State& rate) {
         rate = {y[1] * y[2], -y[0] * y[2], -0.51 * y[0] * y[1]};
       },
       {0, 1, 1}},
  };
}

/// The outer planets about the sun: positions of Jupiter, Saturn, Uranus, Neptune and Pluto, then their velocities.
inline Problem five_bodies() {
  const Rate rate = [](double, const State& y, State& out) {
    constexpr double k2 = 2.95912208286, sun = 1.00000597682;
    constexpr std::array mass = {0.000954786104043, 0.000285583733151, 0.0000437273164546, 0.0000517759138449,
                                 0.00000277777777778};
    const auto cubed = [](double a, double b, double c) { return std::pow(a * a + b * b + c * c, 1.5); };
    for (std::size_t j = 0; j < 5; ++j) {
      const double* p = &y[3 * j];
      const double r3 = cubed(p[0], p[1], p[2]);
      for (std::size_t i = 0; i < 3; ++i) {
        out[3 * j + i] = y[15 + 3 * j + i];
        double pull = -(sun + mass[j]) * p[i] / r3;
        for (std::size_t k = 0; k < 5; ++k) {
          if (k == j) continue;
          const double* q = &y[3 * k];
          pull += mass[k] * ((q[i] - p[i]) / cubed(q[0] - p[0], q[1] - p[1], q[2] - p[2]) -
                             q[i] / cubed(q[0], q[1], q[2]));
        }
        out[15 + 3 * j + i] = k2 * pull;
      }
    }
  };
  return {"C5", rate, {3.42947415189,   3.35386959711,   1.35494901715,   6.64145542550,   5.97156957878,
                       2.18231499728,   11.2630437207,   14.6952576794,   6.27960525067,   -30.1552268759,
                       1.65699966404,   1.43785752721,   -21.1238353380,  28.4465098142,   15.3882659679,
                       -0.557160570446, 0.505696783289,  0.230578543901,  -0.415570776342, 0.365682722812,
                       0.169143213293,  -0.325325669158, 0.189706021964,  0.0877265322780, -0.0240476254170,
                       -0.287659532608, -0.117219543175, -0.176860753121, -0.216393453025, -0.0148647893090}};
}

/// Class C, moderate systems: two radioactive chains, heat in a rod of 10 and of 51 points, the outer planets.
inline std::vector<Problem> moderate_systems() {
  const auto chain = [](auto decay) {
    return Rate([decay](double, const State& y, State& rate) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double gained = i > 0 ? decay(i - 1) * y[i - 1] : 0;
        rate[i] = gained - (i + 1 < y.size() ? decay(i) * y[i] : 0);
      }
    });
  };
  const Rate rod = [](double, const State& y, State& rate) {
    for (std::size_t i = 0; i < y.size(); ++i)
      rate[i] = (i > 0 ? y[i - 1] : 0) - 2 * y[i] + (i + 1 < y.size() ? y[i + 1] : 0);
  };
  const auto first_of = [](std::size_t size) {
    State start(size, 0.0);
    start[0] = 1;
    return start;
  };
  return {{"C1", chain([](std::size_t) { return 1.0; }), first_of(10)},
          {"C2", chain([](std::size_t i) { return double(i + 1); }), first_of(10)},
          {"C3", rod, first_of(10)},
          {"C4", rod, first_of(51)},
          five_bodies()};
}

/// Class D: an orbit of given eccentricity, by Kepler's equation  E - e sin E = x.
inline Problem orbit(const char* name, double eccentricity) {
  const double e = eccentricity;
  return {
      name,
      [](double, const State& y, State& rate) {
        const double r3 = std::pow(y[0] * y[0] + y[1] * y[1], 1.5);
        rate = {y[2], y[3], -y[0] / r3, -y[1] / r3};
      },
      {1 - e, 0, 0, std::sqrt((1 + e) / (1 - e))},
      [e](double x) {
        long double anomaly = x;
        for (int n = 0; n < 100; ++n)
          anomaly -= (anomaly - e * std::sin(anomaly) - x) / (1 - e * std::cos(anomaly));
        const double u = double(anomaly), width = std::sqrt(1 - e * e), speed = 1 / (1 - e * std::cos(u));
        return State{std::cos(u) - e, width * std::sin(u), -speed * std::sin(u), speed * width * std::cos(u)};
      }};
}

/// Class E, higher order equations: Bessel, van der Pol, Duffing, a falling body, a pursuit curve.
inline std::vector<Problem> higher_order_equations() {
  const auto second_order = [](auto f) {
    return Rate([f](double x, const State& y, State& rate) { rate = {y[1], f(x, y[0], y[1])}; });
  };
  const auto bessel = [](double x) {  // J_1/2(x + 1)
    const double t = x + 1, scale = std::sqrt(2 / (std::numbers::pi * t));
    return State{scale * std::sin(t), scale * (std::cos(t) - std::sin(t) / (2 * t))};
  };
  return {
      {"E1", second_order([](double x, double y, double v) {
         return -(v / (x + 1) + (1 - 0.25 / ((x + 1) * (x + 1))) * y);
       }),
       bessel(0), bessel},
      {"E2", second_order([](double, double y, double v) { return (1 - y * y) * v - y; }), {2, 0}},
      {"E3",
       second_order([](double x, double y, double) { return y * y * y / 6 - y + 2 * std::sin(2.78535 * x); }),
       {0, 0}},
      {"E4", second_order([](double, double, double v) { return 0.032 - 0.4 * v * v; }), {30, 0}},
      {"E5",
       second_order([](double x, double, double v) { return std::sqrt(1 + v * v) / (25 - x); }),
       {0, 0}}};
}

}  // namespace detest_detail

inline const std::vector<Problem>& detest() {
  static const std::vector<Problem> problems = [] {
    using namespace detest_detail;
    std::vector<Problem> all;
    for (const auto& part : {single_equations(), small_systems(), moderate_systems()})
      all.insert(all.end(), part.begin(), part.end());
    for (const auto& [name, e] : {std::pair{"D1", 0.1}, {"D2", 0.3}, {"D3", 0.5}, {"D4", 0.7}, {"D5", 0.9}})
      all.push_back(orbit(name, e));
    const auto last = higher_order_equations();
    all.insert(all.end(), last.begin(), last.end());
    for (Problem& problem : all) {
      if (problem.exact) continue;
      problem.exact = [rate = problem.rate, start = problem.start](double x) {
        return reference(rate, start, 0, x);
      };
    }
    return all;
  }();
  return problems;
}

}  // namespace fathom::testing
