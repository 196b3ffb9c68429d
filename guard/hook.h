// SPDX-License-Identifier: Apache-2.0
// What every hook begins with. A hook that the driver reaches from inside another hook's call (or from its own code)
// goes straight through: what it does is part of a call that is charged already.
#pragma once

#include "charge.h"
#include "resolver.h"

namespace guard {

extern __thread int t_depth __attribute__((tls_model("initial-exec")));

class Call {
 public:
  explicit Call(const void* caller) : caller_(caller) {
    if (t_depth++ == 0 && !from_driver(caller)) all_ = state();
  }
  ~Call() { --t_depth; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  State* all() const { return all_; }  // null: straight through
  const void* caller() const { return caller_; }

 private:
  State* all_ = nullptr;
  const void* caller_;
};

}  // namespace guard

// `call` and `real`, or the answer of a driver that has no such function.
#define GUARD_BEGIN(hook, ...)                                      \
  ::guard::Call call(__builtin_return_address(0));                  \
  auto* real = ::guard::real_as<__VA_ARGS__>(::guard::hook_##hook); \
  if (!real) return ::guard::k_not_initialized
