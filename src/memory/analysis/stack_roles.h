// SPDX-License-Identifier: Apache-2.0
// What part of a training program a Python stack lies in, by the files and functions of torch and
// of the usual optimizer libraries.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/snapshot/snapshot.h"

namespace cufit::analysis {

enum class StackRole : uint8_t {
  not_recorded,
  no_python,  // recorded, and empty or C++ alone: the autograd thread
  optimizer,  // inside an optimizer's step
  zero_grad,
  module_move,  // Module.to, cuda, half ...: parameters and buffers on their way
  module_call,  // inside a module's forward
  other,
};

class StackRoles {
 public:
  explicit StackRoles(const memory::Snapshot& snapshot);
  StackRole operator[](uint32_t stack) const {
    return stack == memory::k_no_stack ? StackRole::not_recorded : roles_[stack];
  }
  bool any() const { return any_; }  // a stack with Python in it

 private:
  std::vector<StackRole> roles_;
  bool any_ = false;
};

}  // namespace cufit::analysis
