// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/two_programs.h"

#include <algorithm>
#include <set>

#include "fit/answer/plan_variants.h"
#include "fit/answer/ranks.h"

namespace cufit::fit {
namespace {

using formats::StorageCategory;
using formats::TraceEvent;
using formats::TraceEventKind;
using formats::TraceEvents;
using formats::TraceSite;

// "train.py" of "src/train.py:57": paths go by the folder in which a program was started.
std::string_view file_name(std::string_view source) {
  source = source.substr(0, source.rfind(':'));
  return source.substr(source.rfind('/') + 1);  // npos + 1: all of it
}

std::set<std::string_view> users_files(const TraceEvents& trace) {
  std::set<std::string_view> out;
  for (const TraceSite& site : trace.sites)
    if (const std::string& source = trace.texts[site.source]; !source.empty())
      out.insert(file_name(source));
  return out;
}

struct Weights {
  std::multiset<uint64_t> bytes;
  std::set<std::string_view> lines;  // of the user's, at which they are made
};

Weights weights(const TraceEvents& trace) {
  Weights out;
  for (const TraceEvent& event : trace.events) {
    if (event.kind != TraceEventKind::alloc ||
        trace.categories[event.index] != StorageCategory::parameter)
      continue;
    out.bytes.insert(event.bytes);
    const std::string& source = trace.texts[trace.sites[event.site].source];
    if (!source.empty()) out.lines.insert(std::string_view(source).substr(source.rfind('/') + 1));
  }
  return out;
}

// False, too, where one of them has nothing.
bool nothing_in_common(const std::set<std::string_view>& a, const std::set<std::string_view>& b) {
  return !a.empty() && !b.empty() &&
         std::none_of(a.begin(), a.end(), [&](std::string_view one) { return b.count(one) != 0; });
}

// One rank as it is: others may run other lines of the program's files, and hold other weights.
bool of_one_rank(const TraceEvents& a, const TraceEvents& b) {
  return rank_of(a) == rank_of(b) && switches_of(a).empty() && switches_of(b).empty();
}

std::optional<TwoPrograms> apart(const TraceEvents& a, const TraceEvents& b) {
  const std::string_view name = a.fact("program"), other = b.fact("program");
  if (!name.empty() && !other.empty() && name != other)
    return TwoPrograms{0, std::string(name), std::string(other)};
  if (!of_one_rank(a, b)) return std::nullopt;
  const std::set<std::string_view> files = users_files(a), others = users_files(b);
  if (nothing_in_common(files, others))
    return TwoPrograms{0, std::string(*files.begin()), std::string(*others.begin())};
  if (world_of(a) != world_of(b)) return std::nullopt;  // weights are dealt out otherwise
  const Weights mine = weights(a), its = weights(b);
  if (mine.bytes != its.bytes && nothing_in_common(mine.lines, its.lines)) return TwoPrograms{};
  return std::nullopt;
}

}  // namespace

std::optional<TwoPrograms> two_programs(std::span<const TraceEvents> traces) {
  for (size_t i = 1; i < traces.size(); ++i)
    if (std::optional<TwoPrograms> found = apart(traces[0], traces[i])) {
      found->other = i;
      return found;
    }
  return std::nullopt;
}

}  // namespace cufit::fit
