// SPDX-License-Identifier: Apache-2.0
#include "report/inspect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace inspect_test {

using checks::Match;
using formats::CodeKind;

InspectResult sample() {
  InspectedFile file;
  file.path = "a.whl!lib/x\x1b.so";  // a terminal must not obey a file's name
  file.size_bytes = 3u << 20;
  file.elf.device_code = {{CodeKind::cubin, "80", "", 12},
                          {CodeKind::cubin, "90a", "", 3},
                          {CodeKind::ptx, "90", "8.7", 12}};
  file.elf.needed = {"libcudart.so.13", "libc.so.6"};
  file.elf.runpath = {"$ORIGIN"};
  file.elf.glibc = "2.28";
  file.elf.cxx11_abi = false;
  file.elf.damage = {{4096, "something is broken"}};
  file.verdicts = {
      {"GeForce RTX 3090", "8.6", {Match::cubin, "80", "", ""}, checks::LinkState::ok},
      {"12.0", "12.0", {Match::ptx_too_new, "90", "8.7", "12.8"}, checks::LinkState::broken}};
  return InspectResult{{file}, {{"b.so", "`b.so`: no such file"}}, 0};
}

TEST(InspectReport, TextSaysAllOfAFile) {
  Style style;
  const std::string text = inspect_text(sample(), style, knowledge::Knowledge::builtin());
  EXPECT_EQ(
      text,
      "a.whl\n\nlib/x?.so  3.0 MiB\n"
      "  machine code            sm_80 \u00d712  sm_90a \u00d73\n"
      "  PTX                     compute_90 (ISA 8.7) \u00d712\n"
      "  GeForce RTX 3090 (8.6)  \u2713 works: machine code for sm_80 runs on capability 8.6\n"
      "  12.0                    \u2717 broken: only PTX for compute_90 fits, and its ISA 8.7 "
      "needs a driver of\n"
      "                          CUDA 12.8 or newer (error 222)\n"
      "  needs                   libcudart.so.13\n"
      "  system needs            glibc 2.28\n"
      "  torch's ABI             old ABI (_GLIBCXX_USE_CXX11_ABI=0)\n"
      "  damaged at byte 4096: something is broken\n"
      "\n"
      "not read: `b.so`: no such file\n"
      "Tables of " +
          std::string(knowledge::Knowledge::builtin().date) + "\n");
}

TEST(InspectReport, VerboseAddsWhatEveryProgramNeedsAndWhereItSearches) {
  Style style;
  style.verbose = true;
  const std::string text = inspect_text(sample(), style, knowledge::Knowledge::builtin());
  EXPECT_TRUE(contains(text, "libcudart.so.13  libc.so.6\n")) << text;
  EXPECT_TRUE(contains(text, "RUNPATH $ORIGIN\n")) << text;
}

TEST(InspectReport, NoLineIsWiderThanTheTerminalUnlessOneWordIs) {
  Style style;
  style.lang = "zh";
  style.width = 60;
  InspectResult result = sample();
  for (uint32_t arch = 10; arch < 60; ++arch)
    result.files[0].elf.device_code.push_back({CodeKind::cubin, std::to_string(arch), "", 7});
  std::string text = inspect_text(result, style, knowledge::Knowledge::builtin());
  EXPECT_GT(split_lines(text).size(), 15u);
  for (std::string_view line : split_lines(text)) EXPECT_LE(columns(line), 60) << line;
}

TEST(InspectReport, JsonHasExactlyTheSchema) {
  nlohmann::json json = nlohmann::json::parse(
      inspect_json(sample(), knowledge::Knowledge::builtin()), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["tables_date"], std::string(knowledge::Knowledge::builtin().date));
  json["tables_date"] = "DATE";
  EXPECT_EQ(json, nlohmann::json::parse(R"json({
    "schema": "cufit.inspect/1",
    "tables_date": "DATE",
    "files": [{
      "path": "a.whl!lib/x\u001b.so", "kind": "elf",
      "device_code": [{"kind": "cubin", "arch": "80", "ptx_isa": null, "count": 12},
                      {"kind": "cubin", "arch": "90a", "ptx_isa": null, "count": 3},
                      {"kind": "ptx", "arch": "90", "ptx_isa": "8.7", "count": 12}],
      "needed": ["libcudart.so.13", "libc.so.6"], "rpath": [], "runpath": ["$ORIGIN"],
      "glibc": "2.28", "glibcxx": null, "cxx11_abi": false,
      "verdicts": [
        {"gpu": "GeForce RTX 3090", "cc": "8.6", "match": "cubin", "verdict": "works", "arch": "80",
         "detail": "machine code for sm_80 runs on capability 8.6"},
        {"gpu": "12.0", "cc": "12.0", "match": "ptx_too_new", "verdict": "broken", "arch": "90",
         "detail": "only PTX for compute_90 fits, and its ISA 8.7 needs a driver of CUDA 12.8 or newer (error 222)"}],
      "damage": [{"offset": 4096, "what": "something is broken"}]}],
    "errors": [{"path": "b.so", "what": "`b.so`: no such file"}]})json"));
}

TEST(InspectReport, EveryVerdictHasATextInBothLanguages) {
  for (Match match : {Match::cubin, Match::ptx, Match::ptx_too_new, Match::ptx_unknown, Match::none,
                      Match::no_code}) {
    InspectVerdict verdict{"g", "9.0", {match, "90", "8.0", "12.0"}, {}};
    for (const char* lang : {"en", "zh"}) {
      std::string text = inspect_detail(verdict, lang, knowledge::Knowledge::builtin());
      EXPECT_FALSE(text.empty()) << checks::to_string(match);
      EXPECT_FALSE(contains(text, "{")) << text;
    }
  }
  InspectVerdict few{"g", "7.0", {Match::none, "", "", "", 2, 708}, {}};
  EXPECT_TRUE(
      contains(inspect_detail(few, "en", knowledge::Knowledge::builtin()), "2 special kernels"));
}

// "broken" needs a whole file with kernels in it.
TEST(InspectReport, ADamagedFileAndOneWithoutKernelsStayUnknown) {
  const struct {
    Match match;
    bool damaged, empty;
    checks::LinkState state;
    const char* because;
  } k_rows[] = {{Match::none, false, false, checks::LinkState::broken, ""},
                {Match::none, true, false, checks::LinkState::unknown, "damaged"},
                {Match::no_code, true, false, checks::LinkState::unknown, "damaged"},
                {Match::cubin, true, false, checks::LinkState::ok, ""},
                {Match::none, false, true, checks::LinkState::unknown, "no_kernel"},
                {Match::cubin, false, true, checks::LinkState::unknown, "no_kernel"}};
  for (const auto& row : k_rows) {
    formats::ElfFile elf;
    if (row.damaged) elf.damage = {{64, "the file ends"}};
    elf.only_empty_images = row.empty;
    InspectVerdict verdict{"g", "9.0", {row.match, "", "", ""}, {}};
    judge_file(elf, verdict);
    EXPECT_EQ(verdict.verdict, row.state)
        << checks::to_string(row.match) << row.damaged << row.empty;
    EXPECT_STREQ(verdict.because, row.because);
    for (const char* lang : {"en", "zh"})
      EXPECT_FALSE(inspect_detail(verdict, lang, knowledge::Knowledge::builtin()).empty())
          << row.because;
  }
}

TEST(InspectReport, ACutFileIsNotSaidToHaveNoDeviceCode) {
  InspectResult result = sample();
  result.files[0].elf.device_code.clear();
  result.files[0].verdicts.clear();
  const std::string text = inspect_text(result, Style{}, knowledge::Knowledge::builtin());
  EXPECT_TRUE(contains(text, "not known: the file is damaged")) << text;
  EXPECT_FALSE(contains(text, "no device code")) << text;
}

TEST(InspectReport, VerdictsOfMatches) {
  const struct {
    Match match;
    checks::LinkState state;
  } k_rows[] = {{Match::cubin, checks::LinkState::ok},
                {Match::ptx, checks::LinkState::limited},
                {Match::ptx_too_new, checks::LinkState::broken},
                {Match::none, checks::LinkState::broken},
                {Match::ptx_unknown, checks::LinkState::unknown},
                {Match::no_code, checks::LinkState::unknown}};
  for (const auto& row : k_rows)
    EXPECT_EQ(verdict_of(row.match), row.state) << checks::to_string(row.match);
}

}  // namespace inspect_test
}  // namespace cufit::report
