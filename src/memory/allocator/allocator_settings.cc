// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/allocator_settings.h"

#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "memory/allocator/settings_tokens.h"

namespace cufit::memory {
namespace {

struct Parsing {
  SettingsTokens& tokens;
  const VersionProfile& version;
  Settings& settings;
  std::string_view key;
};
using Parser = Result<bool> (*)(const Parsing&);

struct Key {
  const char* name;
  uint32_t since_minor;  // of torch 2; the first version of the span where it is known to appear
  Parser parse;
};

// Both sizes that bound splitting: above 20 MiB to torch 2.8, from the large segment size on later.
Result<uint64_t> split_bound(const Parsing& p) {
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(mib, p.tokens.number(p.key));
  const uint64_t bound = p.settings.large_segment_size / k_mib;
  const bool inclusive = p.version.settings_in_core;
  if (mib < bound || (mib == bound && !inclusive))
    return before.wrong(p.key,
                        format("must be {} {}", inclusive ? "at least" : "more than", bound));
  return std::min(mib, UINT64_MAX / k_mib) * k_mib;
}

Result<bool> max_split_size(const Parsing& p) {
  CUFIT_TRY(bytes, split_bound(p));
  p.settings.max_split_size = bytes;
  return true;
}

Result<bool> max_non_split_rounding(const Parsing& p) {
  CUFIT_TRY(bytes, split_bound(p));
  p.settings.max_non_split_rounding_size = bytes;
  return true;
}

Result<bool> garbage_collection(const Parsing& p) {
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(threshold, p.tokens.real(p.key));
  if (!(threshold > 0 && threshold < 1)) return before.wrong(p.key, "must lie between 0 and 1");
  p.settings.garbage_collection_threshold = threshold;
  return true;
}

Result<bool> memory_fraction(const Parsing& p) {
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(fraction, p.tokens.real(p.key));
  if (!(fraction >= 0 && fraction <= 1)) return before.wrong(p.key, "must be from 0 to 1");
  p.settings.per_process_memory_fraction = fraction;
  return true;
}

Result<bool> large_segment_size(const Parsing& p) {
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(mib, p.tokens.number(p.key));
  if (mib <= k_min_large_alloc / k_mib) return before.wrong(p.key, "must be more than 10");
  p.settings.large_segment_size = std::min(mib, UINT64_MAX / k_mib) * k_mib;
  return true;
}

// "[64:8,256:4,>:1]". Entries between two listed sizes keep 0; entries below the first listed one
// take its value.
Result<bool> roundup_list(const Parsing& p) {
  PowerOfTwoDivisions& table = p.settings.roundup_power2_divisions;
  size_t last = 0;
  bool first = true;
  while (!p.tokens.at("]")) {
    const SettingsTokens at_size = p.tokens;
    uint64_t size_mib = 0;  // 0: ">"
    if (p.tokens.at(">")) {
      p.tokens.take();
    } else {
      CUFIT_TRY(listed, p.tokens.number(p.key));
      if (!is_power_of_two(listed)) return at_size.wrong(p.key, "a size must be a power of two");
      size_mib = listed;
    }
    CUFIT_TRY(colon, p.tokens.expect(":", p.key));
    const SettingsTokens at_value = p.tokens;
    CUFIT_TRY(divisions, p.tokens.number(p.key));
    if (divisions != 0 && !is_power_of_two(divisions))
      return at_value.wrong(p.key, "divisions must be 0 or a power of two");
    if (size_mib == 0) {
      const size_t from = last + (p.version.settings_in_core ? 1 : 0);
      for (size_t i = from; i < table.size(); ++i) table[i] = divisions;
    } else {
      last = std::min<size_t>(floor_log2(size_mib), table.size() - 1);
      if (first) std::fill(table.begin(), table.begin() + static_cast<ptrdiff_t>(last), divisions);
      first = false;
      table[last] = divisions;
    }
    if (!p.tokens.at("]")) {
      CUFIT_TRY(comma, p.tokens.expect(",", p.key));
      (void)comma;
    }
    (void)colon;
  }
  p.tokens.take();
  return true;
}

Result<bool> roundup(const Parsing& p) {
  if (p.tokens.at("[")) {
    p.tokens.take();
    return roundup_list(p);
  }
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(divisions, p.tokens.number(p.key));
  if (!is_power_of_two(divisions)) return before.wrong(p.key, "must be a power of two");
  p.settings.roundup_power2_divisions.fill(divisions);
  return true;
}

Result<bool> backend(const Parsing& p) {
  if (!p.tokens.at("native") && !p.tokens.at("cudaMallocAsync") && !p.tokens.at("hipMallocAsync"))
    return p.tokens.wrong(p.key, "expected native or cudaMallocAsync");
  const std::string name(p.tokens.take());
  if (name != "native") p.settings.not_modelled.push_back("backend:" + name);
  return true;
}

Result<bool> expandable(const Parsing& p) {
  CUFIT_TRY(on, p.tokens.boolean(p.key));
  p.settings.expandable_segments = on;
  return true;
}

Result<bool> throw_on_oom(const Parsing& p) {
  CUFIT_TRY(on, p.tokens.boolean(p.key));
  p.settings.throw_on_cudamalloc_oom = on;
  return true;
}

// Reuse inside a capture depends on the graph's nodes, which no trace records.
Result<bool> capture_reuse(const Parsing& p) {
  CUFIT_TRY(on, p.tokens.boolean(p.key));
  if (on) p.settings.not_modelled.push_back(std::string(p.key) + ":True");
  return true;
}

// Without influence on where device memory is placed.
Result<bool> ignored_boolean(const Parsing& p) { return p.tokens.boolean(p.key); }

Result<bool> ignored_number(const Parsing& p) {
  CUFIT_TRY(value, p.tokens.number(p.key));
  (void)value;
  return true;
}

Result<bool> register_threads(const Parsing& p) {
  const SettingsTokens before = p.tokens;
  CUFIT_TRY(threads, p.tokens.number(p.key));
  if (!is_power_of_two(threads) || threads > 128)  // pinned_max_register_threads
    return before.wrong(p.key, "must be a power of two up to 128");
  return true;
}

const Key k_keys[] = {
    {"max_split_size_mb", 0, max_split_size},
    {"max_non_split_rounding_mb", 5, max_non_split_rounding},
    {"garbage_collection_threshold", 0, garbage_collection},
    {"roundup_power2_divisions", 0, roundup},
    {"expandable_segments", 1, expandable},
    {"large_segment_size_mb", 9, large_segment_size},
    {"per_process_memory_fraction", 8, memory_fraction},
    {"throw_on_cudamalloc_oom", 12, throw_on_oom},
    {"graph_capture_record_stream_reuse", 9, capture_reuse},
    {"backend", 0, backend},
    {"release_lock_on_cudamalloc", 0, ignored_boolean},
    {"release_lock_on_hipmalloc", 0, ignored_boolean},
    {"pinned_use_cuda_host_register", 0, ignored_boolean},
    {"pinned_use_hip_host_register", 0, ignored_boolean},
    {"pinned_num_register_threads", 0, register_threads},
    {"pinned_use_background_threads", 0, ignored_boolean},
    {"pinned_free_catch_all", 9, ignored_boolean},
    {"pinned_reserve_segment_size_mb", 9, ignored_number},
    {"pinned_max_round_threshold_mb", 9, ignored_number},
    {"pinned_max_cached_size_mb", 9, ignored_number},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : k_keys)
    if (name == key.name) return &key;
  return nullptr;
}

Error unknown_key(const SettingsTokens& tokens, std::string_view name) {
  std::vector<std::string> known;
  for (const Key& key : k_keys) known.push_back(key.name);
  const std::vector<std::string> near = nearest(name, known, 1);
  return fail(Code::usage,
              format("unknown allocator setting `{}` at byte {}{}", name, tokens.place(),
                     near.empty() ? "" : format(", did you mean `{}`?", near[0])));
}

}  // namespace

Result<Settings> parse_allocator_settings(std::string_view text, const VersionProfile& version) {
  Settings settings;
  SettingsTokens tokens(text);
  while (!tokens.done()) {
    const std::string name(tokens.peek());
    const Key* key = find_key(name);
    if (key == nullptr) return unknown_key(tokens, name);
    if (!version.at_least(2, key->since_minor))
      return fail(Code::usage, format("allocator setting `{}` at byte {} needs torch 2.{} or later",
                                      name, tokens.place(), key->since_minor));
    tokens.take();
    CUFIT_TRY(colon, tokens.expect(":", name));
    CUFIT_TRY(value, key->parse(Parsing{tokens, version, settings, name}));
    if (!tokens.done()) {
      CUFIT_TRY(comma, tokens.expect(",", name));
      (void)comma;
    }
    (void)colon;
    (void)value;
  }
  return settings;
}

std::vector<std::string_view> allocator_setting_keys() {
  std::vector<std::string_view> names;
  for (const Key& key : k_keys) names.emplace_back(key.name);
  return names;
}

}  // namespace cufit::memory
