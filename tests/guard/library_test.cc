// SPDX-License-Identifier: Apache-2.0
// What the guard's file promises: small, libc alone, no symbol newer than glibc 2.28, and no name of its own in programs.
#include <cctype>
#include <cstdio>
#include <sstream>

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

// Each program of a launch maps it, and most call nothing of it: one page of its own, and next to nothing to fill in there.
TEST(GuardLibrary, LittleToDoAtEachStart) {
  std::string file = "'" + binary_dir() + "/libcufit-guard.so'";
  std::string segments = output_of("readelf -lW " + file);
  if (segments.empty()) GTEST_SKIP() << "no readelf here";
  EXPECT_EQ(segments.find("GNU_RELRO"), std::string::npos) << "one mprotect, one mapping more";
  int writable = 0;
  for (size_t at = 0; (at = segments.find("  LOAD ", at)) != std::string::npos; ++at) {
    std::istringstream words(segments.substr(at, segments.find('\n', at) - at));
    std::string type, offset, physical, flags;
    uint64_t address = 0, in_file = 0, in_memory = 0;
    words >> type >> offset >> std::hex >> address >> physical >> in_file >> in_memory >> flags;
    if (flags != "RW") continue;
    ++writable;
    EXPECT_EQ(address / 4096, (address + in_memory - 1) / 4096) << segments;
  }
  EXPECT_EQ(writable, 1) << segments;
  std::string dynamic = output_of("readelf -dW " + file);
  EXPECT_EQ(dynamic.find("BIND_NOW"), std::string::npos) << "a look-up for each name of libc";
  std::string relocations = output_of("readelf -rW " + file);
  size_t addresses = 0;
  for (size_t at = 0; (at = relocations.find("_RELATIVE", at)) != std::string::npos; ++at)
    ++addresses;
  EXPECT_LE(addresses, 8u) << relocations;
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
