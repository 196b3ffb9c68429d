// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_conflict.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "host/files/atomic_write.h"

namespace cufit::commands {
namespace {

using Clock = std::chrono::steady_clock;

// A question takes about a second with a warm cache. Whoever waits for an error waits no longer.
constexpr std::chrono::seconds k_longest{30};

class Questions {
 public:
  Questions(const host::Installer& uv, host::CompileRequest request, const std::string& file,
            host::Interrupts& interrupts)
      : uv_(uv), request_(std::move(request)), file_(file), interrupts_(interrupts) {
    request_.inputs = {file};
    request_.extras.clear();
    request_.constraints.clear();
  }

  // No solution, as far as the installer says so; any other failure ends the questions.
  bool unsolvable(const std::vector<std::string>& demands) {
    if (over()) return false;
    std::string lines;
    for (const std::string& demand : demands) lines += demand + "\n";
    if (!host::write_synced(file_, lines)) return !(ended_ = true);
    const Result<void> done = host::compile(uv_, request_, interrupts_);
    if (!done && done.error().code != Code::malformed) ended_ = true;
    return !done && !ended_;
  }
  bool over() const {
    return ended_ || interrupts_.caught() != 0 || Clock::now() - begun_ > k_longest;
  }

 private:
  const host::Installer& uv_;
  host::CompileRequest request_;
  const std::string& file_;
  host::Interrupts& interrupts_;
  Clock::time_point begun_ = Clock::now();
  bool ended_ = false;
};

}  // namespace

std::vector<std::string> package_conflict(const host::Installer& uv, host::CompileRequest request,
                                          std::vector<std::string> demands, const std::string& file,
                                          host::Interrupts& interrupts) {
  std::set<std::string> seen;
  std::erase_if(demands, [&](const std::string& one) { return !seen.insert(one).second; });
  Questions questions(uv, std::move(request), file, interrupts);
  if (!questions.unsolvable(demands)) return {};
  // Halves, quarters, ... and at last one by one: whatever can go, goes for good.
  for (size_t size = (demands.size() + 1) / 2; size > 0; size = size == 1 ? 0 : (size + 1) / 2) {
    for (size_t at = 0; at < demands.size() && demands.size() > 1;) {
      std::vector<std::string> fewer = demands;
      const size_t end = std::min(at + size, fewer.size());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                  fewer.begin() + static_cast<std::ptrdiff_t>(end));
      if (!fewer.empty() && questions.unsolvable(fewer))
        demands = std::move(fewer);
      else
        at += size;
      if (questions.over()) return {};
    }
  }
  return demands;
}

}  // namespace cufit::commands
