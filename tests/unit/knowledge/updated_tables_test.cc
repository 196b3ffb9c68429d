// SPDX-License-Identifier: Apache-2.0
// A table file of data/ is read as it is built in; what is wrong with one is said with its place.
#include "knowledge/updated_tables.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/places.h"

namespace cufit::knowledge {
namespace updated_tables_test {

std::string release_file() {
  const std::string out = testing::TempDir() + "/cufit_release.toml";
  const std::string command = "'" + test::binary_dir() + "/gen-tables' '" + test::source_dir() +
                              "/data' --release '" + out + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ostringstream text;
  text << std::ifstream(out, std::ios::binary).rdbuf();
  std::filesystem::remove(out);
  return text.str();
}

TEST(UpdatedTables, OfDataAreTheBuiltInOnes) {
  const auto read = UpdatedTables::read(release_file(), "t.toml");
  ASSERT_TRUE(read) << read.error().text();
  const Knowledge &now = (*read)->knowledge(), &own = Knowledge::builtin();
  EXPECT_EQ(now.date, own.date);
  EXPECT_TRUE(now.updated);
  ASSERT_EQ(now.gpus.size(), own.gpus.size());
  for (size_t i = 0; i < own.gpus.size(); ++i) {
    const Gpu &a = now.gpus[i], &b = own.gpus[i];
    EXPECT_EQ(std::tie(a.name, a.nvml_name, a.arch, a.chip, a.cc, a.memory_gb, a.bandwidth_gbs,
                       a.segment, a.mig_max, a.ecc, a.pci_ids),
              std::tie(b.name, b.nvml_name, b.arch, b.chip, b.cc, b.memory_gb, b.bandwidth_gbs,
                       b.segment, b.mig_max, b.ecc, b.pci_ids));
  }
  ASSERT_EQ(now.torch_releases.size(), own.torch_releases.size());
  for (size_t i = 0; i < own.torch_releases.size(); ++i) {
    const TorchRelease &a = now.torch_releases[i], &b = own.torch_releases[i];
    EXPECT_EQ(std::tie(a.version, a.date, a.torchvision, a.torchaudio, a.triton, a.python,
                       a.default_linux_x86_64, a.default_python),
              std::tie(b.version, b.date, b.torchvision, b.torchaudio, b.triton, b.python,
                       b.default_linux_x86_64, b.default_python));
  }
  ASSERT_EQ(now.wheel_variants.size(), own.wheel_variants.size());
  for (size_t i = 0; i < own.wheel_variants.size(); ++i) {
    const WheelVariant &a = now.wheel_variants[i], &b = own.wheel_variants[i];
    EXPECT_EQ(std::tie(a.torch, a.tag, a.cudnn, a.nccl, a.arch_set, a.cxx11_abi, a.glibc),
              std::tie(b.torch, b.tag, b.cudnn, b.nccl, b.arch_set, b.cxx11_abi, b.glibc));
  }
  ASSERT_EQ(now.windows.size(), own.windows.size());
  for (size_t i = 0; i < own.windows.size(); ++i)
    EXPECT_EQ(std::tie(now.windows[i].first_branch, now.windows[i].last_branch),
              std::tie(own.windows[i].first_branch, own.windows[i].last_branch));
  EXPECT_EQ(now.extensions.size(), own.extensions.size());
  EXPECT_EQ(now.forward_compat.size(), own.forward_compat.size());
  EXPECT_NE(now.extensions.data(), own.extensions.data());  // its own rows
  EXPECT_EQ(now.findings.data(), own.findings.data());      // not of the file
}

std::string problem_with(const std::string& before, const std::string& after) {
  std::string text = release_file();
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  if (at != std::string::npos) text.replace(at, before.size(), after);
  const auto read = UpdatedTables::read(text, "t.toml");
  return read ? "" : read.error().text();
}

TEST(UpdatedTables, AreRefusedWithThePlace) {
  EXPECT_EQ(problem_with("format = 1", "format = 7"),
            "t.toml, line 1: tables of format 7; this cufit reads format 1");
  EXPECT_EQ(problem_with("format = 1", "format = 1\nmore = 2"),
            "t.toml, line 2: unknown table `more`");
  EXPECT_NE(
      problem_with("segment = \"consumer\"", "segment = 3").find("`segment` has the wrong type"),
      std::string::npos);
  EXPECT_NE(problem_with("mig_max = 0", "mig_max = -1").find("`mig_max` is out of range"),
            std::string::npos);
  EXPECT_NE(problem_with("mig_max = 0", "mig_min = 0").find("row lacks `mig_max`"),
            std::string::npos);
  EXPECT_NE(problem_with("ecc = \"none\"", "ecc = \"none\", what = 1").find("unknown key `what`"),
            std::string::npos);
  EXPECT_EQ(UpdatedTables::read(std::string(k_tables_most_bytes + 1, ' '), "t.toml").error().text(),
            "t.toml: larger than 4 MiB");
}

TEST(UpdatedTables, OlderThanTheBuiltInAreNoneOfIts) {
  std::string text = release_file();
  text.replace(text.find("date = "), 17, "date = 2026-01-01");
  const auto read = UpdatedTables::read(text, "t.toml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::unsupported);
}

TEST(UpdatedTables, BuiltInOnesDoNotContradictThemselves) {
  EXPECT_EQ(contradiction_in(Knowledge::builtin()), "");
}

}  // namespace updated_tables_test
}  // namespace cufit::knowledge
