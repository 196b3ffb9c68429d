// SPDX-License-Identifier: Apache-2.0
// Access Control Services (ACS) in the configuration space of a PCIe device, as sysfs's `config`
// holds it. A bridge whose ACS redirects requests sends what one GPU writes to another one up to
// the root port and through the IOMMU, instead of straight across.
//
// Layout (PCI Express Base Specification, 7.9.3 and 7.7.11; the kernel's pci_regs.h):
//   0x100  extended capabilities: u32 header = id (bits 0-15), version (16-19), offset of the next
//          one (20-31; 0 = last)
//   id 0x000d = ACS: +4 u16 what it can do, +6 u16 what is on
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

enum class AcsState {
  unreadable,  // the space ends before the capabilities: without CAP_SYS_ADMIN the kernel gives 64 bytes
  none,        // the device has no ACS
  found,
};

struct AcsControl {
  AcsState state = AcsState::unreadable;
  uint16_t on = 0;  // the control register
};

// Bits of the control register that send requests or answers of peers to the root.
constexpr uint16_t k_acs_redirects = 1u << 2 | 1u << 3;

AcsControl parse_acs(std::string_view config);

// "SrcValid ReqRedir", in lspci's words; "off" where no bit is set.
std::string acs_text(uint16_t on);

}  // namespace cufit::formats
