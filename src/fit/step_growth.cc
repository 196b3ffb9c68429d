// SPDX-License-Identifier: Apache-2.0
#include "fit/step_growth.h"

#include <algorithm>

namespace cufit::fit {
namespace {

constexpr uint64_t k_least = uint64_t{1} << 20;
constexpr uint64_t k_alike = 64;  // a 64th more or less

// What is allocated at the end of each traced step.
std::vector<uint64_t> kept_by_step(const StepProgram& program, const std::vector<SizeAt>& sizes) {
  std::vector<uint64_t> of_storage(program.storages.size()), out;
  uint64_t live = 0;
  for (const StepEvent& event : program.events) {
    if (event.kind == StepEventKind::alloc) {
      of_storage[event.index] = sizes[event.size].point;
      live += of_storage[event.index];
    } else if (event.kind == StepEventKind::free) {
      live -= std::min(live, of_storage[event.index]);
    } else if (event.kind == StepEventKind::mark) {
      const auto mark = static_cast<TraceMark>(event.index);
      if (mark == TraceMark::after_steps || out.size() == program.traced_steps()) break;
      if (mark == TraceMark::step_ends) out.push_back(live);
    }
  }
  return out;
}

}  // namespace

uint64_t growth_per_step(const StepProgram& program, const std::vector<SizeAt>& sizes) {
  if (std::any_of(program.notes.begin(), program.notes.end(),
                  [&](const Note& note) { return program.text(note.kind) == "sizes_vary"; }))
    return 0;
  const std::vector<uint64_t> kept = kept_by_step(program, sizes);
  if (kept.size() < 3) return 0;
  const uint64_t first = kept[kept.size() - 3], second = kept[kept.size() - 2], last = kept.back();
  if (second < first + k_least || last < second + k_least) return 0;
  const uint64_t before = second - first, now = last - second;
  const uint64_t difference = before > now ? before - now : now - before;
  return difference <= now / k_alike ? now : 0;
}

}  // namespace cufit::fit
