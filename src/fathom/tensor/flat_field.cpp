#include "fathom/tensor/flat_field.hpp"

#include <cmath>
#include <numeric>

#include "fathom/support/error.hpp"

namespace fathom {

namespace {

void check_rate(const Tensor& rate, const Tensor& z) {
  require(rate.defined(), "the field must return a tensor like the state, got an undefined one");
  require(rate.sizes() == z.sizes(), "the field must return the shape of the state ", z.sizes(), ", got ",
          rate.sizes());
  require(rate.scalar_type() == z.scalar_type(), "the field must return the type of the state ",
          z.scalar_type(), ", got ", rate.scalar_type(), "; convert parameters and state to one type");
}

/// Grows with every change in place of the tensor.
std::int64_t changes_of(const Tensor& tensor) {
  return !tensor.defined() || tensor.is_inference() ? 0
                                                    : std::int64_t(tensor._version());  // not counted there
}

/// Evaluates a field, which must leave what it is given as it is.
class Untouched {
 public:
  explicit Untouched(const VectorField& field) : read_(field.parameters) {
    read_.insert(read_.end(), field.constants.begin(), field.constants.end());
  }

  template <class Work> Tensor after(const Tensor& s, const Tensor& z, Work&& work) const {
    const std::int64_t of_state = changes_of(s) + changes_of(z), of_others = changes_of_all();
    Tensor value = work();
    require(changes_of(s) + changes_of(z) == of_state,
            "the field must not change its depth or state in place; use operations whose names do not end in "
            "`_`, "
            "or work on a copy, `z.clone()`");
    require(changes_of_all() == of_others,
            "the field must not change a parameter or its input x in place; compute a new tensor instead");
    return value;
  }

 private:
  std::int64_t changes_of_all() const {
    std::int64_t changes = 0;
    for (const Tensor& tensor : read_) changes += changes_of(tensor);
    return changes;
  }

  std::vector<Tensor> read_;
};

std::vector<std::int64_t> loss_shape(const VectorField& field, const Tensor& z0) {
  std::vector<std::int64_t> shape;
  if (z0.dim() > 0) shape.push_back(z0.size(0));
  if (field.running_terms != 1) shape.push_back(field.running_terms);
  return shape;
}

Tensor checked_loss(const Tensor& loss, const Tensor& z, const std::vector<std::int64_t>& wanted) {
  require(loss.defined() && loss.sizes() == wanted, "the running loss must return one value a sample, shape ",
          c10::IntArrayRef(wanted), ", got ", loss.defined() ? loss.sizes() : c10::IntArrayRef{},
          "; reduce the other axes, not the first");
  return loss.to(z.scalar_type());
}

}  // namespace

std::int64_t Part::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t FlatField::size() const {
  std::int64_t total = 0;
  for (const Part& part : parts) total += part.size();
  return total;
}

FlatField flatten(const VectorField& field, const Tensor& z0) {
  require(bool(field.rate), "the field needs a `rate` function, got none");
  FlatField flat{.rate = {}, .parts = {}, .parameters = field.parameters, .break_points = field.break_points};
  const std::vector<std::int64_t> shape = z0.sizes().vec();
  flat.parts.push_back({.name = "z", .shape = shape});
  if (!field.running_loss) {
    flat.rate = [rate = field.rate, untouched = Untouched(field), shape](const Tensor& s, const Tensor& y) {
      const Tensor z = y.reshape(shape);
      const Tensor value = untouched.after(s, z, [&] { return rate(s, z); });
      check_rate(value, z);
      return value.reshape(-1);
    };
    return flat;
  }
  flat.parts.push_back({.name = "running loss", .shape = loss_shape(field, z0)});
  flat.rate = [field, untouched = Untouched(field), parts = flat.parts](const Tensor& s, const Tensor& y) {
    const Tensor z = unpack(y, parts, 0);
    return untouched.after(s, z, [&] {
      const Tensor value = field.rate(s, z);
      check_rate(value, z);
      const std::int64_t of_rate = changes_of(value);
      const Tensor loss = checked_loss(field.running_loss(s, z, value), z, parts[1].shape);
      require(changes_of(value) == of_rate, "the running loss must not change the rate in place");
      return pack({value, loss});
    });
  };
  return flat;
}

Tensor pack(const std::vector<Tensor>& values) {
  std::vector<Tensor> flat;
  flat.reserve(values.size());
  for (const Tensor& value : values) flat.push_back(value.reshape(-1));
  return flat.size() == 1 ? flat.front() : at::cat(flat);
}

Tensor unpack(const Tensor& flat, const std::vector<Part>& parts, std::size_t place) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < place; ++i) offset += parts[i].size();
  std::vector<std::int64_t> shape = flat.sizes().vec();
  shape.pop_back();
  shape.insert(shape.end(), parts[place].shape.begin(), parts[place].shape.end());
  return flat.narrow(-1, offset, parts[place].size()).reshape(shape);
}

std::string first_non_finite(const Tensor& flat, const std::vector<Part>& parts) {
  for (std::size_t place = 0; place < parts.size(); ++place) {
    const Tensor values = unpack(flat, parts, place).detach();
    const Tensor bad = at::isfinite(values).logical_not().reshape(-1).nonzero();
    if (bad.size(0) == 0) continue;
    std::int64_t index = bad[0][0].item<std::int64_t>();
    const double value = values.reshape(-1)[index].item<double>();
    std::vector<std::int64_t> position(parts[place].shape.size());
    for (std::size_t axis = position.size(); axis-- > 0;) {
      position[axis] = index % parts[place].shape[axis];
      index /= parts[place].shape[axis];
    }
    const std::string shown =
        std::isnan(value) ? "nan" : text(value);  // a NaN may carry a sign that means nothing
    return text(parts[place].name, c10::IntArrayRef(position), " = ", shown);
  }
  return {};
}

}  // namespace fathom
