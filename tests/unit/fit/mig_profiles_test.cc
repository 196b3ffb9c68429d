// SPDX-License-Identifier: Apache-2.0
// data/mig.toml against itself and against what NVIDIA's tables say of each card.
#include "fit/pack/mig_profiles.h"

#include <algorithm>
#include <bit>
#include <set>

#include "fit/pack/slot_layout.h"

namespace cufit::pack {
namespace {

using knowledge::Knowledge;

const MigProfile* find(const MigCard& card, std::string_view name) {
  for (const MigProfile& one : card.profiles)
    if (one.name == name) return &one;
  return nullptr;
}

TEST(MigProfiles, EachRowBelongsToACardOfTheTable) {
  const Knowledge& knowledge = Knowledge::builtin();
  std::set<std::string_view> tables;
  for (const knowledge::MigCardRow& row : knowledge.mig_cards) {
    tables.insert(row.table);
    const knowledge::Gpu* gpu = knowledge.find_gpu(row.gpu);
    ASSERT_NE(gpu, nullptr) << row.gpu;
    EXPECT_EQ(gpu->name, row.gpu);
    EXPECT_GT(gpu->mig_max, 0u) << row.gpu;
    EXPECT_TRUE(parse_version(row.driver)) << row.gpu;
  }
  for (const knowledge::MigProfileRow& row : knowledge.mig_profiles) {
    EXPECT_EQ(tables.count(row.table), 1u) << row.table;
    EXPECT_TRUE(row.basis == "seen" || row.basis == "bound") << row.name;
  }
  for (const knowledge::MigLimitRow& row : knowledge.mig_limits)
    EXPECT_FALSE(knowledge.message("report.mig.limit." + std::string(row.id), "zh").empty())
        << row.id;
}

// What the planner takes for granted.
TEST(MigProfiles, GeometryHoldsForEachCard) {
  const Knowledge& knowledge = Knowledge::builtin();
  for (const knowledge::MigCardRow& row : knowledge.mig_cards) {
    SCOPED_TRACE(std::string(row.gpu));
    const std::optional<MigCard> card = mig_card(row.gpu, knowledge);
    ASSERT_TRUE(card);
    const knowledge::Gpu* gpu = knowledge.find_gpu(row.gpu);
    const BinKind kind = divided_kind(*card);
    uint32_t smallest = UINT32_MAX;
    for (const MigProfile& one : card->profiles) {
      SCOPED_TRACE(one.name);
      ASSERT_FALSE(one.starts.empty());
      EXPECT_LE(one.starts.back() + one.units, card->units);
      EXPECT_LT(one.mib, gpu->memory_gb * 1024);  // GB are fewer than GiB
      smallest = std::min(smallest, one.units);
      // As many as it says have a place together, and no more.
      const auto fits = [&](uint32_t count) {
        return lay_out(std::vector<Extent>(count, Extent{one.units, one.starts}), card->units)
            .has_value();
      };
      EXPECT_TRUE(fits(one.most));
      if (!one.variant) {
        EXPECT_FALSE(fits(one.most + 1));
      }
      // A larger instance has room where each smaller one it stands for has.
      for (const MigProfile& other : card->profiles)
        if (!one.variant && !other.variant && other.units > one.units) {
          EXPECT_GE(other.mib, one.mib * (other.units / one.units)) << other.name;
        }
    }
    // Slots: the memory of all that fit at once is what one instance of the whole has, or less.
    for (const SlotType& slot : kind.slots) EXPECT_LE(slot.most * slot.mib, kind.mib);
    EXPECT_EQ(gpu->mig_max, card->units / smallest - (card->units == 8 ? 1 : 0));
  }
}

TEST(MigProfiles, AsNvidiasTablesSay) {
  const Knowledge& knowledge = Knowledge::builtin();
  const auto expect = [&](const char* gpu, const char* name, uint32_t id, uint32_t mib,
                          uint32_t most) {
    const std::optional<MigCard> card = mig_card(gpu, knowledge);
    ASSERT_TRUE(card) << gpu;
    const MigProfile* one = find(*card, name);
    ASSERT_NE(one, nullptr) << gpu << " " << name;
    EXPECT_EQ(one->id, id) << name;
    EXPECT_EQ(one->mib, mib) << name;
    EXPECT_EQ(one->most, most) << name;
  };
  expect("A30", "2g.12gb", 5, 11968, 2);
  expect("A100 SXM4 40GB", "1g.5gb", 19, 4864, 7);
  expect("A100 PCIe 80GB", "3g.40gb", 9, 40192, 2);
  expect("H100 SXM5 80GB", "3g.40gb", 9, 40448, 2);
  expect("H100 NVL", "7g.94gb", 0, 94848, 1);
  expect("GH200 96GB", "1g.24gb", 15, 23552, 4);
  expect("H200 SXM", "4g.71gb", 5, 71168, 1);
  expect("B200", "2g.45gb", 14, 45312, 3);
  expect("GB200", "1g.47gb", 15, 46592, 4);
  expect("RTX PRO 6000 Blackwell Server", "1g.24gb", 14, 23680, 4);
  EXPECT_FALSE(mig_card("L40S", knowledge));
}

TEST(MigProfiles, JobsGetTheSmallestInstanceAndItsComputeWhereThereIsRoom) {
  const MigCard card = *mig_card("H100 SXM5 80GB", Knowledge::builtin());
  const auto names = [&](const std::vector<uint32_t>& mib) {
    std::string out;
    const std::optional<std::vector<MigInstance>> found = instances_for(card, mib);
    if (!found) return std::string("none");
    for (const MigInstance& one : *found)
      out += (out.empty() ? "" : " ") + one.profile->name + ":" + std::to_string(one.start);
    return out;
  };
  EXPECT_EQ(names({5000}), "1g.10gb:0");
  // 2g.20gb and 1g.20gb have the same memory, 4g.40gb and 3g.40gb too.
  EXPECT_EQ(names({20000}), "2g.20gb:0");
  EXPECT_EQ(names({30000, 30000}), "4g.40gb:0 3g.40gb:4");
  // Four of 20 GB have a place as 1g.20gb alone; three of them can be 2g.20gb: 7 slices.
  EXPECT_EQ(names({20000, 20000, 20000, 20000}), "2g.20gb:0 2g.20gb:2 2g.20gb:4 1g.20gb:6");
  EXPECT_EQ(names({5000, 5000, 5000, 5000, 5000, 5000, 5000}).substr(0, 9), "1g.10gb:0");
  EXPECT_EQ(names({5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000}), "none");
  EXPECT_EQ(names({30000, 30000, 5000}), "none");
  EXPECT_EQ(names({90000}), "none");
  // 1g.20gb and 2g.20gb have 20096 MiB, of which an empty instance holds 48.
  EXPECT_EQ(names({20048}), "2g.20gb:0");
  EXPECT_EQ(names({20049}), "4g.40gb:0");
}

}  // namespace
}  // namespace cufit::pack
