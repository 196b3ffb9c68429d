// SPDX-License-Identifier: Apache-2.0
// Settings as a text say all of them: one that is forgotten is lost without a word.
#include "memory/allocator/settings_text.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::memory {
namespace settings_text_test {

const VersionProfile k_newest = version_profile(2, 14);

// A value of the key that changes the settings, as "key:value"; empty where none does.
std::string changed_setting(std::string_view key) {
  for (const char* value : {"True", "64", "0.5", "cudaMallocAsync"}) {
    const std::string text = std::string(key) + ":" + value;
    const Result<Settings> settings = parse_allocator_settings(text, k_newest);
    if (settings && !(*settings == Settings())) return text;
  }
  return "";
}

TEST(SettingsText, SaysEveryKeyThatTheParserKnows) {
  size_t said = 0;
  for (const std::string_view key : allocator_setting_keys()) {
    const std::string text = changed_setting(key);
    // Those that change no placement are checked and forgotten.
    const bool forgotten = starts_with(key, "pinned_") || starts_with(key, "release_lock_on_");
    EXPECT_EQ(text.empty(), forgotten) << key;
    if (text.empty()) continue;
    ++said;
    const Settings settings = parse_allocator_settings(text, k_newest).value();
    EXPECT_EQ(settings_text(settings), text);
  }
  EXPECT_EQ(said, 10u);
}

TEST(SettingsText, ComesBackAsItWasRead) {
  for (const char* text :
       {"", "expandable_segments:True,max_split_size_mb:128,garbage_collection_threshold:0.8",
        "roundup_power2_divisions:[64:8,256:4,>:2]",
        "large_segment_size_mb:32,max_split_size_mb:64,max_non_split_rounding_mb:48",
        "large_segment_size_mb:12,max_split_size_mb:15",
        "per_process_memory_fraction:0.25,throw_on_cudamalloc_oom:True",
        "backend:cudaMallocAsync,graph_capture_record_stream_reuse:True"}) {
    const Settings settings = parse_allocator_settings(text, k_newest).value();
    const Result<Settings> again = parse_allocator_settings(settings_text(settings), k_newest);
    ASSERT_TRUE(again) << settings_text(settings) << ": " << again.error().text();
    EXPECT_EQ(*again, settings) << text << " became " << settings_text(settings);
  }
}

}  // namespace settings_text_test
}  // namespace cufit::memory
