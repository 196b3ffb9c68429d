// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/spill_size.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace spill_size_test {

constexpr uint64_t k_gib = uint64_t{1} << 30;

SpillRequest parsed(std::string_view text) {
  SpillRequest out;
  EXPECT_FALSE(parse_spill(text, out)) << text;
  return out;
}

TEST(SpillSize, Words) {
  EXPECT_TRUE(parsed("optimizer").optimizer);
  EXPECT_FALSE(parsed("optimizer").always);
  EXPECT_TRUE(parsed("always").always);
  EXPECT_EQ(parsed("8G").emergency_bytes, 8 * k_gib);
  const SpillRequest both = parsed("always, 2G");
  EXPECT_TRUE(both.optimizer && both.always);
  EXPECT_EQ(both.emergency_bytes, 2 * k_gib);
}

TEST(SpillSize, WhatIsNone) {
  for (const char* text :
       {"", "0", "nope", "8G,4G", "optimizer,always", "optimizer,", "-1G", "50%"}) {
    SpillRequest out;
    const auto found = parse_spill(text, out);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(found->id, "spill_size");
    EXPECT_EQ(found->args.at("text"), text);
  }
}

TEST(SpillSize, APythonThatReadsNoPath) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(shutting_out_option(Words{"python", "-I", "train.py"}), "-I");
  EXPECT_EQ(shutting_out_option(Words{"/opt/bin/python3.11", "-u", "-W", "ignore", "-sE", "t.py"}),
            "-sE");
  EXPECT_EQ(shutting_out_option(Words{"python", "-Xutf8", "-S", "-m", "train"}), "-S");
  for (const Words& words :
       {Words{}, Words{"python"}, Words{"python", "train.py", "-I"}, Words{"python", "-cI"},
        Words{"python", "-m", "train", "-E"}, Words{"python", "-W", "-I"}, Words{"torchrun", "-I"},
        Words{"python", "-", "-I"}, Words{"python", "--version", "-I"}})
    EXPECT_EQ(shutting_out_option(words), "");
}

facts::PciGpu gpu(const std::string& address, const std::string& speed, uint32_t lanes) {
  facts::PciGpu out;
  out.address = address;
  out.link_speed_max = known(speed, SourceKind::file, "");
  out.link_width_max = known(lanes, SourceKind::file, "");
  return out;
}

// Against what was measured: 53 GB/s on an H200; data sheets say 63 and 31.5 GB/s for 16 lanes.
TEST(SpillSize, RateOfALink) {
  EXPECT_NEAR(static_cast<double>(link_rate(gpu("", "32.0 GT/s PCIe", 16))), 53e9, 1e9);
  EXPECT_NEAR(static_cast<double>(link_rate(gpu("", "16.0 GT/s PCIe", 16))), 26.5e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(link_rate(gpu("", "8.0 GT/s PCIe", 4))), 3.3e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(link_rate(gpu("", "2.5 GT/s PCIe", 16))), 3.4e9, 0.1e9);
  for (const char* speed : {"", "Unknown", "1000 GT/s", "-8.0 GT/s PCIe"})
    EXPECT_EQ(link_rate(gpu("", speed, 16)), 0u) << speed;
  EXPECT_EQ(link_rate(gpu("", "8.0 GT/s PCIe", 0)), 0u);
  EXPECT_EQ(link_rate(gpu("", "8.0 GT/s PCIe", 64)), 0u);
}

TEST(SpillSize, TheSlowestOfTheCardsThatAreSeen) {
  facts::Facts facts;
  std::vector<QuotaCard> cards(2);
  cards[0].pci = "0000:01:00.0", cards[1].pci = "0000:c1:00.0";
  EXPECT_EQ(slowest_link(facts, cards), 0u);
  facts.pci = known(std::vector<facts::PciGpu>{gpu("0000:01:00.0", "16.0 GT/s PCIe", 16),
                                               gpu("0000:02:00.0", "2.5 GT/s PCIe", 1),
                                               gpu("0000:c1:00.0", "16.0 GT/s PCIe", 8)},
                    SourceKind::file, "");
  EXPECT_EQ(slowest_link(facts, cards), link_rate((*facts.pci)[2]));
  cards.pop_back();
  EXPECT_EQ(slowest_link(facts, cards), link_rate((*facts.pci)[0]));
}

}  // namespace spill_size_test
}  // namespace cufit::resolve
