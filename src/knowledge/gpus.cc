// SPDX-License-Identifier: Apache-2.0
// Look-ups by product name and PCI id. A name that several capabilities share ("RTX 6000", "TITAN
// X") finds nothing: a wrong capability said with confidence is worse than a question back.
#include <algorithm>

#include "base/nearest.h"
#include "knowledge/knowledge.h"
#include "knowledge/text_tokens.h"

namespace cufit::knowledge {
namespace {

using Words = std::vector<std::string>;

// Best of the rows whose name holds all words of `query`: fewest further words, then table order.
// Null when they are of different capability.
const Gpu* best_containing(std::span<const Gpu> gpus, const Words& query) {
  const Gpu* best = nullptr;
  size_t best_size = SIZE_MAX;
  for (const Gpu& gpu : gpus) {
    const Words words = name_words(gpu.name, true);
    if (!contains_words(words, query)) continue;
    if (best && best->cc != gpu.cc) return nullptr;
    if (words.size() < best_size) {
      best = &gpu;
      best_size = words.size();
    }
  }
  return best;
}

std::string lower_hex(std::string_view id) {
  if (id.substr(0, 2) == "0x" || id.substr(0, 2) == "0X") id.remove_prefix(2);
  std::string out(id);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool holds_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool has_brand(const Words& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "geforce" || word == "quadro" || word == "tesla";
  });
}

// True when rows that carry this name, the vendor's words left out, could also mean a GPU of
// another capability.
bool ambiguous_without_brand(std::span<const Gpu> gpus, const Words& words, const Gpu& found) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
    return gpu.cc != found.cc && contains_words(name_words(gpu.name, true), words);
  });
}

}  // namespace

const Gpu* Knowledge::find_gpu(std::string_view name) const {
  const Words full = name_words(name, false), bare = name_words(name, true);
  // "4GiB" is how much memory somebody has, not the name of the one board whose name holds it.
  if (bare.empty() || (bare.size() == 1 && is_memory_size(bare[0]))) return nullptr;
  for (const Gpu& gpu : gpus) {  // 1. as written in the table or by NVML
    if (name_words(gpu.name, false) == full || name_words(gpu.nvml_name, false) == full)
      return &gpu;
  }
  for (const Gpu& gpu : gpus) {  // 2. the same without NVIDIA, GeForce, Tesla, Quadro
    if (name_words(gpu.name, true) != bare) continue;
    return !has_brand(full) && ambiguous_without_brand(gpus, bare, gpu) ? nullptr : &gpu;
  }
  if (const Gpu* gpu = best_containing(gpus, bare)) return gpu;  // 3. "A800", "3090"
  for (const Gpu& gpu : gpus) {                                  // 4. NVML's name without them
    if (name_words(gpu.nvml_name, true) == bare) return &gpu;
  }
  return nullptr;
}

namespace {

// The words after the last that names the chip: "PCIe 40GB" of "A100 PCIe 40GB".
bool is_form(std::string_view word) {
  return word == "pcie" || word == "nvl" || (word.size() == 4 && word.substr(0, 3) == "sxm");
}

}  // namespace

std::vector<const Gpu*> Knowledge::gpus_meant(std::string_view name) const {
  const Gpu* found = find_gpu(name);
  if (found == nullptr) return {};
  std::vector<const Gpu*> out;
  const Words bare = name_words(name, true);
  for (const Gpu& gpu : gpus) {
    Words own = name_words(gpu.name, true);
    const bool modified = std::find(own.begin(), own.end(), "modified") != own.end();
    if (modified && &gpu != found) continue;
    if (own != bare && !own.empty() && is_memory_size(own.back())) own.pop_back();
    if (own != bare && !own.empty() && is_form(own.back())) own.pop_back();
    if (own == bare && gpu.cc == found->cc) out.push_back(&gpu);
  }
  const bool one_size = std::all_of(
      out.begin(), out.end(), [&](const Gpu* gpu) { return gpu->memory_gb == found->memory_gb; });
  return one_size ? std::vector<const Gpu*>{found} : out;
}

const Gpu* Knowledge::find_gpu_by_pci(std::string_view device_id) const {
  const std::string id = lower_hex(device_id);
  if (id.size() != 4) return nullptr;
  for (const Gpu& gpu : gpus) {
    if (holds_word(gpu.pci_ids, id)) return &gpu;
  }
  return nullptr;
}

std::string_view Knowledge::find_cc_by_pci(std::string_view device_id) const {
  if (const Gpu* gpu = find_gpu_by_pci(device_id)) return gpu->cc;
  const std::string id = lower_hex(device_id);
  if (id.size() != 4) return {};
  for (const PciBlock& block : pci_blocks) {
    if (id.compare(0, block.prefix.size(), block.prefix) == 0) return block.cc;
  }
  return {};
}

bool Knowledge::has_own_code(ComputeCapability cc) const {
  return std::any_of(own_code.begin(), own_code.end(),
                     [&](const OwnCodeRow& row) { return parse_compute_capability(row.cc) == cc; });
}

ComputeCapability Knowledge::renumbered(ComputeCapability cc) const {
  for (const RenumberedArchRow& row : renumbered_archs) {
    const std::optional<ComputeCapability> now = parse_compute_capability(row.cc);
    if (now && parse_compute_capability(row.before) == cc) return *now;
  }
  return cc;
}

bool Knowledge::in_family(ComputeCapability family, ComputeCapability device) const {
  if (renumbered(family) == renumbered(device)) return true;
  return std::any_of(arch_families.begin(), arch_families.end(), [&](const ArchFamilyRow& row) {
    return parse_compute_capability(row.arch) == family &&
           parse_compute_capability(row.cc) == device;
  });
}

std::string_view Knowledge::other_maker(std::string_view name) {
  const Words words = name_words(name, true);
  const auto starts = [](const std::string& word, std::string_view stem) {
    return word.size() > stem.size() && word.compare(0, stem.size(), stem) == 0 &&
           word[stem.size()] >= '0' && word[stem.size()] <= '9';
  };
  for (const std::string& word : words) {
    if (word == "amd" || word == "radeon" || word == "instinct" || word == "rx" ||
        starts(word, "rx") || starts(word, "mi"))
      return "AMD";
    if (word == "intel" || word == "arc") return "Intel";
  }
  return {};
}

std::vector<std::string> Knowledge::nearest_gpus(std::string_view name, size_t count) const {
  const Words query = name_words(name, true);
  std::string joined;
  for (const std::string& word : query) joined += word;
  struct Candidate {
    size_t score;
    const Gpu* gpu;
  };
  std::vector<Candidate> all;
  for (const Gpu& gpu : gpus) {
    const Words parts = name_words(gpu.name, true);
    std::string text;
    for (const std::string& word : parts) text += word;
    // A name that holds every word asked for goes before any that is only spelled alike.
    // So does one that holds a model number of it: "4090 535".
    const size_t numbers =
        static_cast<size_t>(std::count_if(query.begin(), query.end(), [&](const std::string& word) {
          return word.size() > 2 && word.find_first_of("0123456789") != std::string::npos &&
                 !is_memory_size(word) && contains_words(parts, {word});
        }));
    const size_t far = contains_words(parts, query)
                           ? parts.size()
                           : (numbers > 0 ? 100 : 1000) + edit_distance(joined, text);
    all.push_back({far, &gpu});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  std::vector<std::string> out;
  for (size_t i = 0; i < all.size() && out.size() < count; ++i) out.emplace_back(all[i].gpu->name);
  return out;
}

}  // namespace cufit::knowledge
