// SPDX-License-Identifier: Apache-2.0
#include "host/driver/answer_cache.h"

#include <gtest/gtest.h>

#include "support/fake_root.h"

namespace cufit::host {
namespace answer_cache_test {

const std::string k_key = "boot 1\nvariable CUDA_VISIBLE_DEVICES=0\n";

facts::Facts answer(int init, size_t devices) {
  facts::Facts facts;
  facts.cuda.library = known<std::string>("/usr/lib/libcuda.so.1", SourceKind::cuda, "");
  facts.cuda.init_result = known(init, SourceKind::cuda, "cuInit");
  facts.cuda.driver_version = known(12020, SourceKind::cuda, "");
  facts.nvml.driver_version = known<std::string>("535.183.01", SourceKind::nvml, "");
  for (size_t i = 0; i < devices; ++i) {
    facts::CudaDevice device;
    device.name = known<std::string>("NVIDIA\tH200", SourceKind::cuda, "");
    device.compute_capability = known<std::string>("9.0", SourceKind::cuda, "");
    device.uuid = known<std::string>("GPU-1", SourceKind::cuda, "");
    facts.cuda.devices.push_back(device);
  }
  return facts;
}

TEST(AnswerCache, EntryKeepsTheDevices) {
  facts::Facts read;
  ASSERT_TRUE(read_entry(entry_text(k_key, 100, answer(0, 2)), k_key, 200, read));
  EXPECT_EQ(read.cuda.init_result.value_or(-1), 0);
  EXPECT_EQ(read.cuda.driver_version.value_or(0), 12020);
  EXPECT_EQ(read.nvml.driver_version.value_or(""), "535.183.01");
  EXPECT_FALSE(read.nvml.cuda_version);
  ASSERT_EQ(read.cuda.devices.size(), 2u);
  EXPECT_EQ(read.cuda.devices[1].ordinal, 1u);
  EXPECT_EQ(read.cuda.devices[1].name->find('\t'), std::string::npos);
  EXPECT_EQ(read.cuda.devices[1].compute_capability.value_or(""), "9.0");
  EXPECT_FALSE(read.cuda.devices[1].pci_address);
}

TEST(AnswerCache, LivesAsLongAsItMay) {
  const struct {
    int init;
    uint64_t age;
    bool used;
  } rows[] = {{0, 0, true},
              {0, k_answer_life_seconds - 1, true},
              {0, k_answer_life_seconds, false},
              {100, k_no_device_life_seconds - 1, true},
              {100, k_no_device_life_seconds, false},
              {803, 0, false},
              {999, 0, false}};
  for (const auto& row : rows) {
    facts::Facts read;
    const std::string text = entry_text(k_key, 1000, answer(row.init, row.init == 0 ? 1 : 0));
    EXPECT_EQ(read_entry(text, k_key, 1000 + row.age, read), row.used) << row.init << row.age;
  }
  facts::Facts read;
  EXPECT_FALSE(read_entry(entry_text(k_key, 1000, answer(0, 1)), k_key, 999, read));  // to come
}

TEST(AnswerCache, NothingThatIsNotWholeIsUsed) {
  const std::string text = entry_text(k_key, 100, answer(0, 2));
  for (size_t i = 0; i < text.size(); ++i) {
    facts::Facts read;
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(read_entry(changed, k_key, 200, read)) << i;
    EXPECT_FALSE(read_entry(text.substr(0, i), k_key, 200, read)) << i;
    EXPECT_TRUE(read.cuda.devices.empty());
  }
  facts::Facts read;
  EXPECT_FALSE(read_entry(text + "\n", k_key, 200, read));
  EXPECT_FALSE(read_entry(text, k_key + "x", 200, read));
  EXPECT_FALSE(read_entry(text, k_key.substr(1), 200, read));
  EXPECT_FALSE(read_entry(text, "", 200, read));
}

TEST(AnswerCache, FolderComesFromTheUser) {
  test::FakeRoot root;
  EXPECT_EQ(AnswerCache(root.host({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/h"}})).folder(),
            "/c/cufit/gpus");
  EXPECT_EQ(AnswerCache(root.host({{"XDG_CACHE_HOME", "c"}, {"HOME", "/h"}})).folder(),
            "/h/.cache/cufit/gpus");
  EXPECT_EQ(AnswerCache(root.host({{"HOME", ""}})).folder(), "");
  facts::Facts read;
  const AnswerCache none(root.host());
  EXPECT_TRUE(none.save(k_key, 1, answer(0, 1)));
  EXPECT_FALSE(none.load(k_key, 1, read));
}

TEST(AnswerCache, FilesOfThisUserAlone) {
  test::FakeRoot root;
  const AnswerCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  facts::Facts read;
  ASSERT_TRUE(cache.save(k_key, 1, answer(0, 1)));
  EXPECT_TRUE(cache.load(k_key, 1, read));
  EXPECT_FALSE(cache.load("", 1, read));
  for (const mode_t mode : {0640u, 0604u, 0660u}) {
    root.mode(cache.file_of(k_key).substr(root.path().size()), mode);
    EXPECT_FALSE(cache.load(k_key, 1, read)) << mode;
  }
  ASSERT_TRUE(cache.save(k_key, 1, answer(0, 1)));  // replaced by one that is good
  EXPECT_TRUE(cache.load(k_key, 1, read));
  if (::geteuid() == 0) {
    test::Unprivileged somebody;
    EXPECT_FALSE(cache.load(k_key, 1, read));
    EXPECT_FALSE(cache.save(k_key, 1, answer(0, 1)));
  }
  EXPECT_TRUE(cache.save(k_key + "2", 1, answer(803, 0)));
  EXPECT_FALSE(std::filesystem::exists(cache.file_of(k_key + "2")));
}

// `sudo -E`: a folder of root below a user's HOME would keep that user from keeping anything.
TEST(AnswerCache, RootMakesNothingInAUsersHome) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  test::FakeRoot root;
  const std::string home = root.at("/home");
  std::filesystem::create_directories(home);
  ASSERT_EQ(::chown(home.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(AnswerCache(root.host({{"HOME", home}})).save(k_key, 1, answer(0, 1)));
  EXPECT_FALSE(std::filesystem::exists(home + "/.cache"));
}

TEST(AnswerCache, DoesNotGrowForEver) {
  test::FakeRoot root;
  const AnswerCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(cache.save(std::to_string(i), 1, answer(0, 1)));
  const auto files = [&cache] {
    return std::distance(std::filesystem::directory_iterator(cache.folder()), {});
  };
  EXPECT_LE(files(), 64);
  facts::Facts read;
  EXPECT_TRUE(cache.load("199", 1, read));
}

TEST(AnswerCache, IsEmptiedWhenItHoldsSixtyFour) {
  test::FakeRoot root;
  const AnswerCache cache(root.host({{"XDG_CACHE_HOME", root.at("/c")}}));
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(cache.save(std::to_string(i), 1, answer(0, 1)));
  facts::Facts read;
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(cache.load(std::to_string(i), 1, read)) << i;
  ASSERT_TRUE(cache.save("64", 1, answer(0, 1)));
  EXPECT_TRUE(cache.load("64", 1, read));
  EXPECT_FALSE(cache.load("63", 1, read));
}

}  // namespace answer_cache_test
}  // namespace cufit::host
