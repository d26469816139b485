#include "fathom/capi/handles.hpp"

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "fathom/ode/failure.hpp"

namespace fathom::capi {

namespace {

fathom_code code_of(ode::FailureReason reason) {
  switch (reason) {
    case ode::FailureReason::non_finite: return FATHOM_NOT_FINITE;
    case ode::FailureReason::step_too_small: return FATHOM_STEP_TOO_SMALL;
    case ode::FailureReason::too_many_steps: return FATHOM_TOO_MANY_STEPS;
    case ode::FailureReason::field_threw: return FATHOM_CALLBACK;
  }
  return FATHOM_INTERNAL;
}

fathom_code write(fathom_error* error, fathom_code code, const char* message) noexcept {
  if (!error) return code;
  error->code = code;
  std::snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

}  // namespace

fathom_code write_error(fathom_error* error) noexcept {
  try {
    throw;
  } catch (const ode::SolveFailure& failure) {
    return write(error, code_of(failure.reason), failure.what());
  } catch (const CallbackFailure& failure) {
    return write(error, FATHOM_CALLBACK, failure.what());
  } catch (const InvalidArgument& invalid) {
    return write(error, FATHOM_INVALID_ARGUMENT, invalid.what());
  } catch (const Error& other) {
    return write(error, FATHOM_FILE, other.what());
  } catch (const std::bad_alloc&) {
    return write(error, FATHOM_OUT_OF_MEMORY, "there is not enough memory");
  } catch (const std::length_error&) {
    return write(error, FATHOM_OUT_OF_MEMORY, "no memory is large enough");
  } catch (const std::exception& other) { return write(error, FATHOM_INTERNAL, other.what()); } catch (...) {
    return write(error, FATHOM_INTERNAL, "unknown");
  }
}

void read_layers(const fathom_layer* layers, std::size_t count, std::vector<Layer>& all) {
  constexpr std::size_t most = 1000;
  require(count <= most, "there can be ", most, " layers at most, got ", count);
  if (count > 0) require_given(layers, "layers");
  all.clear();
  const char* at = reinterpret_cast<const char*>(layers);
  for (std::size_t n = 0; n < count; ++n) {
    const fathom_layer layer = known(reinterpret_cast<const fathom_layer*>(at), "fathom_layer");
    at += layer.size;
    require(layer.activation >= 0 && layer.activation <= FATHOM_SILU,
            "`activation` must be a fathom_activation, got ", layer.activation);
    constexpr Activation activations[] = {Activation::identity, Activation::identity, Activation::tanh,
                                          Activation::relu,     Activation::softplus, Activation::elu,
                                          Activation::sigmoid,  Activation::silu};
    Layer& read = all.emplace_back();
    read.features = layer.features;
    read.activation = activations[layer.activation];
    read.reads_depth = layer.reads_depth != 0;
  }
}

}  // namespace fathom::capi
