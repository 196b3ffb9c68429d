// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/spill_size.h"

#include "base/format.h"
#include "base/memory_size.h"
#include "base/path.h"

namespace cufit::resolve {

std::optional<VramProblem> parse_spill(std::string_view text, SpillRequest& out) {
  const VramProblem problem{"spill_size", {{"text", std::string(text)}}};
  out = {};
  for (const std::string_view part : split(text, ',')) {
    const std::string_view word = trim(part);
    if (word == "optimizer" || word == "always") {
      if (out.optimizer) return problem;
      out.optimizer = true;
      out.always = word == "always";
      continue;
    }
    const std::optional<uint64_t> bytes = parse_memory_size(word);
    if (!bytes || *bytes == 0 || out.emergency_bytes != 0) return problem;
    out.emergency_bytes = *bytes;
  }
  return std::nullopt;
}

std::string shutting_out_option(const std::vector<std::string>& command) {
  if (command.empty() || !starts_with(file_name(command[0]), "python")) return {};
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return {};
    for (size_t at = 1; at < word.size(); ++at) {
      if (contains("IES", std::string_view(&word[at], 1))) return word;
      // The code or module ends Python's own options; the others have a value, here or in the next word.
      if (word[at] == 'c' || word[at] == 'm') return {};
      if (word[at] == 'W' || word[at] == 'X') {
        if (at + 1 == word.size()) ++i;
        break;
      }
    }
  }
  return {};
}

uint64_t link_rate(const facts::PciGpu& gpu) {
  // Gigatransfers a second of a lane as the kernel writes them, and what of them is data (8b/10b, 128b/130b, flits): PCI-SIG,
  // base specifications 1.1 to 6.0.
  struct Speed {
    std::string_view text;
    double gigabits;
  };
  constexpr Speed k_speeds[] = {{"2.5", 2},    {"5", 4},     {"8", 7.88},
                                {"16", 15.75}, {"32", 31.5}, {"64", 64}};
  // What of it a GPU reads: 53 of 63 GB/s on an H200 with 32 GT/s and 16 lanes.
  constexpr double k_read = 0.84;
  const std::string speed = gpu.link_speed_max.value_or("");
  std::string_view number = std::string_view(speed).substr(0, speed.find(' '));
  if (ends_with(number, ".0")) number.remove_suffix(2);
  const uint32_t lanes = gpu.link_width_max.value_or(0);
  if (lanes == 0 || lanes > 32) return 0;
  for (const Speed& one : k_speeds)
    if (one.text == number) return static_cast<uint64_t>(one.gigabits * 1e9 / 8 * lanes * k_read);
  return 0;
}

uint64_t slowest_link(const facts::Facts& facts, const std::vector<QuotaCard>& cards) {
  uint64_t least = 0;
  if (!facts.pci) return least;
  for (const facts::PciGpu& gpu : *facts.pci)
    for (const QuotaCard& card : cards) {
      const uint64_t rate = card.pci == gpu.address ? link_rate(gpu) : 0;
      if (rate != 0 && (least == 0 || rate < least)) least = rate;
    }
  return least;
}

}  // namespace cufit::resolve
