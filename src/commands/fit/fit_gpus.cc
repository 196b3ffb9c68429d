// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_gpus.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/parallel.h"
#include "commands/mem/mem_snapshot.h"
#include "memory/allocator/card_capacity.h"

namespace cufit::commands {
namespace {

using report::FitGpu;

// cuBLAS takes most on it, and its context is the largest that was measured: what is said without
// a card holds for the others as an upper bound.
constexpr std::string_view k_default_card = "H200 SXM";
// torch 2.x wheels of CUDA 12 have no kernels for older ones.
constexpr ComputeCapability k_oldest{5, 0};
constexpr size_t k_most_capabilities = 4;                      // each costs cuDNN a second or more
constexpr uint64_t k_fit_gpus_most_bytes = uint64_t{1} << 40;  // "3091" is a name that was mistyped

FitGpu card_of(const knowledge::Gpu& gpu, const knowledge::Knowledge& knowledge) {
  const memory::CardCapacity capacity = memory::card_capacity(gpu, knowledge);
  FitGpu out;
  out.name = std::string(gpu.name);
  out.cc = std::string(gpu.cc);
  out.measured = capacity.measured;
  out.total = capacity.total;
  out.outside_allocator = capacity.context;
  out.usable = capacity.usable();
  return out;
}

// A size, as CUDA tells it: the context of the default card comes off.
Result<FitGpu> card_of_size(const std::string& text, const knowledge::Knowledge& knowledge) {
  CUFIT_TRY(bytes, size_argument("--gpu", text));
  if (bytes > k_fit_gpus_most_bytes)
    return fail(Code::usage, format("`--gpu {}`: no card has so many GiB, and no name of the table "
                                    "fits",
                                    text));
  FitGpu out = traced_card({}, knowledge);
  out.name = text;
  if (std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return c == '.' || std::isdigit(c) != 0; }))
    out.name += " GiB";
  out.cc.clear();
  out.measured = true;
  out.total = bytes;
  out.outside_allocator = std::min(out.outside_allocator, bytes);
  out.usable = bytes - out.outside_allocator;
  return out;
}

void add_all(std::vector<FitGpu>& out, const knowledge::Knowledge& knowledge) {
  std::vector<FitGpu> all;
  for (const knowledge::Gpu& gpu : knowledge.gpus) {
    // Those of embedded boards share the memory of the processor: how much is left depends on it.
    if (gpu.segment == "embedded") continue;
    const std::optional<ComputeCapability> cc = parse_compute_capability(gpu.cc);
    if (cc && *cc >= k_oldest) all.push_back(card_of(gpu, knowledge));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const FitGpu& a, const FitGpu& b) { return a.usable < b.usable; });
  for (FitGpu& card : all) out.push_back(std::move(card));
}

}  // namespace

Result<std::vector<FitGpu>> fit_gpus(const Arguments& arguments,
                                     const knowledge::Knowledge& knowledge) {
  std::vector<FitGpu> cards;
  for (const std::string& text : arguments.all("gpu")) {
    if (text == "all") {
      add_all(cards, knowledge);
    } else if (const knowledge::Gpu* gpu = knowledge.find_gpu(text)) {
      cards.push_back(card_of(*gpu, knowledge));
      cards.back().asked = true;
    } else if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
      CUFIT_TRY(card, card_of_size(text, knowledge));
      cards.push_back(std::move(card));
      cards.back().asked = true;
    } else {
      const std::vector<std::string> near = knowledge.nearest_gpus(text, 3);
      return fail(Code::usage, format("`--gpu {}`: no such GPU in the table{}", text,
                                      near.empty() ? "" : "; nearest: " + join(near, ", ")));
    }
  }
  std::vector<FitGpu> out;
  for (FitGpu& card : cards) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const FitGpu& other) { return other.name == card.name; });
    if (same == out.end())
      out.push_back(std::move(card));
    else
      same->asked = same->asked || card.asked;
  }
  return out;
}

FitGpu traced_card(const std::vector<FitGpu>& gpus, const knowledge::Knowledge& knowledge) {
  for (const FitGpu& gpu : gpus)
    if (gpu.asked && !gpu.cc.empty()) return gpu;
  const knowledge::Gpu* gpu = knowledge.find_gpu(k_default_card);
  CUFIT_CHECK(gpu != nullptr, "the default card is in data/gpus.toml");
  return card_of(*gpu, knowledge);
}

fit::Setup on_card(fit::Setup setup, const FitGpu& card) {
  if (const std::optional<ComputeCapability> cc = parse_compute_capability(card.cc))
    setup.libraries.cc = *cc;
  setup.total_memory = card.total;
  setup.outside_allocator = card.outside_allocator;
  return setup;
}

void answer_once(std::vector<FitGpu>& gpus,
                 const std::function<bool(const FitGpu&, const FitGpu&)>& alike,
                 const std::function<void(FitGpu&)>& answer) {
  std::vector<size_t> like(gpus.size()), firsts;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto same = std::find_if(firsts.begin(), firsts.end(),
                                   [&](size_t other) { return alike(gpus[other], gpus[i]); });
    like[i] = same == firsts.end() ? i : *same;
    if (like[i] == i) firsts.push_back(i);
  }
  in_parallel(firsts.size(), firsts.size(), [&](size_t i) { answer(gpus[firsts[i]]); });
  for (size_t i = 0; i < gpus.size(); ++i) {
    const FitGpu& from = gpus[like[i]];
    gpus[i].fits = from.fits;
    gpus[i].prediction = from.prediction;
    gpus[i].largest = from.largest;
    gpus[i].largest_retries = from.largest_retries;
  }
}

std::string pretended(const FitGpu& card, const knowledge::Knowledge& knowledge) {
  const knowledge::Gpu* gpu = knowledge.find_gpu(card.name);
  const std::string name(gpu != nullptr ? gpu->nvml_name : std::string_view(card.name));
  return format("{},{},{}", name, card.cc, card.total);
}

std::string cudnn_devices(const FitGpu& traced, const std::vector<FitGpu>& gpus,
                          const knowledge::Knowledge& knowledge) {
  std::vector<std::string_view> capabilities{traced.cc};
  for (const FitGpu& gpu : gpus)
    if (gpu.asked && !gpu.cc.empty() && capabilities.size() < k_most_capabilities &&
        std::find(capabilities.begin(), capabilities.end(), gpu.cc) == capabilities.end())
      capabilities.push_back(gpu.cc);
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

}  // namespace cufit::commands
