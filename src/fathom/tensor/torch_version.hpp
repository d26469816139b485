/// Everything that differs between the versions of libtorch that fathom works with, 1.13 to 2.15, and everything it uses of torch's
/// internals, which the next version may change.
///
///   NodePointer node = make_node<LossNode>(...);
///   if (has_listeners(*node)) ...
///   auto& state = optimizer.state()[state_key(parameter)];
#pragma once

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/torch.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <locale>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fathom {

/// std::shared_ptr<Node>, or c10::intrusive_ptr<Node> where torch counts inside the node.
using NodePointer = decltype(torch::autograd::Edge::function);

// Generic wherever a name does not exist in every version: a template looks up no name in a branch that is not taken.

template <class Node, class Pointer = NodePointer, class... Arguments>
Pointer make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {
    // torch's own deleter takes a long chain of nodes apart without recursion.
    return Pointer(new Node(std::forward<Arguments>(arguments)...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<Node>(std::forward<Arguments>(arguments)...);
  }
}

/// Does anybody want to know of the gradients that go through this node?
inline bool has_listeners(torch::autograd::Node& given) {
  const auto listened_to = [](auto& node) {
    if (!node.pre_hooks().empty() || !node.post_hooks().empty()) return true;
    if constexpr (requires { node.tensor_pre_hooks(); }) {
      if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty()) return true;
    }
    if constexpr (requires { node.tensor_post_acc_grad_hooks(); }) {
      if (node.tensor_post_acc_grad_hooks()) return true;
    }
    return false;
  };
  return listened_to(given);
}

/// ... or into a parameter, whose listeners are the tensor's?
inline bool has_listeners(torch::autograd::AccumulateGrad& leaf) {
  return has_listeners(static_cast<torch::autograd::Node&>(leaf)) ||
         !torch::autograd::impl::hooks(leaf.variable).empty();
}

/// Must a gradient be of the type of its tensor? Later versions let a tensor ask for another one.
inline bool has_gradient_of_its_type(const torch::Tensor& tensor) {
  const auto asks_for_its_own = [](const auto* meta) {
    if constexpr (requires { meta->grad_dtype_; }) {
      return !meta->grad_dtype_ && !meta->allow_grad_dtype_mismatch_;
    } else {
      return true;
    }
  };
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return !meta || asks_for_its_own(meta);
}

/// The lock under which a node of torch's works.
inline std::mutex& lock_of(torch::autograd::Node& node) {
  struct Access : torch::autograd::Node {
    static std::mutex& of(torch::autograd::Node& any) { return any.*&Access::mutex_; }
  };
  return Access::of(node);
}

/// The parameters that a module has registered itself. torch's own list comes with a name for each, which takes longer than lowering
/// a small field.
inline const auto& own_parameters(const torch::nn::Module& module) {
  struct Access : torch::nn::Module {
    static const auto& of(const torch::nn::Module& any) { return any.*&Access::parameters_; }
  };
  return Access::of(module);
}

/// A tensor with numbers yet to be written, made without two calls through torch's dispatcher.
inline torch::Tensor unfilled(torch::IntArrayRef sizes, torch::ScalarType type) {
  return at::detail::empty_cpu(sizes, type);
}

/// Is this tensor, with its numbers, known to nobody else, no part of a graph, and in memory that torch would take for a new one?
inline bool is_unshared(const torch::Tensor& tensor) {
  if (!tensor.defined() || tensor.use_count() != 1 || tensor.weak_use_count() != 1 || !tensor.has_storage() ||
      tensor.unsafeGetTensorImpl()->autograd_meta() || tensor.is_inference())
    return false;
  const c10::Storage& numbers = tensor.storage();
  return numbers.use_count() == 1 && numbers.allocator() == c10::GetCPUAllocator();
}

/// std::string up to torch 2.1, void* later.
using StateKey = std::remove_cvref_t<decltype(std::declval<torch::optim::Optimizer&>().state())>::key_type;

namespace torch_version {

inline void write_key(void* address, void*& key) { key = address; }

/// As a stream in the program's locale writes it, which is how torch makes its keys; without the stream where that makes no difference.
inline void write_key(void* address, std::string& key) {
  if (std::locale() != std::locale::classic()) {
    std::ostringstream written;
    written << address;
    key = written.str();
    return;
  }
  std::array<char, 2 + 2 * sizeof(address)> digits = {'0', 'x'};
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto end = std::to_chars(digits.data() + 2, digits.data() + digits.size(), number, 16).ptr;
  key.assign(digits.data(), end);
}

}  // namespace torch_version

/// Under which torch's optimisers keep the state of a parameter.
inline StateKey state_key(const torch::Tensor& parameter) {
  StateKey key = {};
  torch_version::write_key(parameter.unsafeGetTensorImpl(), key);
  return key;
}

}  // namespace fathom
