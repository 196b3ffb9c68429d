// SPDX-License-Identifier: Apache-2.0
// `explain` over whole texts: tests/texts/<cause>/*.txt are pastes whose cause is known,
// tests/texts/no_cause/*.txt need no answer, and ../shared/corpus are cases from public threads.
// They guard what works. How well it works on reports not yet seen they cannot say: signatures and
// data/vocabulary.toml were made with them in view.
#include <gtest/gtest.h>
#include <iconv.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "explain/explain.h"
#include "support/places.h"

namespace cufit::explain {
namespace {

namespace fs = std::filesystem;
using knowledge::Knowledge;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

Explanation explain(std::string_view text, size_t piece = SIZE_MAX) {
  Explainer explainer(Knowledge::builtin());
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at))
    explainer.add(text.substr(at, piece));
  return explainer.finish({});
}

std::string shown(const Explanation& answer) {
  std::string out;
  for (const Cause& cause : answer.causes) {
    out += cause.id + " (" + to_string(cause.confidence) + ")";
    if (!cause.evidence.empty()) out += ": " + cause.evidence[0].text;
    out += "\n";
  }
  return out;
}

std::vector<fs::path> texts() {
  std::vector<fs::path> out;
  for (const auto& entry :
       fs::recursive_directory_iterator(cufit::test::source_dir() + "/tests/texts")) {
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Texts : public testing::TestWithParam<fs::path> {};

TEST_P(Texts, AreExplained) {
  const std::string cause = GetParam().parent_path().filename();
  const Explanation answer = explain(read(GetParam()));
  if (cause == "no_cause") {
    EXPECT_TRUE(answer.causes.empty()) << shown(answer);
    return;
  }
  ASSERT_FALSE(answer.causes.empty());
  EXPECT_EQ(answer.causes[0].id, cause) << shown(answer);
  EXPECT_FALSE(answer.causes[0].evidence.empty());
  // NAME.variant: which of the cause's steps the text gets.
  std::string variant = read(fs::path(GetParam()).replace_extension(".variant"));
  while (!variant.empty() && variant.back() == '\n') variant.pop_back();
  if (!variant.empty()) {
    EXPECT_EQ(answer.causes[0].finding.variant, variant);
  }
}

// As Chinese Windows writes it; nullopt: not in GB 18030, or the C library cannot convert.
std::optional<std::string> in_gbk(std::string text) {
  const iconv_t handle = ::iconv_open("GB18030", "UTF-8");
  if (handle == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string out(4 * text.size(), '\0');
  char *from = text.data(), *to = out.data();
  size_t left = text.size(), room = out.size();
  const bool done = ::iconv(handle, &from, &left, &to, &room) != static_cast<size_t>(-1);
  ::iconv_close(handle);
  out.resize(out.size() - room);
  return done ? std::optional(out) : std::nullopt;
}

TEST(TextsInGbk, SayTheSameAsInUtf8) {
  size_t asked = 0;
  for (const fs::path& path : texts()) {
    const std::string text = read(path);
    const std::optional<std::string> gbk = in_gbk(text);
    if (!gbk || *gbk == text) continue;
    if (text.find("显存") == std::string::npos && text.find("驱动") == std::string::npos) continue;
    EXPECT_EQ(shown(explain(*gbk)), shown(explain(text))) << path;
    ++asked;
  }
  if (asked == 0) GTEST_SKIP() << "the C library has no converter for GB 18030";
  EXPECT_GE(asked, 3u);
}

INSTANTIATE_TEST_SUITE_P(All, Texts, testing::ValuesIn(texts()), [](const auto& one) {
  std::string name = one.param.parent_path().filename().string() + "_" + one.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
});

TEST(TextSet, CoversEveryCauseOfTheTaxonomies) {
  std::set<std::string> covered;
  for (const fs::path& path : texts()) covered.insert(path.parent_path().filename());
  for (const knowledge::FindingTexts& finding : Knowledge::builtin().findings) {
    EXPECT_TRUE(finding.signs.empty() || covered.count(std::string(finding.id))) << finding.id;
  }
}

// Quoted, commented, of another day, followed by a failure of another kind or by success.
TEST(TextSet, TakesNothingToldForProof) {
  const std::string xid = "NVRM: Xid (PCI:0000:65:00): 79, pid=7, GPU has fallen off the bus.\n";
  const std::string nvcc = "nvcc fatal   : Unsupported gpu architecture 'compute_90'";
  const std::string texts[] = {
      "In May the log had \"" + xid.substr(0, xid.size() - 1) + "\"\nKeyError: 'labels'\n",
      xid + "my job on another node:\nValueError: could not convert string to float\n",
      "> " + nvcc + "\nthat is your problem, not mine\n",
      "# " + nvcc + "\nFROM ubuntu:22.04\n",
      "**Q: I get `" + nvcc + "`.** Update CUDA.\n",
      "my build says: " + nvcc + "\n",
      nvcc + "\nCMake Warning: skipping optional target foo\n",
  };
  for (const std::string& text : texts) {
    for (const Cause& cause : explain(text).causes)
      EXPECT_NE(cause.confidence, Confidence::certain) << text << cause.id;
  }
  for (const std::string& text : {xid, nvcc, "#15 3.1 " + nvcc, "[rank1]: " + nvcc,
                                  nvcc + "\nRuntimeError: Error compiling objects\n"})
    EXPECT_EQ(explain(text).causes.at(0).confidence, Confidence::certain) << text;
}

// A failure beside what is proved has an answer of its own.
TEST(TextSet, AnswersASecondFailure) {
  const Explanation answer = explain(
      "NVRM: Xid (PCI:0000:65:00): 63, pid=7, Row Remapper: New row marked for remapping\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
      "capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process "
      "has 78.00 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and "
      "300.00 MiB is reserved by PyTorch but unallocated.\n");
  std::set<std::string> ids;
  for (const Cause& cause : answer.causes) ids.insert(cause.id);
  EXPECT_TRUE(ids.count("gpu_memory_ecc")) << shown(answer);
  EXPECT_TRUE(ids.count("weights_exceed_capacity")) << shown(answer);
}

// What explains a text must not depend on where its pieces were cut.
TEST(TextSet, SaysTheSameOfPiecesOfAnySize) {
  size_t number = 0;
  for (const fs::path& path : texts()) {
    if (++number % 20 != 0) continue;
    const std::string text = read(path);
    EXPECT_EQ(shown(explain(text, 7)), shown(explain(text))) << path;
  }
}

TEST(TextSet, FindsTheErrorInTheMiddleOf200MegabytesOfLog) {
  const std::string error =
      read(cufit::test::source_dir() + "/tests/texts/driver_lib_mismatch/" + [] {
        for (const fs::path& path : texts()) {
          if (path.parent_path().filename() == "driver_lib_mismatch")
            return path.filename().string();
        }
        return std::string();
      }());
  ASSERT_FALSE(error.empty());
  Explainer explainer(Knowledge::builtin());
  std::string block;
  uint64_t lines = 0, step = 0;
  for (size_t bytes = 0; bytes < 200'000'000; bytes += block.size()) {
    block.clear();
    while (block.size() < 1'000'000) {
      block += "[rank " + std::to_string(step % 8) + "] step " + std::to_string(step) +
               " loss 0.1234 lr 1e-4 tokens/s 51234.5 memory 71.2GiB\n";
      ++step, ++lines;
    }
    if (bytes < 100'000'000 && bytes + block.size() >= 100'000'000) block += "\n" + error + "\n";
    explainer.add(block);
  }
  const Explanation answer = explainer.finish({});
  ASSERT_FALSE(answer.causes.empty());
  EXPECT_EQ(answer.causes[0].id, "driver_lib_mismatch") << shown(answer);
  EXPECT_TRUE(answer.thinned);
  EXPECT_GT(answer.causes[0].evidence.at(0).line, lines / 3);
}

TEST(TextSet, SaysNothingOfASuccessfulLogOfAnyLength) {
  Explainer explainer(Knowledge::builtin());
  for (int step = 0; step < 300'000; ++step) {
    explainer.add("step " + std::to_string(step) + "/300000 loss 0.1234 memory 71.2GiB 3.1 it/s\n");
  }
  const Explanation answer = explainer.finish({});
  EXPECT_TRUE(answer.causes.empty()) << shown(answer);
}

// The measure that the project holds itself to, as `make corpus` counts it.
void measure(const std::string& name) {
  std::ifstream in(cufit::test::source_dir() + "/../shared/corpus/" + name);
  if (!in) GTEST_SKIP() << "the shared corpus is not beside this checkout";
  size_t cases = 0, right = 0, among_three = 0, wrong_certain = 0;
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json one = nlohmann::json::parse(line);
    std::set<std::string> accepted = {one["root_cause"].get<std::string>()};
    for (const auto& id : one["also_acceptable"]) accepted.insert(id.get<std::string>());
    const Explanation answer = explain(one["evidence"].get<std::string>());
    bool first = false, three = false;
    for (size_t i = 0; i < answer.causes.size() && i < 3; ++i) {
      const bool hit = accepted.count(answer.causes[i].id) != 0;
      first = first || (hit && i == 0);
      three = three || hit;
    }
    ++cases;
    right += first || (three && !one.value("evidence_sufficient", true)) ? 1 : 0;
    among_three += three ? 1 : 0;
    if (!answer.causes.empty() && answer.causes[0].confidence == Confidence::certain && !first) {
      ++wrong_certain;
      ADD_FAILURE() << one["id"] << " is certainly wrong:\n" << shown(answer);
    }
  }
  EXPECT_GE(static_cast<double>(right), 0.95 * static_cast<double>(cases)) << name;
  EXPECT_GE(static_cast<double>(among_three), 0.97 * static_cast<double>(cases)) << name;
  EXPECT_EQ(wrong_certain, 0u);
}
TEST(Corpus, EnvironmentCases) { measure("env-open.jsonl"); }
TEST(Corpus, MemoryCases) { measure("mem-open.jsonl"); }

}  // namespace
}  // namespace cufit::explain
