// SPDX-License-Identifier: Apache-2.0
// What `cufit fit` says on stderr while it traces, in lines: a trace that begins, where the program
// is every half minute, and how long it all still takes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "commands/context.h"
#include "commands/fit/time_left.h"
#include "host/python/traced_run.h"

namespace cufit::commands {

class FitProgress {
 public:
  explicit FitProgress(const Context& context) : context_(context) {}

  void say(const char* key, const std::map<std::string, std::string>& args) const;
  void say_trace(std::optional<uint64_t> batch, uint64_t steps) const;
  // A variant of the program: number `number` of `count`, each of so many traces, so many at once.
  void begin_variant(uint64_t number, uint64_t count, const std::string& switches,
                     uint64_t traces, uint64_t at_once);
  void begin_trace(uint64_t steps, bool last);
  void saw(double seconds, const host::TraceProgress& progress);
  void ended(double seconds);

 private:
  const Context& context_;
  TimeLeft of_trace_;
  TracesLeft of_variants_;
  uint64_t number_ = 0, count_ = 0;  // of variants; 0: none is traced
  uint64_t left_ = 0, at_once_ = 1;  // of their traces
};

}  // namespace cufit::commands
