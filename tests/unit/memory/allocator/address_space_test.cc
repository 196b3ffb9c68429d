// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/address_space.h"

#include <gtest/gtest.h>

#include "memory/allocator/rounding.h"

namespace cufit::memory {
namespace address_space_test {

constexpr uint64_t k_top = uint64_t{1} << 46;

// MiB below the top.
uint64_t below(uint64_t address) { return (k_top - address) / k_mib; }

TEST(AddressSpace, NewGranulesGoDownAndRestsFillFromTheLowest) {
  AddressSpace space;
  // 148 takes 160 of which 12 stay; 74 takes 96 of which 22 stay.
  EXPECT_EQ(below(space.place(148 * k_mib)), 160u);
  EXPECT_EQ(below(space.place(74 * k_mib)), 256u);
  EXPECT_EQ(below(space.place(20 * k_mib)), 182u);  // in the rest of the 74
  EXPECT_EQ(below(space.place(2 * k_mib)), 162u);   // behind it
  EXPECT_EQ(below(space.place(2 * k_mib)), 12u);    // in the rest of the 148
  EXPECT_EQ(below(space.place(20 * k_mib)), 288u);  // no rest is large enough
}

TEST(AddressSpace, FreedGranulesAreTakenAgainFromTheHighest) {
  AddressSpace space;
  const uint64_t a = space.place(64 * k_mib), b = space.place(64 * k_mib);
  const uint64_t c = space.place(38 * k_mib);
  EXPECT_EQ(below(c), 192u);
  space.release(a, 64 * k_mib);
  space.release(c, 38 * k_mib);
  EXPECT_EQ(space.place(64 * k_mib), a);
  EXPECT_EQ(below(space.place(64 * k_mib)), 192u);
  space.release(b, 64 * k_mib);
  EXPECT_EQ(below(space.place(30 * k_mib)), 96u);
}

TEST(AddressSpace, PartOfAGranuleStaysARest) {
  AddressSpace space;
  const uint64_t a = space.place(20 * k_mib), b = space.place(10 * k_mib);
  EXPECT_EQ(below(b), 12u);
  space.release(a, 20 * k_mib);
  EXPECT_EQ(space.place(12 * k_mib), a);
  space.release(b, 10 * k_mib);
  EXPECT_EQ(below(space.place(20 * k_mib)), 20u);
}

}  // namespace address_space_test
}  // namespace cufit::memory
