/// The modules behind the functions of field.hpp, for code that looks inside a field.
#pragma once

#include "fathom/field/field.hpp"

namespace fathom {

using OptionalDevice = torch::optional<torch::Device>;

struct NetField : FieldModule {
  explicit NetField(std::shared_ptr<DepthModule> net);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override { return net->break_points(); }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  std::shared_ptr<DepthModule> net;
};

struct ControlledField : FieldModule {
  ControlledField(std::shared_ptr<DepthModule> net, ControlEntry entry,
                  std::shared_ptr<DepthModule> embedding);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override;
  bool is_controlled() const override { return true; }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  std::shared_ptr<DepthModule> net;
  ControlEntry entry;
  std::shared_ptr<DepthModule> embedding;  ///< may be null
};

struct DrivenField : FieldModule {
  DrivenField(std::shared_ptr<DepthModule> net, Signal signal, ControlEntry entry);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override;
  std::vector<Tensor> extra_parameters() const override { return extra; }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  std::shared_ptr<DepthModule> net;
  Signal signal;
  ControlEntry entry;
  std::vector<Tensor> extra;  ///< parameters of the signal that are computed, and so belong to no module
};

struct HigherOrderField : FieldModule {
  HigherOrderField(Field field, std::int64_t order, std::int64_t states);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override { return field->break_points(); }
  bool is_controlled() const override { return field->is_controlled(); }
  std::vector<Tensor> extra_parameters() const override { return field->extra_parameters(); }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  Field field;
  std::int64_t order;
  std::int64_t states;  ///< features of that order; 0: all
};

struct ReflectionField : FieldModule {
  explicit ReflectionField(double theta);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  bool is_controlled() const override { return true; }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  Tensor theta;
};

struct ApproximationField : FieldModule {
  ApproximationField(std::shared_ptr<DepthModule> net, std::int64_t inputs);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override { return net->break_points(); }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  std::shared_ptr<DepthModule> net;
  std::int64_t inputs;
};

struct FunctionField : FieldModule {
  explicit FunctionField(OwnField field);
  Tensor rate(const Tensor& s, const Tensor& x, const Tensor& z) override;
  std::vector<double> break_points() const override { return field.break_points; }
  bool is_controlled() const override { return field.controlled; }
  std::vector<Tensor> extra_parameters() const override { return extra; }
  std::shared_ptr<torch::nn::Module> clone(const OptionalDevice& device = torch::nullopt) const override;

  OwnField field;
  std::vector<Tensor> extra;  ///< parameters that are computed, and so belong to no module
};

}  // namespace fathom
