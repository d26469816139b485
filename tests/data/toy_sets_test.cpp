// The made data: annuli, spirals, moons, blobs, spheres, trajectories and the karate club.
#include "fathom/data/toy_sets.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "fathom/data/annuli.hpp"
#include "fathom/data/karate_club.hpp"
#include "fathom/data/trajectories.hpp"
#include "fathom/support/error.hpp"

namespace fathom {
namespace {

TEST(ConcentricAnnuli, HasHalfOfTheSamplesOnEachRingAtItsRadius) {
  const Labelled rings = concentric_annuli({.samples = 4001, .seed = 3});
  ASSERT_EQ(rings.inputs.sizes(), (std::vector<std::int64_t>{4001, 2}));
  EXPECT_EQ((rings.labels < 0).sum().item<std::int64_t>(), 2001);
  const auto radius = rings.inputs.norm(2, 1);
  EXPECT_NEAR(radius.masked_select(rings.labels < 0).mean().item<double>(), 1.0, 0.02);
  EXPECT_NEAR(radius.masked_select(rings.labels > 0).mean().item<double>(), 2.0, 0.02);
  EXPECT_NEAR(radius.masked_select(rings.labels > 0).std().item<double>(), 0.1, 0.01);
}

TEST(ConcentricAnnuli, IsTheSameForTheSameSeedOnly) {
  const auto inputs = [](std::uint64_t seed) {
    return concentric_annuli({.samples = 16, .seed = seed}).inputs;
  };
  EXPECT_TRUE(torch::equal(inputs(1), inputs(1)));
  EXPECT_FALSE(torch::equal(inputs(1), inputs(2)));
}

TEST(ConcentricAnnuli, RefusesRingsThatAreNone) {
  EXPECT_THROW(concentric_annuli({.inner_radius = 2, .outer_radius = 1}), InvalidArgument);
  EXPECT_THROW(concentric_annuli({.samples = -1}), InvalidArgument);
  EXPECT_THROW(concentric_annuli({.noise = -1}), InvalidArgument);
}

using torch::Tensor;

std::vector<std::int64_t> class_sizes(const Labelled& set) {
  const Tensor counts = torch::bincount(set.labels);
  return {counts.data_ptr<std::int64_t>(), counts.data_ptr<std::int64_t>() + counts.numel()};
}

Tensor of_class(const Labelled& set, std::int64_t label) {
  return set.inputs.index({set.labels == label}).to(torch::kFloat64);
}

TEST(ToySets, HaveBalancedClassesOfAnySize) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(class_sizes(nested_spirals({.samples = 10, .classes = 3})), (Sizes{4, 3, 3}));
  EXPECT_EQ(class_sizes(half_moons({.samples = 7})), (Sizes{4, 3}));
  EXPECT_EQ(class_sizes(gaussians({.samples = 16})), (Sizes{2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(class_sizes(concentric_spheres({.samples = 9, .radii = {1, 2, 3}})), (Sizes{3, 3, 3}));
  EXPECT_EQ(concentric_spheres({.samples = 5, .dimensions = 7}).inputs.sizes(), (Sizes{5, 7}));
  for (const Labelled& empty : {nested_spirals({.samples = 0}), half_moons({.samples = 0}),
                                gaussians({.samples = 0}), concentric_spheres({.samples = 0})}) {
    EXPECT_EQ(empty.inputs.size(0), 0);
    EXPECT_EQ(empty.labels.size(0), 0);
  }
}

TEST(ToySets, AreTheSameForTheSameSeedOnly) {
  const auto differ = [](const auto& make) {
    EXPECT_TRUE(torch::equal(make(1).inputs, make(1).inputs));
    EXPECT_FALSE(torch::equal(make(1).inputs, make(2).inputs));
  };
  differ([](std::uint64_t seed) { return nested_spirals({.samples = 16, .seed = seed}); });
  differ([](std::uint64_t seed) { return half_moons({.samples = 16, .seed = seed}); });
  differ([](std::uint64_t seed) { return gaussians({.samples = 16, .seed = seed}); });
  differ([](std::uint64_t seed) { return concentric_spheres({.samples = 16, .seed = seed}); });
}

TEST(ToySets, RefuseWhatCannotBeMeant) {
  EXPECT_THROW(nested_spirals({.classes = 0}), InvalidArgument);
  EXPECT_THROW(nested_spirals({.inner_radius = 2, .outer_radius = 1}), InvalidArgument);
  EXPECT_THROW(half_moons({.samples = -1}), InvalidArgument);
  EXPECT_THROW(half_moons({.noise = -1}), InvalidArgument);
  EXPECT_THROW(gaussians({.deviation = std::nan("")}), InvalidArgument);
  EXPECT_THROW(concentric_spheres({.dimensions = 0}), InvalidArgument);
  EXPECT_THROW(concentric_spheres({.radii = {}}), InvalidArgument);
  EXPECT_THROW(concentric_spheres({.radii = {1, -2}}), InvalidArgument);
}

TEST(NestedSpirals, WindTheirTurnsWithoutTouching) {
  const Labelled spirals = nested_spirals({.samples = 2000, .turns = 2, .noise = 0, .seed = 4});
  for (std::int64_t label : {0, 1}) {
    const Tensor points = of_class(spirals, label);
    const Tensor r = points.norm(2, 1);
    EXPECT_GE(r.min().item<double>(), 0.1 - 1e-6);
    EXPECT_LE(r.max().item<double>(), 1 + 1e-6);
    const Tensor angle = 2 * std::numbers::pi * (2 * (r - 0.1) / 0.9 + double(label) / 2);
    const Tensor expected = r.unsqueeze(1) * torch::stack({angle.cos(), angle.sin()}, 1);
    EXPECT_LT((points - expected).abs().max().item<double>(), 1e-5);
  }
  // Along a ray the arms alternate: half a turn lies between them, in radius (1 - 0.1) / 2 / 2.
  EXPECT_GT(torch::cdist(of_class(spirals, 0), of_class(spirals, 1)).min().item<double>(), 0.1);
}

TEST(NestedSpirals, HaveTheNoiseTheyAreAskedFor) {
  const SpiralsOptions quiet{.samples = 4000, .noise = 0, .seed = 1};
  SpiralsOptions noisy = quiet;
  noisy.noise = 0.3;
  EXPECT_NEAR((nested_spirals(noisy).inputs - nested_spirals(quiet).inputs).std().item<double>(), 0.3, 0.01);
}

TEST(HalfMoons, AreHalfCirclesThatReachIntoEachOther) {
  const Labelled moons = half_moons({.samples = 2000, .noise = 0, .seed = 2});
  const Tensor upper = of_class(moons, 0);
  const Tensor lower = of_class(moons, 1) - torch::tensor({1.0, 0.5}, torch::kFloat64);
  for (const Tensor& points : {upper, -lower}) {
    EXPECT_LT((points.norm(2, 1) - 1).abs().max().item<double>(), 1e-5);
    EXPECT_GE(points.select(1, 1).min().item<double>(), -1e-6);
    EXPECT_NEAR(points.select(1, 0).mean().item<double>(), 0, 0.05);
  }
}

TEST(Gaussians, SitOnACircleWithTheirDeviation) {
  const Labelled blobs = gaussians({.samples = 8000, .classes = 4, .radius = 3, .deviation = 0.2, .seed = 1});
  for (std::int64_t label = 0; label < 4; ++label) {
    const double angle = std::numbers::pi / 2 * double(label);
    const Tensor points = of_class(blobs, label);
    const Tensor mean = torch::tensor({3 * std::cos(angle), 3 * std::sin(angle)}, torch::kFloat64);
    EXPECT_LT((points.mean(0) - mean).abs().max().item<double>(), 0.02);
    EXPECT_LT((points.std(0) - 0.2).abs().max().item<double>(), 0.01);
  }
}

TEST(ConcentricSpheres, CoverTheirSpheresEvenly) {
  const Labelled shells = concentric_spheres({.samples = 20000, .dimensions = 5, .noise = 0, .seed = 6});
  for (std::int64_t label : {0, 1}) {
    const Tensor points = of_class(shells, label);
    const double radius = double(label + 1);
    EXPECT_LT((points.norm(2, 1) - radius).abs().max().item<double>(), 1e-5);
    const Tensor second_moments = points.t().matmul(points) / points.size(0);
    const Tensor even = radius * radius / 5 * torch::eye(5, torch::kFloat64);
    EXPECT_LT((second_moments - even).abs().max().item<double>(), 0.03 * radius * radius);
  }
}

const Observed few{.series = 3, .points = 20, .duration = 4, .seed = 5};
const Observed few_irregular{
    .series = 3, .points = 20, .duration = 4, .times = ObservationTimes::irregular, .seed = 5};

TEST(Trajectories, GoFromZeroToTheDurationAtRegularOrIrregularTimes) {
  const Tensor regular = van_der_pol({.observed = few}).times;
  EXPECT_LT((regular[1] - torch::linspace(0, 4, 20, torch::kFloat64)).abs().max().item<double>(), 1e-14);
  const Tensor irregular = van_der_pol({.observed = few_irregular}).times;
  ASSERT_EQ(irregular.sizes(), (std::vector<std::int64_t>{3, 20}));
  EXPECT_EQ(irregular.select(1, 0).abs().max().item<double>(), 0);
  EXPECT_EQ(irregular.select(1, 19).min().item<double>(), 4);
  const Tensor gaps = irregular.diff(1, 1);
  EXPECT_GT(gaps.min().item<double>(), 0);
  EXPECT_GT(gaps.max().item<double>(), 2 * 4.0 / 19);
  EXPECT_FALSE(torch::equal(irregular[0], irregular[1]));
}

TEST(Trajectories, OfSineWavesAreSineWaves) {
  const Trajectories waves = sine_waves({.observed = few_irregular, .frequency = 3});
  const Tensor x = waves.states.select(2, 0), v = waves.states.select(2, 1), angle = 3 * waves.times;
  const Tensor start = x.slice(1, 0, 1), rate = v.slice(1, 0, 1);
  EXPECT_LT((start * angle.cos() + rate / 3 * angle.sin() - x).abs().max().item<double>(), 1e-8);
  const Tensor amplitude = (x.square() + (v / 3).square()).sqrt();
  EXPECT_GE(amplitude.min().item<double>(), 0.5 - 1e-8);
  EXPECT_LE(amplitude.max().item<double>(), 1.5 + 1e-8);
}

/// Fourth-order differences of the states against the given rates, at the inner points of a fine regular grid.
double defect(const Trajectories& seen, const std::function<Tensor(const Tensor&)>& rate) {
  const double step = seen.times[0][1].item<double>();
  const auto at = [&](std::int64_t shift) {
    return seen.states.slice(1, 2 + shift, seen.states.size(1) - 2 + shift);
  };
  const Tensor slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step);
  return (slope - rate(at(0))).abs().max().item<double>();
}

TEST(Trajectories, ObeyTheirEquations) {
  const Observed fine{.series = 2, .points = 2001, .duration = 2, .seed = 3};
  const auto components = [](const Tensor& z) { return z.unbind(2); };
  EXPECT_LT(defect(van_der_pol({.observed = fine, .stiffness = 2}),
                   [&](const Tensor& z) {
                     const auto c = components(z);
                     return torch::stack({c[1], 2 * (1 - c[0].square()) * c[1] - c[0]}, 2);
                   }),
            1e-5);
  EXPECT_LT(defect(lorenz({.observed = fine}),
                   [&](const Tensor& z) {
                     const auto c = components(z);
                     return torch::stack(
                         {10 * (c[1] - c[0]), c[0] * (28 - c[2]) - c[1], c[0] * c[1] - 8.0 / 3.0 * c[2]}, 2);
                   }),
            1e-3);
  EXPECT_LT(defect(pendulum({.observed = fine, .length = 2, .damping = 0.3}),
                   [&](const Tensor& z) {
                     const auto c = components(z);
                     return torch::stack({c[1], -9.81 / 2 * c[0].sin() - 0.3 * c[1]}, 2);
                   }),
            1e-6);
}

TEST(Trajectories, OfAnUndampedPendulumKeepTheirEnergy) {
  const Trajectories swings = pendulum({.observed = {.series = 4, .points = 50, .duration = 20, .seed = 1}});
  const Tensor angle = swings.states.select(2, 0), speed = swings.states.select(2, 1);
  const Tensor energy = speed.square() / 2 - 9.81 * angle.cos();
  EXPECT_LT((energy - energy.slice(1, 0, 1)).abs().max().item<double>(), 1e-7);
}

TEST(Trajectories, HaveTheNoiseTheyAreAskedForAndTheSameBitsForTheSameSeed) {
  Observed noisy{.series = 50, .points = 50, .noise = 0.1, .seed = 2}, quiet = noisy, other = noisy;
  quiet.noise = 0;
  other.seed = 3;
  const Tensor seen = sine_waves({.observed = noisy}).states;
  EXPECT_NEAR((seen - sine_waves({.observed = quiet}).states).std().item<double>(), 0.1, 0.005);
  EXPECT_TRUE(torch::equal(seen, sine_waves({.observed = noisy}).states));
  EXPECT_FALSE(torch::equal(seen, sine_waves({.observed = other}).states));
}

TEST(Trajectories, RefuseWhatCannotBeMeant) {
  EXPECT_THROW(sine_waves({.observed = {.series = 0}}), InvalidArgument);
  EXPECT_THROW(lorenz({.observed = {.points = 1}}), InvalidArgument);
  EXPECT_THROW(van_der_pol({.observed = {.duration = 0}}), InvalidArgument);
  EXPECT_THROW(van_der_pol({.observed = {.noise = -1}}), InvalidArgument);
  EXPECT_THROW(pendulum({.length = 0}), InvalidArgument);
}

TEST(KarateClub, IsTheGraphOfThePaper) {
  const Graph& club = karate_club();
  ASSERT_EQ(club.nodes, 34);
  ASSERT_EQ(club.labels.size(), 34u);
  EXPECT_EQ(club.edges.size(), 78u);
  EXPECT_EQ((std::set(club.edges.begin(), club.edges.end()).size()), 78u);
  std::vector<int> degree(34, 0);
  for (const auto& [from, to] : club.edges) {
    ASSERT_TRUE(0 <= from && from < to && to < 34);
    ++degree[std::size_t(from)];
    ++degree[std::size_t(to)];
  }
  // The degrees of the two leaders and the least connected member, as in figure 1.
  EXPECT_EQ(degree[0], 16);
  EXPECT_EQ(degree[33], 17);
  EXPECT_EQ(degree[32], 12);
  EXPECT_EQ(degree[11], 1);
  EXPECT_EQ(std::count(club.labels.begin(), club.labels.end(), 0), 17);
  EXPECT_EQ(club.labels[0], 0);
  EXPECT_EQ(club.labels[33], 1);
}

}  // namespace
}  // namespace fathom
