// SPDX-License-Identifier: Apache-2.0
#include "commands/progress.h"

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "host/process/this_process.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_quiet_bytes = 32u << 20;  // below this reading takes a blink

}  // namespace

Progress::Progress(std::string name)
    : name_(report::printable(name)), wanted_(host::is_terminal(host::Stream::err)) {}

Progress::~Progress() {
  if (shown_ != 0) std::fprintf(stderr, "\r%60s\r", "");
}

void Progress::show(uint64_t done, uint64_t total) {
  const uint64_t mib = done >> 20;
  if (!wanted_ || std::max(done, total) < k_quiet_bytes || mib < shown_ + 8) return;
  shown_ = mib;
  const std::string of = total == 0 ? "" : format(" / {}", total >> 20);
  std::fprintf(stderr, "\r%-36.36s %s%s MiB", name_.c_str(), std::to_string(mib).c_str(),
               of.c_str());
}

void Progress::show_count(uint64_t done, uint64_t total) {
  if (!wanted_) return;
  shown_ = 1;
  std::fprintf(stderr, "\r%-36.36s %s", name_.c_str(), format("{} / {}", done, total).c_str());
}

}  // namespace cufit::commands
