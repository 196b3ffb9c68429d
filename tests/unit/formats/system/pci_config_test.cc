// SPDX-License-Identifier: Apache-2.0
#include "formats/system/pci_config.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace pci_config_test {

void put(std::string& space, size_t at, uint32_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) space[at + i] = static_cast<char>(value >> 8 * i);
}

// A header of an extended capability.
uint32_t header(uint32_t id, uint32_t next) { return id | 1u << 16 | next << 20; }

// AER at 0x100, and ACS behind it, as a Broadcom PEX88096 has it.
std::string switch_port(uint16_t on) {
  std::string space(4096, '\0');
  put(space, 0x100, header(0x0001, 0x148), 4);
  put(space, 0x148, header(0x0003, 0xf24), 4);
  put(space, 0xf24, header(0x000d, 0), 4);
  put(space, 0xf28, 0x005f, 2);
  put(space, 0xf2a, on, 2);
  return space;
}

TEST(PciConfig, SaysWhatAcsHasOn) {
  EXPECT_EQ(parse_acs(switch_port(0x1d)).state, AcsState::found);
  EXPECT_EQ(parse_acs(switch_port(0x1d)).on, 0x1d);
  EXPECT_EQ(acs_text(0x1d), "SrcValid ReqRedir CmpltRedir UpstreamFwd");
  EXPECT_EQ(parse_acs(switch_port(0)).state, AcsState::found);
  EXPECT_EQ(acs_text(0), "off");
  EXPECT_EQ(acs_text(0x40), "DirectTrans");
}

TEST(PciConfig, WhatAnUnprivilegedUserReadsSaysNothing) {
  EXPECT_EQ(parse_acs(switch_port(0x1d).substr(0, 64)).state, AcsState::unreadable);
  EXPECT_EQ(parse_acs("").state, AcsState::unreadable);
}

TEST(PciConfig, ADeviceWithoutIt) {
  std::string space(4096, '\0');
  EXPECT_EQ(parse_acs(space).state, AcsState::none);
  put(space, 0x100, header(0x0001, 0), 4);
  EXPECT_EQ(parse_acs(space).state, AcsState::none);
  EXPECT_EQ(parse_acs(std::string(4096, '\xff')).state, AcsState::none);  // it fell off the bus
  EXPECT_EQ(parse_acs(std::string(256, '\0')).state, AcsState::none);     // no PCIe
}

TEST(PciConfig, ACircleOrAnEndInTheMiddleEnds) {
  std::string space(4096, '\0');
  put(space, 0x100, header(0x0001, 0x100), 4);
  EXPECT_EQ(parse_acs(space).state, AcsState::none);
  put(space, 0x100, header(0x0001, 0xffc), 4);
  put(space, 0xffc, header(0x000d, 0), 4);
  EXPECT_EQ(parse_acs(space).state, AcsState::none);
  put(space, 0x100, header(0x0001, 0x40), 4);  // back into the header
  EXPECT_EQ(parse_acs(space).state, AcsState::none);
}

}  // namespace pci_config_test
}  // namespace cufit::formats
