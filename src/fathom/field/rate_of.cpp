#include "fathom/field/rate_of.hpp"

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

bool is_solvable_with(FieldModule& field, const Tensor& s, const Tensor& x, const Tensor& z) {
  try {
    field.rate(s, x, z);
  } catch (const std::exception&) { return false; }
  return true;
}

bool mentions(const std::string& message, const char* what) {
  return message.find(what) != std::string::npos;
}

/// Says more than torch does of types that do not go together.
void explain_types(const FieldModule& field, const std::string& message, const Tensor& z) {
  if (!mentions(message, "dtype") && !mentions(message, "scalar type") && !mentions(message, "data type"))
    return;
  const std::string first_line = message.substr(0, message.find('\n'));
  for (const Tensor& parameter : parameters_of(field)) {
    if (!parameter.is_floating_point() || parameter.scalar_type() == z.scalar_type()) continue;
    throw InvalidArgument(text("a parameter of the field, of shape ", parameter.sizes(), ", has ",
                               parameter.scalar_type(), ", the state ", z.scalar_type(),
                               "; convert one of them with `to()` (\"", first_line, "\")"));
  }
  throw InvalidArgument(text("types in the field do not go together: \"", first_line, "\"; the state has ",
                             z.scalar_type(), ", depth is Double: `s.to(z.options())` converts it"));
}

}  // namespace

Tensor rate_of(FieldModule& field, const Tensor& s, const Tensor& x, const Tensor& z) {
  const bool gets_control = field.is_controlled();
  try {
    return field.rate(s, gets_control ? x : Tensor{}, z);
  } catch (const std::exception& error) {
    const bool reads_control = !gets_control && (x.defined() ? is_solvable_with(field, s, x, z)
                                                             : mentions(error.what(), "ndefined"));
    if (reads_control)
      throw InvalidArgument(
          "the field reads x, but is not declared as controlled; set `controlled = true` in its OwnField, or "
          "override `is_controlled()` in its FieldModule");
    if (!dynamic_cast<const Error*>(&error)) explain_types(field, error.what(), z);
    throw;
  }
}

}  // namespace fathom
