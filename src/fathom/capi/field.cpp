/// fathom.h: fields.
#include "fathom/callback_field.hpp"
#include "fathom/capi/handles.hpp"

namespace fathom::capi {

namespace {

void refuse_failure(int32_t answer, const char* which, double depth) {
  if (answer != 0)
    throw CallbackFailure(text("the callback `", which, "` returned ", answer, " at depth ", depth));
}

template <class T> fathom_evaluation evaluation_of(const Evaluation<T>& at) {
  const auto data = [](std::span<const T> numbers) { return numbers.empty() ? nullptr : numbers.data(); };
  return {.depth = at.depth,
          .samples = at.samples,
          .state = at.state.data(),
          .parameters = data(at.parameters),
          .input = data(at.input)};
}

template <class T> ProgramField field_of(const fathom_callback_options& options) {
  CallbackField<T> field{
      .features = options.features, .parameters = options.parameters, .inputs = options.inputs};
  field.rate = [call = options.rate, context = options.context](const Evaluation<T>& at, std::span<T> rate) {
    const fathom_evaluation evaluation = evaluation_of(at);
    refuse_failure(call(context, &evaluation, rate.data()), "rate", at.depth);
  };
  if (!options.product) return field.field();
  field.product = [call = options.product, context = options.context](
                      const Evaluation<T>& at, std::span<const T> adjoint, const AdjointProduct<T>& to) {
    const fathom_evaluation evaluation = evaluation_of(at);
    const auto data = [](std::span<T> numbers) { return numbers.empty() ? nullptr : numbers.data(); };
    const fathom_product product{.state = to.state.data(),
                                 .parameters = data(to.parameters),
                                 .input = data(to.input),
                                 .depth = data(to.depth)};
    refuse_failure(call(context, &evaluation, adjoint.data(), &product), "product", at.depth);
  };
  return field.field();
}

}  // namespace

}  // namespace fathom::capi

using namespace fathom;
using namespace fathom::capi;

fathom_code fathom_field_network(const fathom_network_options* options, fathom_field** field,
                                 fathom_error* error) {
  return answer(error, [&] {
    require_given(field, "field");
    *field = nullptr;
    const fathom_network_options given = known(options, "fathom_network_options");
    NetworkOptions network{
        .features = given.features, .inputs = given.inputs, .order = given.order == 0 ? 1 : given.order};
    read_layers(given.layers, given.layer_count, network.layers);
    *field = new fathom_field{.field = network_field(network)};
  });
}

fathom_code fathom_field_callbacks(const fathom_callback_options* options, fathom_field** field,
                                   fathom_error* error) {
  return answer(error, [&] {
    require_given(field, "field");
    *field = nullptr;
    const fathom_callback_options given = known(options, "fathom_callback_options");
    require(given.type == FATHOM_FLOAT32 || given.type == FATHOM_FLOAT64,
            "`type` must be FATHOM_FLOAT32 or FATHOM_FLOAT64, got ", given.type);
    require(given.rate != nullptr, "a field needs a `rate`, got NULL");
    *field = new fathom_field{
        .field = given.type == FATHOM_FLOAT32 ? field_of<float>(given) : field_of<double>(given),
        .type = given.type};
  });
}

fathom_code fathom_field_describe(const fathom_field* field, fathom_field_description* description,
                                  fathom_error* error) {
  return answer(error, [&] {
    require_given(field, "field");
    const auto& inputs = field->field.inputs();
    write_known(description,
                {.size = 0,
                 .features = field->field.features(),
                 .parameters = field->field.parameter_count(),
                 .inputs = inputs.empty() ? 0 : inputs.front()},
                "fathom_field_description");
  });
}

fathom_code fathom_field_initialise(const fathom_field* field, uint64_t seed, fathom_out parameters,
                                    fathom_error* error) {
  return answer(error, [&] {
    require_given(field, "field");
    const int64_t count = field->field.parameter_count();
    require(parameters.data && parameters.rows == 1 && parameters.columns == count,  // before they are made
            "`parameters` must be 1 x ", count, ", got ", parameters.rows, " x ", parameters.columns);
    if (parameters.type == FATHOM_FLOAT32)
      write_row(initial_parameters<float>(field->field, seed), parameters, "parameters");
    else
      write_row(initial_parameters<double>(field->field, seed), parameters, "parameters");
  });
}

void fathom_field_free(fathom_field* field) { delete field; }
