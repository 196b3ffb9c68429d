// SPDX-License-Identifier: Apache-2.0
#include "memory/analysis/stack_roles.h"

#include "base/format.h"

#include <string_view>

namespace cufit::analysis {
namespace {

using memory::Snapshot;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// torch/optim/adamw.py, apex/optimizers/, bitsandbytes/optim/, deepspeed/runtime/zero/stage3.py,
// transformers/optimization.py.
bool is_optimizer_file(std::string_view file) {
  return contains(file, "/optim/") || contains(file, "/optimizers/") ||
         contains(file, "deepspeed/runtime/zero/") ||
         ends_with(file, "transformers/optimization.py");
}

StackRole role_of(const Snapshot& snapshot, const memory::Frame& frame) {
  const std::string_view file = snapshot.text(frame.filename), name = snapshot.text(frame.name);
  const bool is_module = ends_with(file, "torch/nn/modules/module.py");
  if (name == "zero_grad" && (is_module || is_optimizer_file(file))) return StackRole::zero_grad;
  if (name == "step" && is_optimizer_file(file)) return StackRole::optimizer;
  if (is_module && name == "_apply") return StackRole::module_move;
  if (is_module && name == "_call_impl") return StackRole::module_call;
  return StackRole::other;
}

// Of several the one that says most: a zero_grad inside an optimizer's step is part of the step.
bool says_more(StackRole role, StackRole than) {
  return static_cast<uint8_t>(role) < static_cast<uint8_t>(than);
}

}  // namespace

StackRoles::StackRoles(const Snapshot& snapshot) {
  std::vector<StackRole> frames(snapshot.stacks.frame_count());
  for (uint32_t i = 0; i < frames.size(); ++i)
    frames[i] = role_of(snapshot, snapshot.stacks.frame(i));
  roles_.assign(snapshot.stacks.size(), StackRole::other);
  for (uint32_t i = 0; i < roles_.size(); ++i)
    for (const uint32_t frame : snapshot.python_frames(i))
      if (says_more(frames[frame], roles_[i])) roles_[i] = frames[frame];
  roles_[memory::k_empty_stack] = StackRole::no_python;
  // A stack of C++ alone is that of a thread without Python.
  for (uint32_t i = 0; i < roles_.size(); ++i) {
    const uint32_t python = snapshot.python_stack(i);
    if (python == memory::k_empty_stack) roles_[i] = StackRole::no_python;
    any_ = any_ || python != memory::k_empty_stack;
  }
}

}  // namespace cufit::analysis
