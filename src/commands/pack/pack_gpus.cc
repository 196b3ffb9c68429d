// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/pack_gpus.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/number.h"
#include "commands/pack/pack_promised.h"
#include "fit/answer/cards.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "host/probe.h"
#include "knowledge/text_tokens.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_pack_gpus_most_bytes = uint64_t{1} << 40;

// "4xH100" as 4 and "H100".
std::pair<uint64_t, std::string> counted(const std::string& text) {
  const size_t x = text.find_first_of("xX*");
  if (x == std::string::npos || x == 0 || x + 1 == text.size()) return {1, text};
  const std::optional<uint64_t> count = parse_uint(std::string_view(text).substr(0, x));
  if (!count || *count == 0 || *count > pack::k_most_gpus) return {1, text};
  return {*count, std::string(trim(std::string_view(text).substr(x + 1)))};
}

pack::Gpu gpu_of(const fit::Card& card) {
  pack::Gpu out;
  out.name = card.name;
  out.usable = card.total;
  out.context = card.outside_allocator;
  return out;
}

// All that a name can mean where it leaves the memory open: "H100" has 80, 94 or 64 GB.
std::vector<const knowledge::Gpu*> gpus_named(const std::string& text,
                                              const knowledge::Knowledge& knowledge) {
  std::vector<const knowledge::Gpu*> meant = knowledge.gpus_meant(text);
  if (meant.size() != 1) return meant;
  const auto words = [](std::string_view name) { return knowledge::name_words(name, true); };
  const knowledge::Gpu& found = *meant[0];
  if (words(found.name) == words(text) || words(found.nvml_name) == words(text)) return meant;
  bool open = false;
  std::vector<const knowledge::Gpu*> all;
  for (const knowledge::Gpu& gpu : knowledge.gpus) {
    if (!knowledge::contains_words(words(gpu.name), words(text))) continue;
    all.push_back(&gpu);
    open = open || gpu.memory_gb != found.memory_gb;
  }
  return open ? all : meant;
}

Result<pack::Gpu> described_gpu(const std::string& text, const knowledge::Knowledge& knowledge) {
  const std::vector<const knowledge::Gpu*> meant = gpus_named(text, knowledge);
  if (meant.size() > 1) {
    std::vector<std::string> names;
    for (const knowledge::Gpu* gpu : meant) names.emplace_back(gpu->name);
    return fail(Code::usage,
                format("`--gpu {}`: sold with several sizes of memory; which is it: {}", text,
                       join(names, ", ")));
  }
  if (!meant.empty()) {
    pack::Gpu out = gpu_of(fit::card_of(*meant[0], knowledge));
    out.table = std::string(meant[0]->name);
    return out;
  }
  if (const std::optional<uint64_t> bytes = parse_memory_size(text)) {
    if (*bytes > k_pack_gpus_most_bytes)
      return fail(Code::usage, format("`--gpu {}`: no card has so many GiB, and no name of the "
                                      "table fits",
                                      text));
    const bool plain = std::isdigit(static_cast<unsigned char>(text.back())) != 0;
    return gpu_of(fit::card_of_size(plain ? text + " GiB" : text, *bytes, knowledge));
  }
  const std::vector<std::string> near = knowledge.nearest_gpus(text, 3);
  return fail(Code::usage, format("`--gpu {}`: no such GPU in the table{}", text,
                                  near.empty() ? "" : "; nearest: " + join(near, ", ")));
}

// Recordings hold UUIDs of zeros and a number.
bool is_real(const std::string& uuid) {
  return !uuid.empty() && uuid.find("-00000000-0000-0000-0000-") == std::string::npos;
}

// What a process may have at most: CUDA's total, which is less than NVML's (an H200: 143104 of 143771 MiB). `cufit run --vram`
// refuses more. UINT64_MAX: not known.
uint64_t most_of_process(const facts::NvmlGpu& nvml, const knowledge::Gpu* row,
                         const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    const bool same = device.uuid && nvml.uuid
                          ? *device.uuid == *nvml.uuid
                          : device.pci_address && nvml.pci_address &&
                                lower(*device.pci_address) == lower(*nvml.pci_address);
    if (same && device.memory_total_bytes) return *device.memory_total_bytes;
  }
  if (row == nullptr) return UINT64_MAX;
  const fit::Card card = fit::card_of(*row, knowledge);
  return card.measured ? card.total : UINT64_MAX;
}

// What the guard charges there for a context: it goes by the compute capability that the driver tells, a table by the name.
// Where these differ the larger holds a job under both.
uint64_t context_of_process(const facts::NvmlGpu& nvml, const facts::Facts& facts, uint64_t named,
                            const knowledge::Knowledge& knowledge) {
  const auto more = [&](const std::string& cc) {
    named = std::max(named, knowledge.context_bytes(cc));
  };
  if (nvml.compute_capability) more(*nvml.compute_capability);
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    const bool same = device.uuid && nvml.uuid && *device.uuid == *nvml.uuid;
    if (same && device.compute_capability) more(*device.compute_capability);
  }
  return named;
}

// What NVML says of one GPU; nothing where it says neither name nor memory.
void add_nvml_gpu(const facts::NvmlGpu& nvml, const facts::Facts& facts,
                  const knowledge::Knowledge& knowledge, std::vector<pack::Gpu>& out) {
  const std::string name = nvml.name.value_or("GPU");
  const knowledge::Gpu* row = knowledge.find_gpu(name);
  pack::Gpu gpu = row != nullptr ? gpu_of(fit::card_of(*row, knowledge))
                                 : gpu_of(fit::card_of_size(name, 1, knowledge));
  if (row == nullptr) gpu.context = fit::traced_card({}, knowledge).outside_allocator;
  gpu.context = context_of_process(nvml, facts, gpu.context, knowledge);
  if (row != nullptr) gpu.table = std::string(row->name);
  gpu.index = nvml.index;
  gpu.name = format("GPU {}, {}", nvml.index, name);
  gpu.visible = nvml.uuid.value_or("");
  if (!is_real(gpu.visible)) gpu.visible = std::to_string(nvml.index);
  std::map<std::string, uint32_t> counts;
  for (const facts::MigInstance& instance : nvml.mig_instances) {
    if (!instance.memory_bytes) continue;
    pack::Gpu part = gpu;
    part.is_instance = true;
    part.name = format("GPU {}, {} of {}", nvml.index, instance.name, name);
    part.visible = is_real(instance.uuid) ? instance.uuid : "";
    part.profile = instance.name;
    part.same = counts[instance.name]++;
    const knowledge::MigCardRow* mig = knowledge.find_mig_card(gpu.table);
    const uint64_t kept = static_cast<uint64_t>(mig != nullptr ? mig->empty_mib : 0) << 20;
    part.usable = *instance.memory_bytes - std::min(kept, *instance.memory_bytes);
    out.push_back(part);
  }
  if (!nvml.mig_instances.empty()) return;
  if (nvml.memory_free_bytes)
    gpu.usable = *nvml.memory_free_bytes;
  else if (nvml.memory_total_bytes)
    gpu.usable = *nvml.memory_total_bytes;
  else if (row == nullptr)
    return;
  const uint64_t most = most_of_process(nvml, row, facts, knowledge);
  gpu.usable = std::min(gpu.usable, most);
  const uint64_t empty = std::min(nvml.memory_total_bytes.value_or(0), most);
  gpu.in_use = empty - std::min(empty, gpu.usable);
  out.push_back(gpu);
}

Result<void> add_machine(const facts::Facts& facts, const std::string& asked,
                         const knowledge::Knowledge& knowledge, std::vector<pack::Gpu>& out) {
  const size_t before = out.size();
  for (const facts::NvmlGpu& nvml : facts.nvml.gpus) add_nvml_gpu(nvml, facts, knowledge, out);
  if (out.size() == before)
    return fail(Code::usage,
                format("`--gpu {}`: no GPU there that its driver tells the memory of; name one: "
                       "--gpu \"RTX 3090\"",
                       asked));
  return {};
}

// One card is promised once: a recording can be of this machine, or of one that was named before.
std::optional<Error> there_already(const std::vector<pack::Gpu>& gpus, size_t before,
                                   const std::string& asked) {
  for (size_t i = before; i < gpus.size(); ++i) {
    const std::string& uuid = gpus[i].visible;
    if (!starts_with(uuid, "GPU-") && !starts_with(uuid, "MIG-")) continue;
    for (size_t j = 0; j < before; ++j)
      if (gpus[j].visible == uuid)
        return fail(
            Code::usage,
            format("`--gpu {}`: {} is there already, and a plan takes a GPU once", asked, uuid));
  }
  return std::nullopt;
}

bool is_recording(const std::string& text) {
  return host::is_file(text) || starts_with(text, "/") || starts_with(text, "./") ||
         starts_with(text, "../") || ends_with(text, ".json");
}

}  // namespace

std::vector<pack::Gpu> gpus_of_machine(const facts::Facts& facts,
                                       const knowledge::Knowledge& knowledge) {
  std::vector<pack::Gpu> out;
  for (const facts::NvmlGpu& nvml : facts.nvml.gpus) add_nvml_gpu(nvml, facts, knowledge, out);
  return out;
}

Result<std::vector<pack::Gpu>> pack_gpus(const Context& context, std::vector<std::string> asked) {
  if (asked.empty()) asked = {"HERE"};
  std::vector<pack::Gpu> out;
  uint32_t described = 0;
  bool here_taken = false;
  for (const std::string& text : asked) {
    const size_t before = out.size();
    if (lower(text) == "here") {
      if (std::exchange(here_taken, true)) continue;
      host::ProbeOptions options;
      options.driver_depth = host::DriverDepth::state;
      const facts::Facts facts = host::collect(context.machine, options);
      std::vector<pack::Gpu> here;
      if (Result<void> done = add_machine(facts, "HERE", context.knowledge, here); !done)
        return done.error();
      take_promised(context, here);
      out.insert(out.end(), here.begin(), here.end());
    } else if (is_recording(text)) {
      CUFIT_TRY(facts, host::load_facts(context.files, text));
      if (Result<void> done = add_machine(facts, text, context.knowledge, out); !done)
        return done.error();
    } else {
      if (trim(text).empty())
        return fail(Code::usage, format("`--gpu {}`: no such GPU in the table{}", text, ""));
      const size_t times = text.find_first_of("xX*");
      const std::optional<uint64_t> asked_count =
          parse_uint(std::string_view(text).substr(0, times == std::string::npos ? 0 : times));
      if (asked_count && *asked_count > pack::k_most_gpus)
        return fail(Code::usage, format("{} GPUs: at most {} are planned for at once", *asked_count,
                                        pack::k_most_gpus));
      const auto [count, name] = counted(text);
      CUFIT_TRY(gpu, described_gpu(name, context.knowledge));
      for (uint64_t i = 0; i < count; ++i) {
        out.push_back(gpu);
        out.back().index = described;
        out.back().visible = std::to_string(described++);
      }
    }
    if (std::optional<Error> twice = there_already(out, before, text)) return std::move(*twice);
  }
  // Several of one name are told apart by their number.
  for (pack::Gpu& gpu : out)
    if (!gpu.visible.empty() && gpu.visible == std::to_string(gpu.index) && out.size() > 1 &&
        !starts_with(gpu.name, "GPU "))
      gpu.name = format("GPU {}, {}", gpu.index, gpu.name);
  return out;
}

}  // namespace cufit::commands
