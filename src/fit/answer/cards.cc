// SPDX-License-Identifier: Apache-2.0
#include "fit/answer/cards.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/parallel.h"
#include "memory/allocator/card_capacity.h"

namespace cufit::fit {
namespace {

// cuBLAS takes most on it, and its context is the largest that was measured: what is said without
// a card holds for the others as an upper bound.
constexpr std::string_view k_largest_context_card = "H200 SXM";
// torch 2.x wheels of CUDA 12 have no kernels for older ones.
constexpr ComputeCapability k_oldest_capability{5, 0};
constexpr size_t k_most_capabilities = 4;  // each costs cuDNN a second or more
// Of NCCL, that are believed: groups, ranks of a node, nodes.
constexpr uint64_t k_most_groups = 64, k_most_node = 72, k_most_nodes = 1024;
// NVLink SHARP.
constexpr ComputeCapability k_first_with_nvls{9, 0}, k_later_nvls{10, 0};

uint64_t number_of(const formats::TraceEvents& events, std::string_view fact, uint64_t most) {
  return std::min(parse_uint(events.fact(fact)).value_or(0), most);
}

// Of the traced process. Sends and receives: to and from how many ranks, of each communicator.
struct Connections {
  uint64_t communicators, rings, sends, receives;
};

// Where the trace has none: the group of all ranks.
Connections connections(const formats::TraceEvents& events) {
  constexpr uint64_t k_most_peers = k_most_groups * k_most_node;
  if (events.fact(k_nccl_facts[0]).empty()) return {1, 1, 0, 0};
  return {number_of(events, k_nccl_facts[0], k_most_groups),
          number_of(events, k_nccl_facts[1], k_most_groups),
          number_of(events, k_nccl_facts[2], k_most_peers),
          number_of(events, k_nccl_facts[3], k_most_peers)};
}

}  // namespace

Card card_of(const knowledge::Gpu& gpu, const knowledge::Knowledge& knowledge) {
  const memory::CardCapacity capacity = memory::card_capacity(gpu, knowledge);
  Card out;
  out.name = std::string(gpu.name);
  out.cc = std::string(gpu.cc);
  out.measured = capacity.measured;
  out.total = capacity.total;
  out.outside_allocator = capacity.context;
  out.usable = capacity.usable();
  return out;
}

Card card_of_size(std::string name, uint64_t bytes, const knowledge::Knowledge& knowledge) {
  Card out = traced_card({}, knowledge);
  out.name = std::move(name);
  out.cc.clear();
  out.measured = true;
  out.total = bytes;
  out.outside_allocator = std::min(out.outside_allocator, bytes);
  out.usable = bytes - out.outside_allocator;
  return out;
}

std::vector<Card> all_cards(const knowledge::Knowledge& knowledge) {
  std::vector<Card> all;
  for (const knowledge::Gpu& gpu : knowledge.gpus) {
    // Those of embedded boards share the memory of the processor: how much is left depends on it.
    if (gpu.segment == "embedded") continue;
    const std::optional<ComputeCapability> cc = parse_compute_capability(gpu.cc);
    if (cc && *cc >= k_oldest_capability) all.push_back(card_of(gpu, knowledge));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Card& a, const Card& b) { return a.usable < b.usable; });
  return all;
}

std::vector<Card> each_once(std::vector<Card> cards) {
  std::vector<Card> out;
  for (Card& card : cards) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const Card& other) { return other.name == card.name; });
    if (same == out.end())
      out.push_back(std::move(card));
    else
      same->asked = same->asked || card.asked;
  }
  return out;
}

Card traced_card(const std::vector<Card>& cards, const knowledge::Knowledge& knowledge) {
  for (const Card& card : cards)
    if (card.asked && !card.cc.empty()) return card;
  const knowledge::Gpu* gpu = knowledge.find_gpu(k_largest_context_card);
  CUFIT_CHECK(gpu != nullptr, "the default card is in data/gpus.toml");
  return card_of(*gpu, knowledge);
}

uint64_t nccl_bytes(const formats::TraceEvents& events, const Card& card,
                    const knowledge::Knowledge& knowledge) {
  const uint64_t world = number_of(events, "world", k_most_node * k_most_nodes);
  if (world < 2 || knowledge.nccl_memory.empty()) return 0;
  const auto found = std::find_if(
      knowledge.nccl_memory.begin(), knowledge.nccl_memory.end(),
      [&](const knowledge::NcclMemoryRow& row) { return world <= uint64_t(row.ranks); });
  const knowledge::NcclMemoryRow& row =
      found != knowledge.nccl_memory.end() ? *found : knowledge.nccl_memory.back();
  const uint64_t node = std::clamp<uint64_t>(number_of(events, "node_size", k_most_node), 1, world);
  const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc);
  const ComputeCapability capability = cc.value_or(k_first_with_nvls);
  const int64_t nvls = node < 3 || capability < k_first_with_nvls ? 0
                       : capability < k_later_nvls                ? row.nvls_mib
                                                                  : row.nvls_later_mib;
  const Connections of = connections(events);
  const uint64_t mib =
      uint64_t(row.kernels_mib) + of.communicators * uint64_t(row.communicator_mib) +
      of.rings * uint64_t(row.rings_mib) + of.sends * uint64_t(row.send_mib) +
      of.receives * uint64_t(row.receive_mib) +
      uint64_t(of.sends + of.receives > 0 ? row.send_kernels_mib : 0) + node * uint64_t(nvls) +
      uint64_t(node < world ? row.net_mib : 0);
  return mib << 20;
}

void take_outside(Card& card, uint64_t bytes) {
  card.outside_allocator = std::min(card.outside_allocator + bytes, card.total);
  card.usable = card.total - card.outside_allocator;
}

Setup setup_on(Setup setup, const Card& card) {
  if (const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc))
    setup.libraries.cc = *cc;
  setup.total_memory = card.total;
  setup.outside_allocator = card.outside_allocator;
  return setup;
}

std::vector<CardAnswer> answer_once(const std::vector<Card>& cards,
                                    const std::function<bool(const Card&, const Card&)>& alike,
                                    const std::function<void(CardAnswer&)>& answer) {
  std::vector<CardAnswer> out;
  for (const Card& card : cards) static_cast<Card&>(out.emplace_back()) = card;
  std::vector<size_t> like(out.size()), firsts;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto same = std::find_if(firsts.begin(), firsts.end(),
                                   [&](size_t other) { return alike(out[other], out[i]); });
    like[i] = same == firsts.end() ? i : *same;
    if (like[i] == i) firsts.push_back(i);
  }
  in_parallel(firsts.size(), firsts.size(), [&](size_t i) { answer(out[firsts[i]]); });
  for (size_t i = 0; i < out.size(); ++i) {
    if (like[i] == i) continue;
    const Card card = out[i];
    out[i] = out[like[i]];
    static_cast<Card&>(out[i]) = card;
  }
  return out;
}

void judge_largest(CardAnswer& card, uint64_t retries, uint64_t capacity, const UpperAt& upper) {
  card.largest_whole = largest_within(card.largest, capacity, upper);
  // The point value may go without a retry where the upper value cannot.
  const bool whole = card.largest_whole == card.largest.batch;
  card.largest_retries = whole ? retries : std::max<uint64_t>(retries, 1);
}

const CardAnswer* first_asked(const std::vector<CardAnswer>& cards) {
  const auto found =
      std::find_if(cards.begin(), cards.end(), [](const CardAnswer& card) { return card.asked; });
  return found == cards.end() ? nullptr : &*found;
}

std::string pretended_gpu(const Card& card, const knowledge::Knowledge& knowledge) {
  const knowledge::Gpu* gpu = knowledge.find_gpu(card.name);
  const std::string name(gpu != nullptr ? gpu->nvml_name : std::string_view(card.name));
  return format("{},{},{}", name, card.cc, card.total);
}

std::string cudnn_devices(const Card& traced, const std::vector<Card>& cards,
                          const knowledge::Knowledge& knowledge) {
  std::vector<std::string_view> capabilities{traced.cc};
  for (const Card& card : cards)
    if (card.asked && !card.cc.empty() && capabilities.size() < k_most_capabilities &&
        std::find(capabilities.begin(), capabilities.end(), card.cc) == capabilities.end())
      capabilities.push_back(card.cc);
  std::vector<std::string> out;
  for (const std::string_view text : capabilities) {
    const std::optional<ComputeCapability> cc = parse_compute_capability(text);
    const auto row = std::find_if(
        knowledge.gpu_properties.begin(), knowledge.gpu_properties.end(),
        [text](const knowledge::GpuPropertiesRow& candidate) { return candidate.cc == text; });
    if (!cc || row == knowledge.gpu_properties.end()) continue;
    out.push_back(format(
        R"([{},{{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
        R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
        R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":{},"maxRegistersPerSM":65536,)"
        R"("maxCtasPerSM":{},"maxThreadsPerBlock":1024,"maxThreadsPerSM":{},"pciDeviceId":0,"isTccDriver":0,)"
        R"("supportCoopLaunch":1,"totalGlobalMem":{},"smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},)"
        R"("cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"deviceName":"NVIDIA GPU"}}])",
        cc->major * 10 + cc->minor, row->multiprocessors, row->shared_kib * 1024,
        row->reserved_shared, row->blocks, row->threads, traced.total, row->clock,
        row->memory_clock, row->l2_kib * 1024, cc->major * 100 + cc->minor));
  }
  return "[" + join(out, ",") + "]";
}

}  // namespace cufit::fit
