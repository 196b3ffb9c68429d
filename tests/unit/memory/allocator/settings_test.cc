// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator/allocator_settings.h"

#include <gtest/gtest.h>

namespace cufit::memory {
namespace settings_test {

Settings parsed(const char* text, uint32_t minor = 14) {
  auto settings = parse_allocator_settings(text, version_profile(2, minor));
  EXPECT_TRUE(settings) << text;
  return settings ? *settings : Settings();
}

std::string error(const char* text, uint32_t minor = 14) {
  auto settings = parse_allocator_settings(text, version_profile(2, minor));
  return settings ? "accepted" : settings.error().what;
}

TEST(AllocatorSettings, EmptyTextIsTheDefault) {
  const Settings settings = parsed("");
  EXPECT_EQ(settings.max_split_size, k_no_max_split);
  EXPECT_EQ(settings.max_non_split_rounding_size, 20 * k_mib);
  EXPECT_EQ(settings.large_segment_size, 20 * k_mib);
  EXPECT_FALSE(settings.expandable_segments);
  EXPECT_FALSE(settings.per_process_memory_fraction);
}

TEST(AllocatorSettings, ReadsSeveralKeysAndDropsSpaces) {
  const Settings settings = parsed(
      " expandable_segments:True, max_split_size_mb: 128,garbage_collection_threshold:0.75,"
      "per_process_memory_fraction:0.5,pinned_num_register_threads:8,backend:native,");
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.max_split_size, 128 * k_mib);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.75);
  EXPECT_EQ(settings.per_process_memory_fraction, 0.5);
  EXPECT_TRUE(settings.not_modelled.empty());
}

TEST(AllocatorSettings, SizesBeyondTheAddressSpaceAreCut) {
  EXPECT_EQ(parsed("max_split_size_mb:99999999999999999").max_split_size,
            UINT64_MAX / k_mib * k_mib);
}

TEST(AllocatorSettings, OneNumberFillsAllDivisions) {
  for (uint64_t divisions : parsed("roundup_power2_divisions:4").roundup_power2_divisions)
    EXPECT_EQ(divisions, 4u);
}

TEST(AllocatorSettings, ListOfDivisions) {
  // 64 MiB is entry 6, 256 MiB entry 8. Entry 7 is not named and keeps 0.
  const PowerOfTwoDivisions newer = {8, 8, 8, 8, 8, 8, 8, 0, 4, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_EQ(parsed("roundup_power2_divisions:[64:8,256:4,>:2]").roundup_power2_divisions, newer);
  // To 2.8, ">" began with the last named entry.
  const PowerOfTwoDivisions older = {8, 8, 8, 8, 8, 8, 8, 0, 2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_EQ(parsed("roundup_power2_divisions:[64:8,256:4,>:2]", 8).roundup_power2_divisions, older);
  // Sizes above the table count for its last entry.
  EXPECT_EQ(parsed("roundup_power2_divisions:[1048576:4]").roundup_power2_divisions[15], 4u);
}

TEST(AllocatorSettings, ListAmongOtherKeys) {
  const Settings settings = parsed("roundup_power2_divisions:[1:1,2:2],expandable_segments:True");
  EXPECT_EQ(settings.roundup_power2_divisions[1], 2u);
  EXPECT_TRUE(settings.expandable_segments);
}

TEST(AllocatorSettings, NamesWhatItDoesNotModel) {
  EXPECT_EQ(parsed("backend:cudaMallocAsync").not_modelled,
            std::vector<std::string>{"backend:cudaMallocAsync"});
  EXPECT_EQ(parsed("graph_capture_record_stream_reuse:True").not_modelled.size(), 1u);
  EXPECT_TRUE(parsed("graph_capture_record_stream_reuse:False").not_modelled.empty());
}

TEST(AllocatorSettings, BoundOfSplitSizesPerVersion) {
  EXPECT_EQ(parsed("max_split_size_mb:20", 9).max_split_size, 20 * k_mib);
  EXPECT_EQ(error("max_split_size_mb:20", 8),
            "allocator setting `max_split_size_mb`: must be more than 20, but `20` stands at byte "
            "18");
  EXPECT_EQ(error("large_segment_size_mb:64,max_split_size_mb:63"),
            "allocator setting `max_split_size_mb`: must be at least 64, but `63` stands at byte "
            "43");
  EXPECT_EQ(parsed("large_segment_size_mb:64,max_split_size_mb:64").max_split_size, 64 * k_mib);
}

TEST(AllocatorSettings, ErrorsNameKeyAndPlace) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"expandable_segment:True",
       "unknown allocator setting `expandable_segment` at byte 0, did you mean "
       "`expandable_segments`?"},
      {"backend:native,foo:1", "unknown allocator setting `foo` at byte 15"},
      {"expandable_segments:true",
       "allocator setting `expandable_segments`: expected True or False, but `true` stands at byte "
       "20"},
      {"max_split_size_mb",
       "allocator setting `max_split_size_mb`: expected `:`, but the text ends at byte 17"},
      {"max_split_size_mb:12x",
       "allocator setting `max_split_size_mb`: expected a whole number, but `12x` stands at byte "
       "18"},
      {"garbage_collection_threshold:1.0",
       "allocator setting `garbage_collection_threshold`: must lie between 0 and 1, but `1.0` "
       "stands at byte 29"},
      {"roundup_power2_divisions:3",
       "allocator setting `roundup_power2_divisions`: must be a power of two, but `3` stands at "
       "byte 25"},
      {"roundup_power2_divisions:[64:8",
       "allocator setting `roundup_power2_divisions`: expected `,`, but the text ends at byte 30"},
      {"roundup_power2_divisions:[65:8]",
       "allocator setting `roundup_power2_divisions`: a size must be a power of two, but `65` "
       "stands at byte 26"},
      {"large_segment_size_mb:10",
       "allocator setting `large_segment_size_mb`: must be more than 10, but `10` stands at byte "
       "22"},
      {"backend:malloc",
       "allocator setting `backend`: expected native or cudaMallocAsync, but `malloc` stands at "
       "byte 8"},
      {"expandable_segments:True max_split_size_mb:64",
       "allocator setting `expandable_segments`: expected True or False, but "
       "`Truemax_split_size_mb` stands at byte 20"},
      {",", "unknown allocator setting `,` at byte 0"},
  };
  for (const auto& c : cases) EXPECT_EQ(error(c.text), c.says) << c.text;
  EXPECT_EQ(error("expandable_segments:True", 0),
            "allocator setting `expandable_segments` at byte 0 needs torch 2.1 or later");
}

}  // namespace settings_test
}  // namespace cufit::memory
