// SPDX-License-Identifier: Apache-2.0
#include "formats/system/slurm_nodes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_slurm_nodes = 65536, k_most_gpu_types = 64, k_most_slurm_word = 256;
constexpr size_t k_most_partitions = 4096;
constexpr uint64_t k_most_of_a_gres = 1'000'000, k_most_gpus_of_node = 1024;

// What a command line takes as one word of --gres.
bool is_plain_type(std::string_view text) {
  return text.size() <= k_most_slurm_word &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+") ==
             std::string_view::npos;
}

struct GresPart {
  std::string_view name, type, detail;  // detail: "IDX:0-1", "S:0-1", "0/8,3/8"
  uint64_t count = 0;
};

// "gpu:h200:8(S:0-1)" as gpu, h200, 8; "shard:64"; "gpu" is one; "shard:(null):1" has no type.
std::optional<GresPart> gres_part(std::string_view text) {
  constexpr std::string_view k_no_type = ":(null)";
  GresPart out;
  const size_t none = text.find(k_no_type);
  const std::string_view before = text.substr(0, none);
  if (none != std::string_view::npos) text.remove_prefix(none + k_no_type.size());
  const size_t open = text.find('(');
  if (open != std::string_view::npos)
    out.detail = text.substr(open + 1, text.rfind(')') - std::min(open + 1, text.rfind(')')));
  const std::vector<std::string_view> parts = split(text.substr(0, open), ':');
  out.name = none == std::string_view::npos ? parts[0] : before;
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
    if (part.name != "gpu" || !is_plain_type(part.type) || out.gpus.size() >= k_most_gpu_types)
      continue;
    // One type stands there several times where its GPUs lie at several sockets.
    const auto known =
        std::find_if(out.gpus.begin(), out.gpus.end(),
                     [&](const SlurmGpuType& type) { return type.type == part.type; });
    if (known == out.gpus.end())
      out.gpus.push_back({std::string(part.type), part.count});
    else
      known->count += part.count;
  }
}

// "0-1,3" of "IDX:0-1,3": GPUs of which shards are taken.
void take_shard_gpus(std::string_view list, SlurmNodeGres& out) {
  for (const std::string_view part : split(list, ',')) {
    const size_t dash = part.find('-');
    const std::optional<uint64_t> first = parse_uint(part.substr(0, dash));
    const std::optional<uint64_t> last =
        dash == std::string_view::npos ? first : parse_uint(part.substr(dash + 1));
    if (!first || !last || *last >= k_most_gpus_of_node) continue;
    for (uint64_t gpu = *first; gpu <= *last; ++gpu)
      out.shards_of[static_cast<uint32_t>(gpu)] = {1, 0};
  }
}

// "0/8,3/8": of each GPU.
void take_shard_counts(std::string_view list, SlurmNodeGres& out) {
  uint32_t gpu = 0;
  for (const std::string_view part : split(list, ',')) {
    const size_t slash = part.find('/');
    if (slash == std::string_view::npos || gpu >= k_most_gpus_of_node) return;
    const std::optional<uint64_t> taken = parse_uint(part.substr(0, slash));
    const std::optional<uint64_t> there = parse_uint(part.substr(slash + 1));
    if (!taken || !there) return;
    if (*taken > 0) out.shards_of[gpu] = {*taken, *there};
    ++gpu;
  }
}

void take_used(std::string_view value, SlurmNodeGres& out) {
  for (const GresPart& part : gres_parts(value)) {
    if (part.name == "shard") {
      out.shards_taken = std::min(out.shards_taken + part.count, k_most_of_a_gres);
      if (part.count > 0 && starts_with(part.detail, "IDX:"))
        take_shard_gpus(part.detail.substr(4), out);
      else
        take_shard_counts(part.detail, out);
    }
    if (part.name != "gpu") continue;
    out.gpus_taken = std::min(out.gpus_taken + part.count, k_most_of_a_gres);
    for (SlurmGpuType& type : out.gpus)
      if (type.type == part.type) type.taken += part.count;
  }
}

// Calls `use` with each key of a line and its value, where the key stands first.
void with_each_key(std::string_view line,
                   const std::function<void(std::string_view, std::string_view)>& use) {
  std::set<std::string_view> seen;
  for (std::string_view rest = line; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    if (seen.insert(word.substr(0, equals)).second)
      use(word.substr(0, equals), word.substr(equals + 1));
  }
}

SlurmNodeGres slurm_node(std::string_view line) {
  SlurmNodeGres node;
  std::string_view used;
  with_each_key(line, [&](std::string_view key, std::string_view value) {
    if (key == "NodeName" && value.size() <= k_most_slurm_word) node.name = std::string(value);
    if (key == "State" && value.size() <= k_most_slurm_word) node.state = std::string(value);
    if (key == "Gres") take_gres(value, node);
    if (key == "GresUsed") used = value;
    if (key != "Partitions") return;
    for (const std::string_view name : split(value, ','))
      if (!name.empty() && is_plain_type(name) && node.partitions.size() < k_most_gpu_types)
        node.partitions.emplace_back(name);
  });
  take_used(used, node);  // what it is of stands in Gres
  return node;
}

}  // namespace

uint64_t SlurmNodeGres::gpu_count() const {
  uint64_t out = 0;
  for (const SlurmGpuType& type : gpus) out += type.count;
  return out;
}

// "IDLE+DRAIN", "DOWN*"; a node that was switched off to save power is started for a job.
bool SlurmNodeGres::takes_jobs() const {
  constexpr std::string_view k_none[] = {"DRAIN", "DOWN",           "FAIL",  "MAINT", "REBOOT",
                                         "ERROR", "NOT_RESPONDING", "BLOCK", "FUTURE"};
  for (const std::string_view word : split(state, '+'))
    for (const std::string_view none : k_none)
      if (starts_with(word, none)) return false;
  return true;
}

std::vector<SlurmNodeGres> parse_slurm_nodes(std::string_view text) {
  std::vector<SlurmNodeGres> out;
  std::unordered_set<std::string> names;
  for (const std::string_view line : split_lines(text)) {
    if (out.size() >= k_most_slurm_nodes) break;
    if (!starts_with(line, "NodeName=")) continue;
    SlurmNodeGres node = slurm_node(line);
    if (!node.name.empty() && names.insert(node.name).second) out.push_back(std::move(node));
  }
  return out;
}

std::vector<SlurmPartition> parse_slurm_partitions(std::string_view text) {
  std::vector<SlurmPartition> out;
  for (const std::string_view line : split_lines(text)) {
    if (out.size() >= k_most_partitions) break;
    if (!starts_with(line, "PartitionName=")) continue;
    SlurmPartition partition;
    with_each_key(line, [&](std::string_view key, std::string_view value) {
      if (key == "PartitionName") partition.name = std::string(value);
      if (key == "Default") partition.is_default = value == "YES";
      if (key == "State") partition.is_up = value == "UP";
    });
    if (!partition.name.empty() && is_plain_type(partition.name))
      out.push_back(std::move(partition));
  }
  return out;
}

}  // namespace cufit::formats
