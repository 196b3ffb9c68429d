// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/settings_text.h"

#include "base/format.h"

namespace cufit::memory {
namespace {

// In the order in which people name them first. max_split_size_mb and expandable_segments do not
// go together well (pytorch/pytorch#119452), and garbage_collection_threshold acts only under a
// memory fraction.
constexpr std::string_view k_usual[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "max_split_size_mb:128,garbage_collection_threshold:0.8",
    "expandable_segments:True,roundup_power2_divisions:8",
};

bool all_equal(const PowerOfTwoDivisions& table) {
  for (const uint64_t divisions : table)
    if (divisions != table[0]) return false;
  return true;
}

// "[1:4,2:4,>:8]": every entry by its key in MiB.
std::string divisions_text(const PowerOfTwoDivisions& table) {
  if (all_equal(table)) return std::to_string(table[0]);
  std::vector<std::string> parts;
  for (size_t i = 0; i + 1 < table.size(); ++i)
    parts.push_back(format("{}:{}", uint64_t{1} << i, table[i]));
  parts.push_back(format(">:{}", table.back()));
  return "[" + join(parts, ",") + "]";
}

}  // namespace

std::span<const std::string_view> usual_settings() { return k_usual; }

std::string settings_text(const Settings& settings) {
  std::vector<std::string> parts;
  // Before the sizes that it bounds.
  if (settings.large_segment_size != k_large_buffer)
    parts.push_back(format("large_segment_size_mb:{}", settings.large_segment_size / k_mib));
  if (settings.expandable_segments) parts.emplace_back("expandable_segments:True");
  if (settings.max_split_size != k_no_max_split)
    parts.push_back(format("max_split_size_mb:{}", settings.max_split_size / k_mib));
  if (settings.max_non_split_rounding_size != k_large_buffer)
    parts.push_back(
        format("max_non_split_rounding_mb:{}", settings.max_non_split_rounding_size / k_mib));
  if (settings.garbage_collection_threshold > 0)
    parts.push_back(
        format("garbage_collection_threshold:{}", settings.garbage_collection_threshold));
  if (!all_equal(settings.roundup_power2_divisions) || settings.roundup_power2_divisions[0] > 1)
    parts.push_back("roundup_power2_divisions:" +
                    divisions_text(settings.roundup_power2_divisions));
  if (settings.per_process_memory_fraction)
    parts.push_back(
        format("per_process_memory_fraction:{}", *settings.per_process_memory_fraction));
  if (settings.throw_on_cudamalloc_oom) parts.emplace_back("throw_on_cudamalloc_oom:True");
  parts.insert(parts.end(), settings.not_modelled.begin(), settings.not_modelled.end());
  return join(parts, ",");
}

std::string settings_from_option(std::string_view text) {
  std::string out;
  int depth = 0;
  bool in_key = true;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    const bool separates = c == '=' && (in_key || depth > 0);
    if (c == ',' && depth == 0) in_key = true;
    if (c == '=' || c == ':') in_key = false;
    out += separates ? ':' : c;
  }
  return out;
}

}  // namespace cufit::memory
