// SPDX-License-Identifier: Apache-2.0
#include "memory/replay/address_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cufit::memory {
namespace address_map_test {

// Addresses as an allocator gives them, and such as fall on few places of the table.
TEST(AddressMap, AgreesWithAMap) {
  for (const uint64_t unit : {uint64_t{512}, uint64_t{1} << 40, uint64_t{1}}) {
    std::mt19937_64 random(unit);
    AddressMap map;
    std::map<uint64_t, uint32_t> expected;
    for (uint32_t i = 0; i < 60000; ++i) {
      const uint64_t address = unit * (random() % 3000);
      const bool is_there = expected.count(address) != 0;
      AddressMap::Entry* const found = map.find(address);
      ASSERT_EQ(found != nullptr, is_there) << address;
      if (is_there) {
        ASSERT_EQ(found->value, expected[address]);
      }
      // Grows to about 2,000 entries, then shrinks to few.
      if (random() % 8 < (i < 30000 ? 6u : 2u)) {
        bool is_new = false;
        map.find_or_add(address, is_new).value = i;
        EXPECT_EQ(is_new, !is_there);
        expected[address] = i;
      } else if (is_there) {
        map.erase(found);
        expected.erase(address);
      }
      ASSERT_EQ(map.size(), expected.size());
    }
    for (const auto& [address, value] : expected) {
      ASSERT_NE(map.find(address), nullptr);
      ASSERT_EQ(map.find(address)->value, value);
    }
  }
}

}  // namespace address_map_test
}  // namespace cufit::memory
