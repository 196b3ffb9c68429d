// SPDX-License-Identifier: Apache-2.0
#include "commands/run/vram_domain.h"

#include <algorithm>

namespace cufit::commands {
namespace {

// Processes that use CUDA at the same time: 68 KiB for a launch, 260 KiB for a name that many share.
constexpr uint32_t k_slots_alone = 128, k_slots_shared = 512;
constexpr size_t k_most_share_name = 48;

}  // namespace

formats::QuotaDomain domain_of(const DomainWish& wish) {
  formats::QuotaDomain out;
  out.name = wish.share;
  out.slot_count = wish.share.empty() ? k_slots_alone : k_slots_shared;
  out.nvml_own_process = wish.nvml_own_process;
  out.default_limit_bytes = wish.every_bytes;
  out.default_context_bytes = wish.least_context_bytes;
  for (size_t i = 0; i < wish.cards.size(); ++i) {
    const resolve::QuotaCard& card = wish.cards[i];
    const uint64_t context = resolve::context_charge(card, wish.limits[i]);
    out.default_context_bytes = std::max(out.default_context_bytes, context);
    if (wish.limits[i] == formats::k_no_quota || (card.uuid.empty() && card.pci.empty())) continue;
    formats::QuotaDevice device;
    device.uuid = card.uuid;
    device.pci = card.pci;
    device.limit_bytes = wish.limits[i];
    device.total_bytes = card.total_bytes;
    device.context_bytes = context;
    out.devices.push_back(std::move(device));
  }
  return out;
}

uint64_t limit_in(const formats::QuotaDomain& domain, const resolve::QuotaCard& card) {
  for (const formats::QuotaDevice& device : domain.devices)
    if ((!card.uuid.empty() && device.uuid == card.uuid) ||
        (device.uuid.empty() && !card.pci.empty() && device.pci == card.pci))
      return device.limit_bytes;
  return domain.default_limit_bytes;
}

bool is_share_name(const std::string& name) {
  if (name.empty() || name.size() > k_most_share_name || name[0] == '.') return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string::npos;
}

}  // namespace cufit::commands
