// SPDX-License-Identifier: Apache-2.0
#include "checks/code_match.h"

#include <gtest/gtest.h>

#include <set>

#include "base/format.h"

namespace cufit::checks {
namespace code_match_test {

using formats::CodeKind;
using formats::DeviceCode;

const knowledge::PtxIsaRow k_isas[] = {{"7.8", "11.8"}, {"8.0", "12.0"}, {"8.2", "12.2"},
                                       {"8.5", "12.5"}, {"8.7", "12.8"}, {"8.8", "12.9"},
                                       {"9.0", "13.0"}, {"9.1", "13.1"}};

knowledge::Knowledge small_world() {
  knowledge::Knowledge world;
  world.ptx_isas = k_isas;
  world.own_code = knowledge::Knowledge::builtin().own_code;
  world.arch_families = knowledge::Knowledge::builtin().arch_families;
  world.renumbered_archs = knowledge::Knowledge::builtin().renumbered_archs;
  return world;
}

// "75 90a ptx120@9.0 lto90" -> entries
std::vector<DeviceCode> code_of(const std::string& text) {
  std::vector<DeviceCode> out;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    DeviceCode code{CodeKind::cubin, std::string(word), {}, 1, true};
    if (starts_with(word, "ptx")) {
      std::vector<std::string_view> parts = split(word.substr(3), '@');
      code = {CodeKind::ptx, std::string(parts[0]), std::string(parts[1]), 1, true};
    } else if (starts_with(word, "lto")) {
      code = {CodeKind::lto, std::string(word.substr(3)), {}, 1, true};
    }
    out.push_back(code);
  }
  return out;
}

ComputeCapability cc(std::string_view text) { return *parse_compute_capability(text); }

const char* const k_devices[] = {"3.0",  "3.2",  "3.5",  "3.7",  "5.0", "5.2",  "5.3",
                                 "6.0",  "6.1",  "6.2",  "7.0",  "7.2", "7.5",  "8.0",
                                 "8.6",  "8.7",  "8.8",  "8.9",  "9.0", "10.0", "10.1",
                                 "10.3", "10.7", "11.0", "12.0", "12.1"};

std::string devices_of(bool (*runs)(const std::string&, ComputeCapability,
                                    const knowledge::Knowledge&),
                       const std::string& arch) {
  const knowledge::Knowledge world = small_world();
  std::vector<std::string> out;
  for (const char* device : k_devices)
    if (runs(arch, cc(device), world)) out.push_back(device);
  return join(out, " ");
}

// Every architecture against every device: the whole table of machine code.
TEST(CodeMatch, CubinRunsOnExactlyTheseDevices) {
  const struct {
    const char* arch;
    const char* devices;
  } k_rows[] = {
      {"30", "3.0 3.5 3.7"},
      {"32", "3.2"},
      {"35", "3.5 3.7"},
      {"37", "3.7"},
      {"50", "5.0 5.2"},
      {"52", "5.2"},
      {"53", "5.3"},
      {"60", "6.0 6.1"},
      {"61", "6.1"},
      {"62", "6.2"},
      {"70", "7.0 7.5"},
      {"72", "7.2"},
      {"75", "7.5"},
      {"80", "8.0 8.6 8.8 8.9"},
      {"86", "8.6 8.8 8.9"},
      {"87", "8.7"},
      {"88", "8.8 8.9"},
      {"89", "8.9"},
      {"90", "9.0"},
      {"90a", "9.0"},
      {"100", "10.0 10.3 10.7"},
      {"100a", "10.0"},
      {"100f", "10.0 10.3"},
      {"101", "10.1 11.0"},
      {"101a", "10.1"},
      {"101f", "10.1 11.0"},
      {"103", "10.3 10.7"},
      {"103a", "10.3"},
      {"103f", "10.3"},
      {"107", "10.7"},
      {"107a", "10.7"},
      {"107f", "10.7"},
      {"110", "10.1 11.0"},
      {"110a", "11.0"},
      {"110f", "10.1 11.0"},
      {"120", "12.0 12.1"},
      {"120a", "12.0"},
      {"120f", "12.0 12.1"},
      {"121", "12.1"},
      {"121a", "12.1"},
      {"121f", "12.1"},
      {"", ""},
      {"a", ""},
      {"9", ""},
      {"9x", ""},
      {"100ff", ""},
      {"99999", ""},
  };
  for (const auto& row : k_rows)
    EXPECT_EQ(devices_of(cubin_runs, row.arch), row.devices) << "sm_" << row.arch;
}

// What stands apart is in the tables, none of it in the rule.
TEST(CodeMatch, WithoutTheirRowsCapabilitiesAreLikeOthers) {
  const knowledge::Knowledge bare;
  EXPECT_TRUE(cubin_runs("80", cc("8.7"), bare));
  EXPECT_TRUE(cubin_runs("87", cc("8.9"), bare));
  EXPECT_TRUE(cubin_runs("100", cc("10.1"), bare));
  EXPECT_FALSE(cubin_runs("101", cc("11.0"), bare));
  EXPECT_FALSE(cubin_runs("100f", cc("10.3"), bare));
  EXPECT_FALSE(ptx_runs("110", cc("10.1"), bare));
}

TEST(CodeMatch, PtxRunsOnExactlyTheseDevices) {
  const struct {
    const char* arch;
    const char* devices;
  } k_rows[] = {
      {"30",
       "3.0 3.2 3.5 3.7 5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 "
       "10.7 11.0 12.0 12.1"},
      {"72", "7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 10.7 11.0 12.0 12.1"},
      {"80", "8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 10.7 11.0 12.0 12.1"},
      {"90", "9.0 10.0 10.1 10.3 10.7 11.0 12.0 12.1"},
      {"90a", "9.0"},
      {"100", "10.0 10.1 10.3 10.7 11.0 12.0 12.1"},
      {"100a", "10.0"},
      {"100f", "10.0 10.3"},
      {"103f", "10.3"},
      {"110", "10.1 11.0 12.0 12.1"},
      {"120", "12.0 12.1"},
      {"120a", "12.0"},
      {"120f", "12.0 12.1"},
      {"121f", "12.1"},
      {"x", ""},
  };
  for (const auto& row : k_rows)
    EXPECT_EQ(devices_of(ptx_runs, row.arch), row.devices) << "compute_" << row.arch;
}

struct Case {
  const char* name;
  const char* code;
  const char* device;
  const char* driver;  // CUDA version, "" = unknown
  Match match;
  const char* arch;
  const char* isa = "";
  const char* needs = "";
};

const Case k_cases[] = {
    {"Ada on the CUDA 13 wheel", "75 80 86 90 100 120", "8.9", "13.0", Match::cubin, "86"},
    {"Ada on its own code", "75 80 86 89 90", "8.9", "13.0", Match::cubin, "89"},
    {"B300 by the family of B200", "75 80 90a 100f 120f", "10.3", "13.0", Match::cubin, "100f"},
    {"B300 and code for B200 alone", "75 80 90 100a 120", "10.3", "13.0", Match::none, ""},
    {"Orin on a desktop wheel", "75 80 86 90 100 120", "8.7", "13.0", Match::none, ""},
    {"Orin on its own wheel", "80 87 90", "8.7", "13.0", Match::cubin, "87"},
    {"Xavier on a desktop wheel", "60 70 75 80 86 90", "7.2", "11.8", Match::none, ""},
    {"Orin compiles PTX", "80 ptx80@8.0", "8.7", "12.2", Match::ptx, "80", "8.0"},
    {"PTX for Hopper's own features on B200", "80 90 ptx90a@8.0", "10.0", "13.0", Match::none, ""},
    {"Pascal on a cu128 wheel", "75 80 86 90 100 120", "6.1", "12.8", Match::none, ""},
    {"Pascal on a cu126 wheel", "50 60 70 75 80 86 90", "6.1", "12.8", Match::cubin, "60"},
    {"V100 with driver 580 on cu126", "50 60 70 75 80 86 90", "7.0", "13.0", Match::cubin, "70"},
    {"V100 with driver 580 on cu130", "75 80 86 90 100 120", "7.0", "13.0", Match::none, ""},
    {"CUDA 12.9 PTX on a 535 driver", "80 90 ptx120@8.8", "12.0", "12.2", Match::ptx_too_new, "120",
     "8.8", "12.9"},
    {"torch 2.13.0's accident", "75 80 86 90 100 120 ptx120@9.0", "12.1", "13.0", Match::cubin,
     "120"},
    {"GB10 by GB202's code", "75 80 86 90 100 120", "12.1", "13.0", Match::cubin, "120"},
    {"two generations: Pascal", "75 120", "6.1", "13.0", Match::none, ""},
    {"two generations: Blackwell", "75 120", "12.0", "13.0", Match::cubin, "120"},
    {"Thor by its old name", "90 101", "11.0", "13.0", Match::cubin, "101"},
    {"Thor and B200's code", "90 100", "11.0", "13.0", Match::none, ""},
    {"K80 by Kepler's code", "35 50", "3.7", "11.4", Match::cubin, "35"},
    {"machine code before PTX of the same architecture", "80 ptx80@9.1", "8.6", "12.2",
     Match::cubin, "80"},
    {"highest PTX that fits", "ptx75@8.0 ptx90@8.0 ptx120@8.0", "10.0", "12.8", Match::ptx, "90",
     "8.0"},
    {"the chosen PTX is too new and there is no way back", "ptx75@7.8 ptx90@9.0", "9.0", "12.2",
     Match::ptx_too_new, "90", "9.0", "13.0"},
    {"newest ISA of equal PTX", "ptx90@8.0 ptx90@8.7", "9.0", "12.2", Match::ptx_too_new, "90",
     "8.7", "12.8"},
    {"driver not known", "80 ptx120@8.8", "12.0", "", Match::ptx_unknown, "120", "8.8"},
    {"driver not known, machine code", "80", "8.6", "", Match::cubin, "80"},
    {"exactly the ISA's CUDA", "ptx90@8.5", "9.0", "12.5", Match::ptx, "90", "8.5"},
    {"ISA newer than the table", "ptx90@9.9", "9.0", "13.1", Match::ptx_unknown, "90", "9.9"},
    {"ISA older than the table", "ptx50@4.3", "9.0", "13.1", Match::ptx, "50", "4.3"},
    {"ISA older than the table on an older driver", "ptx50@4.3", "6.1", "10.2", Match::ptx_unknown,
     "50", "4.3"},
    {"ISA that is no version", "ptx90@?", "9.0", "13.1", Match::ptx_unknown, "90", "?"},
    {"plain code is named before the specific one", "100a 100 100f", "10.0", "13.0", Match::cubin,
     "100"},
    {"link-time code alone is nothing to judge", "lto90", "9.0", "13.0", Match::no_code, ""},
    {"nothing", "", "9.0", "13.0", Match::no_code, ""},
};

TEST(CodeMatch, AnswersTheCasesThatOthersGetWrong) {
  const knowledge::Knowledge world = small_world();
  for (const Case& row : k_cases) {
    SCOPED_TRACE(row.name);
    CodeMatch match =
        match_code(code_of(row.code), cc(row.device), parse_version(row.driver), world);
    EXPECT_STREQ(to_string(match.match), to_string(row.match));
    EXPECT_EQ(match.arch, row.arch);
    EXPECT_EQ(match.ptx_isa, row.isa);
    EXPECT_EQ(match.needs_cuda, row.needs);
  }
}

TEST(CodeMatch, TheOrderOfEntriesDoesNotMatter) {
  const knowledge::Knowledge world = small_world();
  for (const Case& row : k_cases) {
    std::vector<DeviceCode> code = code_of(row.code);
    std::vector<DeviceCode> backwards(code.rbegin(), code.rend());
    CodeMatch a = match_code(code, cc(row.device), parse_version(row.driver), world);
    CodeMatch b = match_code(backwards, cc(row.device), parse_version(row.driver), world);
    EXPECT_EQ(a.match, b.match) << row.name;
    EXPECT_EQ(a.arch, b.arch) << row.name;
    EXPECT_EQ(a.ptx_isa, b.ptx_isa) << row.name;
  }
}

// Counts of real libraries: which entry serves most modules, and when a few special ones are not
// enough.
TEST(CodeMatch, CountsSayWhatMostModulesGet) {
  const std::vector<DeviceCode> torch_cuda = {
      // torch 2.11.0+cu130, libtorch_cuda.so
      {CodeKind::cubin, "75", "", 444},  {CodeKind::cubin, "80", "", 444},
      {CodeKind::cubin, "86", "", 444},  {CodeKind::cubin, "89", "", 1},
      {CodeKind::cubin, "90", "", 444},  {CodeKind::cubin, "90a", "", 4},
      {CodeKind::cubin, "100", "", 444}, {CodeKind::cubin, "100a", "", 59},
      {CodeKind::cubin, "103a", "", 59}, {CodeKind::cubin, "120", "", 444},
      {CodeKind::cubin, "121a", "", 1}};
  const std::vector<DeviceCode> hopper_build = {// a build for 9.0 only keeps torch's sm_121a kernel
                                                {CodeKind::cubin, "90", "", 444},
                                                {CodeKind::cubin, "121a", "", 1}};
  const std::vector<DeviceCode> cudnn = {// 9.19 for CUDA 13, libcudnn_engines_precompiled.so.9
                                         {CodeKind::cubin, "70", "", 2},
                                         {CodeKind::cubin, "75", "", 473},
                                         {CodeKind::cubin, "100", "", 708},
                                         {CodeKind::ptx, "121", "9.1", 93}};
  const std::vector<DeviceCode> cublaslt = {
      // 13.1, libcublasLt.so.13
      {CodeKind::cubin, "75", "", 166}, {CodeKind::cubin, "80", "", 482},
      {CodeKind::cubin, "90", "", 221}, {CodeKind::cubin, "90a", "", 1376},
      {CodeKind::ptx, "75", "9.0", 1},  {CodeKind::ptx, "120", "9.0", 287}};
  const struct {
    const char* name;
    const std::vector<DeviceCode>& code;
    const char* device;
    Match match;
    const char* arch;
    uint32_t fitting;
  } k_rows[] = {
      {"torch on 8.9", torch_cuda, "8.9", Match::cubin, "86", 0},
      {"torch on 10.3", torch_cuda, "10.3", Match::cubin, "100", 0},
      {"torch on 12.1", torch_cuda, "12.1", Match::cubin, "120", 0},
      {"a build for 9.0 on 12.1", hopper_build, "12.1", Match::none, "", 1},
      {"cuDNN on 7.0", cudnn, "7.0", Match::none, "", 2},
      {"cuDNN on 7.5", cudnn, "7.5", Match::cubin, "75", 0},
      {"cuDNN on a later GPU", cudnn, "13.0", Match::ptx, "121", 0},
      {"cuBLASLt on 7.5", cublaslt, "7.5", Match::cubin, "75", 0},
      {"cuBLASLt on 9.0", cublaslt, "9.0", Match::cubin, "90a", 0},
      {"cuBLASLt on Orin", cublaslt, "8.7", Match::none, "", 1},
  };
  for (const auto& row : k_rows) {
    SCOPED_TRACE(row.name);
    CodeMatch match = match_code(row.code, cc(row.device), parse_version("13.1"), small_world());
    EXPECT_STREQ(to_string(match.match), to_string(row.match));
    EXPECT_EQ(match.arch, row.arch);
    EXPECT_EQ(match.fitting, row.fitting);
  }
}

TEST(CodeMatch, CodeThatCannotBeLinkedDoesNotCount) {
  std::vector<DeviceCode> code = code_of("80 90 ptx120@8.7");
  EXPECT_EQ(match_code(code, cc("12.0"), parse_version("12.8"), small_world()).match, Match::ptx);
  code[2].loadable = false;
  EXPECT_EQ(match_code(code, cc("12.0"), parse_version("12.8"), small_world()).match, Match::none);
}

TEST(CodeMatch, EveryMatchHasItsOwnWord) {
  std::set<std::string> words;
  for (Match match : {Match::cubin, Match::ptx, Match::ptx_too_new, Match::ptx_unknown, Match::none,
                      Match::no_code})
    words.insert(to_string(match));
  EXPECT_EQ(words.size(), 6u);
}

}  // namespace code_match_test
}  // namespace cufit::checks
