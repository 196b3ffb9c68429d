// SPDX-License-Identifier: Apache-2.0
// What the guard's file promises: small, libc alone, no symbol newer than glibc 2.28, and no name of its own in programs.
#include <cctype>
#include <cstdio>

#include <gtest/gtest.h>

#include "guarded.h"
#include "support/places.h"

namespace cufit::test {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char piece[4096];
  while (size_t got = pipe ? fread(piece, 1, sizeof piece, pipe) : 0) text.append(piece, got);
  if (pipe) pclose(pipe);
  return text;
}

TEST(GuardLibrary, SmallAndOfLibcAlone) {
  std::string file = binary_dir() + "/libcufit-guard.so";
  EXPECT_LE(read_bytes(file).size(), 150u * 1024);
  std::string dynamic = output_of("readelf -dW '" + file + "'");
  if (dynamic.empty()) GTEST_SKIP() << "no readelf here";
  size_t needed = 0;
  for (size_t at = 0; (at = dynamic.find("(NEEDED)", at)) != std::string::npos; ++at) ++needed;
  EXPECT_EQ(needed, 1u) << dynamic;
  EXPECT_NE(dynamic.find("[libc.so.6]"), std::string::npos) << dynamic;
  EXPECT_EQ(dynamic.find("TEXTREL"), std::string::npos);
}

TEST(GuardLibrary, NoSymbolNewerThanGlibc228) {
  std::string symbols = output_of("readelf --dyn-syms -W '" + binary_dir() + "/libcufit-guard.so'");
  if (symbols.empty()) GTEST_SKIP() << "no readelf here";
  int seen = 0;
  for (size_t at = 0; (at = symbols.find("@GLIBC_2.", at)) != std::string::npos; ++seen) {
    at += 9;
    EXPECT_LE(std::stoi(symbols.substr(at, 3)), 28) << symbols.substr(at - 40, 60);
  }
  EXPECT_GT(seen, 10);
}

// Exported: the driver's names, dlsym, dlvsym and the version; nothing that a program could call by chance.
TEST(GuardLibrary, ExportsOnlyWhatItStandsBefore) {
  std::string symbols = output_of("readelf --dyn-syms -W '" + binary_dir() + "/libcufit-guard.so'");
  if (symbols.empty()) GTEST_SKIP() << "no readelf here";
  int exported = 0;
  for (size_t start = 0; start < symbols.size();) {
    size_t end = std::min(symbols.find('\n', start), symbols.size());
    std::string line = symbols.substr(start, end - start);
    start = end + 1;
    if (line.find("GLOBAL") == std::string::npos || line.find(" UND ") != std::string::npos)
      continue;
    std::string name = line.substr(line.rfind(' ') + 1);
    bool driver =
        name.compare(0, 2, "cu") == 0 && std::isupper(static_cast<unsigned char>(name[2]));
    EXPECT_TRUE(driver || name == "dlsym" || name == "dlvsym" || name == "cufit_guard_version" ||
                name.compare(0, 12, "cufit_spill_") == 0 ||
                name.compare(0, 23, "nvmlDeviceGetMemoryInfo") == 0)
        << name;
    ++exported;
  }
  EXPECT_GT(exported, 50);
}

}  // namespace
}  // namespace cufit::test
