// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_conf.h"

#include <optional>
#include <string>

#include "base/ascii.h"
#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

// The next part up to a comma that is not in brackets; `list` loses it.
std::string_view next_part(std::string_view& list) {
  int depth = 0;
  size_t at = 0;
  for (; at < list.size(); ++at) {
    if (list[at] == '[') ++depth;
    if (list[at] == ']') --depth;
    if (list[at] == ',' && depth <= 0) break;
  }
  const std::string_view out = list.substr(0, at);
  list.remove_prefix(std::min(list.size(), at + 1));
  return out;
}

// "001-128" or "7": the digits' width counts where a range has zeros in front.
bool is_in_range(std::string_view range, std::string_view digits) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  if (dash == std::string_view::npos) return range == digits;
  const std::optional<uint64_t> low = parse_uint(first), high = parse_uint(range.substr(dash + 1)),
                                number = parse_uint(digits);
  if (!low || !high || !number || *number < *low || *number > *high) return false;
  return digits.size() == std::max(first.size(), std::to_string(*number).size());
}

bool matches(std::string_view part, std::string_view node) {
  const size_t open = part.find('['), close = part.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return part == node;
  const std::string_view before = part.substr(0, open), after = part.substr(close + 1);
  if (node.size() < before.size() + after.size() || node.substr(0, before.size()) != before ||
      node.substr(node.size() - after.size()) != after)
    return false;
  const std::string_view digits =
      node.substr(before.size(), node.size() - before.size() - after.size());
  for (std::string_view range : split(part.substr(open + 1, close - open - 1), ','))
    if (is_in_range(range, digits)) return true;
  return false;
}

// "gpu:h200:8(S:0-1),shard:64": the count is the last number of an entry; "gpu" alone is one.
void take_gres(std::string_view value, SlurmNode& node) {
  uint64_t gpus = 0, shards = 0;
  for (std::string_view entry : split(value, ',')) {
    entry = entry.substr(0, entry.find('('));
    const size_t last = entry.rfind(':');
    const std::optional<uint64_t> number =
        last == std::string_view::npos ? std::nullopt : parse_uint(entry.substr(last + 1));
    const std::string name = lower(std::string(entry.substr(0, entry.find(':'))));
    const uint64_t count = std::min<uint64_t>(number.value_or(1), 1'000'000);
    if (name == "gpu") gpus += count;
    if (name == "shard") shards += count;
  }
  if (gpus != 0) node.gpus = gpus;
  if (shards != 0) node.shards = shards;
}

void take_line(std::string_view line, std::string_view wanted, SlurmNode& fallback,
               SlurmNode& node) {
  line = trim(line.substr(0, line.find('#')));
  std::string_view names, gres;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line = trim(line.substr(word.size()));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key = lower(std::string(word.substr(0, equals)));
    if (key == "nodename") names = word.substr(equals + 1);
    if (key == "gres") gres = word.substr(equals + 1);
  }
  if (names == "DEFAULT") take_gres(gres, fallback);
  if (!names.empty() && is_in_hostlist(names, wanted)) {
    node = fallback;
    take_gres(gres, node);
  }
}

}  // namespace

bool is_in_hostlist(std::string_view list, std::string_view node) {
  if (node.empty()) return false;
  while (!list.empty())
    if (matches(next_part(list), node)) return true;
  return false;
}

SlurmNode parse_slurm_node(std::string_view text, std::string_view node) {
  SlurmNode fallback, out;
  std::string whole;  // of a line that goes on
  for (std::string_view line : split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool goes_on = !line.empty() && line.back() == '\\';
    whole += goes_on ? line.substr(0, line.size() - 1) : line;
    if (goes_on) continue;
    take_line(whole, node, fallback, out);
    whole.clear();
  }
  return out;
}

}  // namespace cufit::formats
