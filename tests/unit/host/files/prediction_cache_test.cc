// SPDX-License-Identifier: Apache-2.0
#include "host/files/prediction_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/fake_root.h"

namespace cufit::host {
namespace prediction_cache_test {

TEST(PredictionCache, SaysWhatWasSaved) {
  test::FakeRoot root;
  const PredictionCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  EXPECT_FALSE(cache.load("a"));
  ASSERT_TRUE(cache.save("a", "one"));
  EXPECT_EQ(cache.load("a").value_or(""), "one");
  EXPECT_FALSE(cache.load("b"));
  EXPECT_FALSE(cache.save("a", std::string(k_most_prediction_bytes + 1, 'x')));
  EXPECT_EQ(cache.load("a").value_or(""), "one");
}

TEST(PredictionCache, NobodyElseMayHaveWrittenIt) {
  test::FakeRoot root;
  const PredictionCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  ASSERT_TRUE(cache.save("a", "one"));
  const std::string folder = cache.folder();
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) file = entry.path();
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_FALSE(cache.load("a"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(cache.load("a"));
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_FALSE(cache.load("a"));
  EXPECT_FALSE(cache.save("b", "two"));
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  std::filesystem::rename(file, file + ".other");
  std::filesystem::create_symlink(file + ".other", file);
  EXPECT_FALSE(cache.load("a"));
}

TEST(PredictionCache, ALinkIsNoFolder) {
  test::FakeRoot root;
  std::filesystem::create_directories(root.at("/elsewhere"));
  std::filesystem::create_directories(root.at("/c/cufit"));
  std::filesystem::create_directory_symlink(root.at("/elsewhere"), root.at("/c/cufit/fit"));
  const PredictionCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  EXPECT_FALSE(cache.save("a", "one"));
  EXPECT_TRUE(std::filesystem::is_empty(root.at("/elsewhere")));
}

TEST(PredictionCache, TheOldestGo) {
  test::FakeRoot root;
  const PredictionCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  for (size_t i = 0; i < k_most_predictions + 10; ++i)
    ASSERT_TRUE(cache.save(std::to_string(i), "x"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache.folder()))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, k_most_predictions);
}

TEST(PredictionCache, WithoutAHomeNothingIsKept) {
  test::FakeRoot root;
  EXPECT_FALSE(PredictionCache(root.host({})).save("a", "one"));
  EXPECT_FALSE(PredictionCache(root.host({{"HOME", "relative"}})).save("a", "one"));
}

TEST(PredictionCache, AMarkFollowsTheBytes) {
  test::FakeRoot root;
  std::filesystem::create_directories(root.at("/"));
  const std::string path = root.at("/train.py");
  std::ofstream(path) << "a";
  const std::string first = file_mark(path);
  EXPECT_EQ(first.substr(0, 7), "sha256:");
  std::ofstream(path) << "b";
  EXPECT_NE(file_mark(path), first);
  std::ofstream(path) << "a";
  EXPECT_EQ(file_mark(path), first);
  EXPECT_EQ(file_mark(path + ".none"), "");
  EXPECT_EQ(file_mark(root.at("/")), "");
}

TEST(PredictionCache, WhatChangedSinceIsKnownByItsTime) {
  test::FakeRoot root;
  std::filesystem::create_directories(root.at("/"));
  const std::string path = root.at("/train.py");
  const int64_t before = time_of_files();
  std::ofstream(path) << "a";
  EXPECT_TRUE(is_changed_since(path, before));
  EXPECT_FALSE(is_changed_since(path, before + 60));
  EXPECT_TRUE(is_changed_since(path + ".none", before));
}

}  // namespace prediction_cache_test
}  // namespace cufit::host
