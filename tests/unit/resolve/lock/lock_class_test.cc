// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_class.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace lock_class_test {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

Plan plan_of(const char* target) {
  return plan_classes({*described_target(target, builtin())}, {}, builtin());
}

TEST(UvPlatform, IsTheOldestThatAllHave) {
  const auto at = [](const char* text) { return *parse_version(text); };
  EXPECT_EQ(uv_platform("linux_x86_64", {}, std::nullopt), "x86_64-manylinux_2_28");
  EXPECT_EQ(uv_platform("linux_x86_64", {at("2.36")}, at("2.28")), "x86_64-manylinux_2_28");
  EXPECT_EQ(uv_platform("linux_x86_64", {at("2.17"), at("2.36")}, at("2.17")),
            "x86_64-manylinux_2_17");
  EXPECT_EQ(uv_platform("linux_aarch64", {at("2.39")}, at("2.34")), "aarch64-manylinux_2_34");
  EXPECT_EQ(uv_platform("linux_x86_64", {at("2.27")}, std::nullopt), "x86_64-manylinux_2_17");
}

TEST(LockClass, SaysWhatItServesAndWhy) {
  const Plan plan = plan_of("RTX 4090,535,glibc=2.31");
  ASSERT_EQ(plan.classes.size(), 1u);
  const LockClass row = lock_class(plan, plan.classes[0], false);
  EXPECT_EQ(row.file, "pylock." + row.name + ".toml");
  EXPECT_EQ(row.serves, std::vector<std::string>{"RTX 4090,535,glibc=2.31"});
  EXPECT_EQ(row.why.rfind("the newest torch for RTX 4090,535,glibc=2.31", 0), 0u) << row.why;
  const std::string of_index = lock_class(plan, plan.classes[0], true).why;
  EXPECT_EQ(of_index.rfind("the newest torch of the index for ", 0), 0u) << of_index;
  EXPECT_EQ(uv_platform(plan, plan.classes[0]), "x86_64-manylinux_2_28");
}

TEST(LockClass, CountsThePackagesThatApply) {
  LockClass row;
  row.wheel.platform = "linux_x86_64";
  row.python = "3.11";
  formats::Pylock pylock;
  pylock.packages.resize(3);
  pylock.packages[0].name = "numpy";
  pylock.packages[0].wheels = {{"numpy-2.0-cp311-cp311-manylinux_2_17_x86_64.whl", "", "", 7, {}}};
  pylock.packages[1].name = "flash-attn", pylock.packages[1].version = "2.8.3";
  pylock.packages[1].sdist = formats::PylockFile{"flash_attn-2.8.3.tar.gz", "", "", {}, {}};
  pylock.packages[2].name = "colorama", pylock.packages[2].marker = "sys_platform == 'win32'";
  const LockedPackages packages = take_packages(row, pylock, "x86_64-manylinux_2_28");
  EXPECT_EQ(row.packages, 2u);
  EXPECT_EQ(row.download_bytes, 7u);
  EXPECT_EQ(packages.unsized, 1u);
  EXPECT_EQ(packages.built, std::vector<std::string>{"flash-attn 2.8.3"});
}

TEST(Description, IsReadAsTheSameTarget) {
  for (const char* words : {"NVIDIA A800 80GB PCIe,535.54.03,glibc=2.31", "cpu",
                            "2x NVIDIA GeForce GTX 1080 + NVIDIA H200,580.65.06"}) {
    const Target target = *described_target(words, builtin());
    const std::string again = description_of(target, builtin());
    const Result<Target> read = described_target(again, builtin());
    ASSERT_TRUE(read) << again;
    EXPECT_EQ(gpus_text(*read), gpus_text(target)) << again;
    EXPECT_EQ(read->driver, target.driver) << again;
    EXPECT_EQ(read->glibc, target.glibc) << again;
  }
}

TEST(Description, IsNoneWhereWordsDoNotSayItAll) {
  Target target = *described_target("RTX 4090,535", builtin());
  target.libc = "musl";
  EXPECT_EQ(description_of(target, builtin()), "");
  target.libc = "glibc", target.driver.reset();
  EXPECT_EQ(description_of(target, builtin()), "");
  target.gpus.clear(), target.unknown_gpus = {"10de:ffff"};
  EXPECT_EQ(description_of(target, builtin()), "");
}

TEST(Serves, AllGpusInGroupsToo) {
  const Target both = *described_target("GTX 1080 + RTX 5090,580", builtin());
  const Plan plan = plan_classes({both}, {}, builtin());
  LockFile lock;
  for (const Class& one : plan.classes) lock.classes.push_back(lock_class(plan, one, false));
  ASSERT_EQ(lock.classes.size(), 2u);
  const auto served_by = [&] {
    return serves_all_gpus(lock, both, route(lock, both, builtin()), builtin());
  };
  EXPECT_TRUE(served_by());
  lock.classes.pop_back();
  EXPECT_FALSE(served_by());
}

}  // namespace lock_class_test
}  // namespace cufit::resolve
