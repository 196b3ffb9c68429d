// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_conf.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr int k_most_brackets = 4;    // of one name: what is tried grows with each
constexpr size_t k_most_digits = 10;  // that one stands for

// The next part up to a comma that is not in brackets; `list` loses it.
std::string_view next_part(std::string_view& list) {
  int depth = 0;
  size_t at = 0;
  for (; at < list.size(); ++at) {
    if (list[at] == '[' || list[at] == '(') ++depth;
    if (list[at] == ']' || list[at] == ')') --depth;
    if (list[at] == ',' && depth <= 0) break;
  }
  const std::string_view out = list.substr(0, at);
  list.remove_prefix(std::min(list.size(), at + 1));
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

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

bool is_in_ranges(std::string_view ranges, std::string_view digits) {
  for (std::string_view range : split(ranges, ','))
    if (is_in_range(range, digits)) return true;
  return false;
}

// "rack[1-2]n[01-16]": each bracket stands for digits of the name.
bool matches(std::string_view part, std::string_view node, int brackets = 0) {
  const size_t open = part.find('[');
  if (open == std::string_view::npos) return part == node;
  const size_t close = part.find(']', open);
  if (close == std::string_view::npos || brackets == k_most_brackets) return false;
  if (node.size() < open || node.substr(0, open) != part.substr(0, open)) return false;
  const std::string_view ranges = part.substr(open + 1, close - open - 1);
  for (size_t end = open; end < node.size() && end < open + k_most_digits && is_digit(node[end]);
       ++end)
    if (is_in_ranges(ranges, node.substr(open, end + 1 - open)) &&
        matches(part.substr(close + 1), node.substr(end + 1), brackets + 1))
      return true;
  return false;
}

// "64", "1K"; nullopt = no count.
std::optional<uint64_t> count_of(std::string_view text) {
  uint64_t scale = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'k')) scale = 1024;
  if (scale != 1) text.remove_suffix(1);
  const std::optional<uint64_t> number = parse_uint(text);
  if (!number) return std::nullopt;
  return std::min<uint64_t>(*number, 1'000'000) * scale;
}

// "gpu:h200:8(S:0-1),shard:64": the count is the last number of an entry; "gpu" alone is one.
void take_gres(std::string_view value, SlurmNode& node) {
  uint64_t gpus = 0, shards = 0;
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  while (!value.empty()) {
    std::string_view entry = trim(next_part(value));
    entry = entry.substr(0, entry.find('('));
    const size_t last = entry.rfind(':');
    const std::optional<uint64_t> number =
        last == std::string_view::npos ? std::nullopt : count_of(entry.substr(last + 1));
    const std::string name = lower(std::string(entry.substr(0, entry.find(':'))));
    const uint64_t count = number.value_or(1);
    if (name == "gpu") gpus += count;
    if (name == "shard") shards += count;
  }
  if (gpus != 0) node.gpus = gpus;
  if (shards != 0) node.shards = shards;
}

// Without what follows a `#` that has no backslash before it.
std::string_view without_comment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
    if (at == 0 || line[at - 1] != '\\') return line.substr(0, at);
  return line;
}

// Blanks behind the backslash do not count; two of them are one that was written.
bool goes_on(std::string_view& line) {
  const std::string_view text = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  size_t slashes = 0;
  while (slashes < text.size() && text[text.size() - 1 - slashes] == '\\') ++slashes;
  if (slashes % 2 == 0) return false;
  line = text.substr(0, text.size() - 1);
  return true;
}

void take_line(std::string_view line, std::string_view wanted, SlurmNode& fallback,
               SlurmNode& node) {
  line = trim(line);
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
  if (lower(std::string(names.substr(0, 8))) == "default") take_gres(gres, fallback);
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
    line = without_comment(line);
    const bool more = goes_on(line);
    whole += line;
    if (more) continue;
    take_line(whole, node, fallback, out);
    whole.clear();
  }
  take_line(whole, node, fallback, out);  // the last line went on, and nothing came
  return out;
}

std::vector<SlurmPiece> slurm_pieces(std::string_view text) {
  std::vector<SlurmPiece> out;
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim(without_comment(text.substr(at, end - at)));
    const size_t word = std::min(line.find_first_of(" \t"), line.size());
    if (lower(std::string(line.substr(0, word))) == "include" && word < line.size()) {
      out.push_back({text.substr(begin, at - begin), std::string(trim(line.substr(word)))});
      begin = std::min(end + 1, text.size());
    }
    at = end + 1;
  }
  if (begin < text.size() || out.empty()) out.push_back({text.substr(begin), {}});
  return out;
}

}  // namespace cufit::formats
