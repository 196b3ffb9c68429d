// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_nodes.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_slurm_nodes = 65536, k_most_gpu_types = 64, k_most_slurm_word = 256;
constexpr uint64_t k_most_of_a_gres = 1'000'000;

// What a command line takes as one word of --gres.
bool is_plain_type(std::string_view text) {
  return text.size() <= k_most_slurm_word &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+") ==
             std::string_view::npos;
}

struct GresPart {
  std::string_view name, type;
  uint64_t count = 0;
};

// "gpu:h200:8(S:0-1)" as gpu, h200, 8; "shard:64"; "gpu" is one.
std::optional<GresPart> gres_part(std::string_view text) {
  text = text.substr(0, text.find('('));
  const std::vector<std::string_view> parts = split(text, ':');
  GresPart out;
  out.name = parts[0];
  if (parts.size() == 1) {
    out.count = 1;
    return out;
  }
  const std::optional<uint64_t> count = parse_uint(parts.back());
  if (!count) {  // "gpu:h200": one of that type
    out.type = parts[1];
    out.count = 1;
    return out;
  }
  if (*count > k_most_of_a_gres) return std::nullopt;
  out.count = *count;
  if (parts.size() > 2) out.type = parts[1];
  return out;
}

// Commas inside brackets, "(IDX:0-1,3)", part nothing.
std::vector<GresPart> gres_parts(std::string_view text) {
  std::vector<GresPart> out;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? ',' : text[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (i < text.size() && (c != ',' || depth > 0)) continue;
    if (const std::optional<GresPart> part = gres_part(text.substr(begin, i - begin)))
      out.push_back(*part);
    begin = i + 1;
  }
  return out;
}

void take_gres(std::string_view value, SlurmNodeGres& out) {
  for (const GresPart& part : gres_parts(value)) {
    if (part.name == "shard") out.shards = std::min(out.shards + part.count, k_most_of_a_gres);
    if (part.name == "gpu" && is_plain_type(part.type) && out.gpus.size() < k_most_gpu_types)
      out.gpus.push_back({std::string(part.type), part.count});
  }
}

void take_used(std::string_view value, SlurmNodeGres& out) {
  for (const GresPart& part : gres_parts(value)) {
    if (part.name == "shard")
      out.shards_taken = std::min(out.shards_taken + part.count, k_most_of_a_gres);
    if (part.name == "gpu")
      out.gpus_taken = std::min(out.gpus_taken + part.count, k_most_of_a_gres);
  }
}

}  // namespace

uint64_t SlurmNodeGres::gpu_count() const {
  uint64_t out = 0;
  for (const SlurmGpuType& type : gpus) out += type.count;
  return out;
}

std::vector<SlurmNodeGres> parse_slurm_nodes(std::string_view text) {
  std::vector<SlurmNodeGres> out;
  std::unordered_set<std::string> names;
  for (const std::string_view line : split_lines(text)) {
    if (out.size() >= k_most_slurm_nodes) break;
    if (!starts_with(line, "NodeName=")) continue;
    SlurmNodeGres node;
    bool has_gres = false, has_used = false;
    for (std::string_view rest = line; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
      if (key == "NodeName" && node.name.empty() && value.size() <= k_most_slurm_word)
        node.name = std::string(value);
      if (key == "Gres" && !has_gres) {
        has_gres = true;
        take_gres(value, node);
      }
      if (key == "GresUsed" && !has_used) {
        has_used = true;
        take_used(value, node);
      }
    }
    if (!node.name.empty() && names.insert(node.name).second) out.push_back(std::move(node));
  }
  return out;
}

}  // namespace cufit::formats
