#include "fathom/field/lower.hpp"

#include "fathom/field/augmentation.hpp"
#include "fathom/field/fields.hpp"
#include "fathom/field/known_layers.hpp"
#include "fathom/fused/network.hpp"
#include "fathom/support/error.hpp"

namespace fathom {

namespace {

using fused::Builder;
using fused::FunctionKind;
using fused::Network;
using fused::NoProgram;
using fused::Rows;

fused::DepthFunctions functions_of(const DepthBasis& basis) {
  return {.size = std::int32_t(basis.size), .values = basis.values, .slopes = basis.slopes};
}

Lowered none(std::string reason) {
  Lowered lowered;
  lowered.reason = std::move(reason);
  return lowered;
}

class Lowering {
 public:
  Lowering(std::int64_t features, std::size_t losses, const LowerOptions& options)
      : options_(options), build_(std::int32_t(features), std::int32_t(losses)) {
    tensors_.reserve(16);
    if (options.scale.defined()) scale_ = build_.input(number_of(options.scale), 1);
  }

  Lowered run(DepthModule* head, const Tensor& y, AnswerLoss loss, torch::ScalarType type) {
    const Rows answer = head ? chain(*head, build_.state()) : build_.state();
    const bool is_label = loss == AnswerLoss::cross_entropy;
    if (!is_label && y.size(1) != answer.count)
      throw NoProgram{"the answer has another shape than its target"};
    if (is_label) check_labels(y, answer.count);
    const Rows wanted =
        build_.input(number_of(is_label ? y.to(type) : y), is_label ? 1 : std::int32_t(y.size(1)));
    build_.give(build_.zeros(build_.state().count));
    build_.give_loss(0, is_label ? build_.cross_entropy(answer, wanted) : build_.distance(answer, wanted));
    Lowered lowered = finished(/*passes_cheap_rows=*/false);
    if (lowered.program->varies_with_depth()) throw NoProgram{"a head that varies with depth has no kernel"};
    return lowered;
  }

  Lowered run(const Field& field) {
    const Rows rate = rate_of(*field, build_.state());
    if (rate.count != build_.state().count)
      throw NoProgram{"the rate has another number of features than the state"};
    const std::vector<Rows> losses = options_.divergence ? std::vector<Rows>{divergence_} : losses_of(rate);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      build_.give_loss(std::int32_t(i), scale_ ? build_.scale(losses[i], *scale_) : losses[i]);
    }
    build_.give(scale_ ? build_.scale(rate, *scale_) : rate);
    return finished(/*passes_cheap_rows=*/true);
  }

 private:
  Lowered finished(bool passes_cheap_rows) {
    Lowered lowered;
    lowered.program = std::make_shared<fused::Program>(std::move(build_).finish(passes_cheap_rows));
    lowered.tensors = std::move(tensors_);
    return lowered;
  }

  /// The place of a tensor in the program's list; one that is used twice has one place.
  std::int32_t number_of(const Tensor& tensor) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].is_same(tensor)) return std::int32_t(i);
    }
    tensors_.push_back(tensor);
    return std::int32_t(tensors_.size()) - 1;
  }

  Rows rate_of(FieldModule& field, Rows z) {
    if (const auto* net = exactly<NetField>(field)) return rate_of_net(*net->net, z);
    if (const auto* controlled = exactly<ControlledField>(field)) {
      const Rows u = control_of(*controlled);
      if (controlled->entry == ControlEntry::concatenation)
        return rate_of_net(*controlled->net, build_.joined({z, u}));
      if (u.count != z.count) throw NoProgram{"a control of another size than the state is added"};
      return rate_of_net(*controlled->net, build_.add(z, u));
    }
    if (options_.divergence) throw NoProgram{"the divergence of this kind of field has no kernel"};
    if (const auto* higher = exactly<HigherOrderField>(field)) {
      const std::int32_t ordered = higher->states == 0 ? z.count : std::int32_t(higher->states);
      const std::int32_t order = std::int32_t(higher->order);
      if (ordered > z.count || ordered % order != 0) throw NoProgram{"the state does not divide into blocks"};
      const std::int32_t block = ordered / order;
      const Rows last = rate_of(*higher->field, z);
      if (order == 1) return last;
      return build_.joined({Builder::part(z, block, ordered - block), last});
    }
    if (const auto* approximation = exactly<ApproximationField>(field)) {
      const std::int32_t inputs = std::int32_t(approximation->inputs);
      if (inputs >= z.count) throw NoProgram{"the approximation has no features for its answer"};
      const Rows answer = chain(*approximation->net, Builder::part(z, 0, inputs));
      return build_.joined({build_.zeros(inputs), answer});
    }
    if (exactly<DrivenField>(field)) throw NoProgram{"a signal u(s) is a function of the user's"};
    if (exactly<FunctionField>(field)) throw NoProgram{"the field is a function of the user's"};
    throw NoProgram{text("a field of type ", field.name(), " has no kernel")};
  }

  Rows control_of(const ControlledField& field) {
    const Tensor& x = options_.control;
    if (!x.defined() || x.dim() != 2) throw NoProgram{"the control is not of shape (batch, features)"};
    const Rows input = build_.input(number_of(x), std::int32_t(x.size(1)));
    return field.embedding ? chain(*field.embedding, input) : input;
  }

  /// A network that gives the rate, and the divergence if that is asked for.
  Rows rate_of_net(DepthModule& net, Rows h) {
    Network network(build_, h, options_.divergence ? build_.state().count : 0);
    write(net, network);
    divergence_ = network.divergence();
    return network.output();
  }

  Rows chain(const torch::nn::Module& net, Rows h) {
    Network network(build_, h);
    write(net, network);
    return network.output();
  }

  void write(const torch::nn::Module& net, Network& network) {
    const std::vector<const torch::nn::Module*> layers = flat_layers(net);
    for (std::size_t n = 0; n < layers.size(); ++n) {
      if (!has_kernel(*layers[n]))
        throw NoProgram{text("layer ", n, " (", short_name(*layers[n]), ") has no kernel")};
    }
    for (std::size_t n = 0; n < layers.size(); ++n) {
      const torch::nn::Module& layer = *layers[n];
      const auto next = n + 1 == layers.size() ? std::nullopt : function_of(*layers[n + 1]);
      const bool is_last = n + (next ? 2 : 1) == layers.size();
      const auto place = is_last ? Network::Place::last : Network::Place::inside;
      if (const auto* linear = exactly<torch::nn::LinearImpl>(layer)) {
        n += next ? 1u : 0u;
        network.linear(matrix_of(linear->weight, linear->bias, nullptr), next.value_or(fused::Function{}),
                       place);
      } else if (const auto* varying = exactly<DepthLinearImpl>(layer)) {
        if (scale_)
          throw NoProgram{text("layer ", n, " (DepthLinear) has no kernel for a depth of each sample")};
        n += next ? 1u : 0u;
        network.linear(matrix_of(varying->weight, varying->bias, &varying->basis()),
                       next.value_or(fused::Function{}), place);
      } else if (exactly<DepthConcatImpl>(layer)) {
        network.append_depth(scale_);
      } else if (const auto* zeros = exactly<ZeroAugmentationImpl>(layer)) {
        if (zeros->features() > 0)
          augment(network, build_.zeros(std::int32_t(zeros->features())), zeros->side());
      } else if (const auto* partial = exactly<PartialAugmentationImpl>(layer)) {
        augment(network, chain(*partial->layer().ptr(), network.output()), partial->side());
      } else {
        network.activate(function_of(layer).value());
      }
    }
  }

  static bool has_kernel(const torch::nn::Module& layer) {
    return exactly<torch::nn::LinearImpl>(layer) || exactly<DepthLinearImpl>(layer) ||
           exactly<DepthConcatImpl>(layer) || exactly<ZeroAugmentationImpl>(layer) ||
           exactly<PartialAugmentationImpl>(layer) || function_of(layer);
  }

  static void augment(Network& network, Rows features, Side side) {
    side == Side::end ? network.append(features) : network.prepend(features);
  }

  fused::Matrix matrix_of(const Tensor& weight, const Tensor& bias, const DepthBasis* basis) {
    const std::int64_t axis = basis ? 1 : 0;
    const std::int64_t functions = basis ? std::int64_t(basis->size) : 1;
    if (bias.defined() && bias.numel() != functions * weight.size(axis))
      throw NoProgram{"a bias has another size than its layer has outputs"};
    return {.weight = number_of(weight),
            .bias = bias.defined() ? number_of(bias) : -1,
            .outputs = std::int32_t(weight.size(axis)),
            .inputs = std::int32_t(weight.size(axis + 1)),
            .basis = basis ? build_.basis(functions_of(*basis)) : -1};
  }

  std::vector<Rows> losses_of(Rows rate) {
    std::vector<Rows> values;
    for (const RunningLoss& loss : options_.losses) {
      switch (loss.kind()) {
        case RunningLoss::Kind::own: throw NoProgram{"a running loss is a function of the user's"};
        case RunningLoss::Kind::path_length: values.push_back(build_.norm(rate)); break;
        case RunningLoss::Kind::kinetic_energy: values.push_back(build_.squares(rate)); break;
        case RunningLoss::Kind::tracking:
          if (scale_) throw NoProgram{"a target over depth has no kernel for a depth of each sample"};
          if (std::int32_t(loss.target().size) != build_.state().count) {
            throw NoProgram{"a target has another number of features than the state"};
          }
          values.push_back(build_.distance(build_.state(), build_.signal(functions_of(loss.target()))));
      }
    }
    return values;
  }

  const LowerOptions& options_;
  Builder build_;
  std::vector<Tensor> tensors_;
  std::optional<Rows> scale_;
  Rows divergence_ = {};
};

}  // namespace

void check_labels(const Tensor& y, std::int64_t scores) {
  const Tensor local = y.cpu().contiguous();
  const auto* labels = local.data_ptr<std::int64_t>();
  for (std::int64_t n = 0; n < local.numel(); ++n) {
    require(labels[n] >= 0 && labels[n] < scores, "labels must be 0 to ", scores - 1, " for ", scores,
            " scores, got ", labels[n]);
  }
}

Lowered lower(const Field& field, const Tensor& z0, const LowerOptions& options) {
  if (z0.dim() != 2 || z0.size(1) == 0) return none("the state is not of shape (batch, features)");
  try {
    return Lowering(z0.size(1), options.divergence ? 1 : options.losses.size(), options).run(field);
  } catch (const NoProgram& problem) { return none(problem.reason); }
}

Lowered lower_answer(DepthModule* head, const Tensor& z0, const Tensor& y, AnswerLoss loss) {
  try {
    const LowerOptions options;
    return Lowering(z0.size(1), 1, options).run(head, y, loss, z0.scalar_type());
  } catch (const NoProgram& problem) { return none(problem.reason); }
}

Lowered lower_running_losses(std::int64_t features, std::int64_t losses) {
  const std::int32_t first = std::int32_t(features), count = std::int32_t(losses);
  Builder build(first + count, 1);
  build.give(build.zeros(first + count));
  build.give_loss(0, build.sum(Builder::part(build.state(), first, count)));
  Lowered lowered;
  lowered.program = std::make_shared<fused::Program>(std::move(build).finish());
  return lowered;
}

}  // namespace fathom
