// SPDX-License-Identifier: Apache-2.0
#include "formats/system/pci_config.h"

#include "base/bytes.h"

namespace cufit::formats {
namespace {

constexpr size_t k_extended = 0x100, k_end = 0x1000;
constexpr uint32_t k_acs_id = 0x000d;
constexpr size_t k_acs_bytes = 8;

}  // namespace

AcsControl parse_acs(std::string_view config) {
  if (config.size() < k_extended) return {AcsState::unreadable, 0};
  size_t at = k_extended;
  // Each capability takes 4 bytes at least: a longer list is a circle.
  for (size_t steps = 0; steps < (k_end - k_extended) / 4; ++steps) {
    if (at < k_extended || at + k_acs_bytes > config.size()) break;
    const uint32_t header = load_le<uint32_t>(config.data() + at);
    if (header == 0 || header == 0xffffffffu) break;  // nothing there; the device does not answer
    if ((header & 0xffffu) == k_acs_id)
      return {AcsState::found, load_le<uint16_t>(config.data() + at + 6)};
    at = header >> 20 & 0xffcu;
  }
  return {AcsState::none, 0};
}

std::string acs_text(uint16_t on) {
  static const char* const k_names[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                        "UpstreamFwd", "EgressCtrl", "DirectTrans"};
  std::string out;
  for (size_t bit = 0; bit < std::size(k_names); ++bit) {
    if ((on >> bit & 1) == 0) continue;
    if (!out.empty()) out += ' ';
    out += k_names[bit];
  }
  return out.empty() ? "off" : out;
}

}  // namespace cufit::formats
