// SPDX-License-Identifier: Apache-2.0
// Recorded machines: each folder holds facts.json (what the machine said), expect.json (the
// diagnosis that a person wrote down, with the rule behind it) and expected/ (wording goldens in
// both languages and the JSON).
//
// expect.json decides whether cufit is right; the goldens only say that a report changed.
// UPDATE_GOLDEN=1 writes the goldens anew and never touches expect.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "checks/doctor.h"
#include "facts/facts_json.h"
#include "knowledge/knowledge.h"
#include "report/report.h"
#include "support/places.h"

namespace cufit {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path k_root = fs::path(cufit::test::source_dir()) / "tests" / "machines";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(k_root)) {
    if (fs::exists(entry.path() / "facts.json")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

const char* verdict_word(checks::LinkState state) {
  return state == checks::LinkState::ok ? "works" : to_string(state);
}

// "{word}" that nobody filled in. JSON-like braces do not occur in texts.
std::string open_placeholder(const std::string& text) {
  for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
    const size_t end = text.find('}', at);
    if (end == std::string::npos) return {};
    const std::string name = text.substr(at + 1, end - at - 1);
    const bool word =
        !name.empty() &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
    if (word) return name;
  }
  return {};
}

bool has_wide(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0xE3; });
}

class Machine : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path file = k_root / GetParam() / "facts.json";
    Result<facts::Facts> read = facts::facts_from_json(read_file(file), file.string());
    ASSERT_TRUE(read) << read.error().text();
    facts_ = std::move(*read);
    report_ = checks::examine(facts_, knowledge_);
    expect_ = Json::parse(read_file(k_root / GetParam() / "expect.json"));
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> found;
    for (const checks::Finding& finding : report_.findings) found.push_back(finding.id);
    return found;
  }
  bool reported(const std::string& id) const {
    const std::vector<std::string> all = ids();
    return std::find(all.begin(), all.end(), id) != all.end();
  }
  report::DoctorView view() const { return {facts_, report_, knowledge_}; }

  const knowledge::Knowledge& knowledge_ = knowledge::Knowledge::builtin();
  facts::Facts facts_;
  checks::Report report_;
  Json expect_;
};

TEST_P(Machine, IsDiagnosedAsWrittenByHand) {
  const std::string got = verdict_word(report_.verdict);
  const Json& verdict = expect_["verdict"];
  if (verdict.is_string()) {
    EXPECT_EQ(got, verdict.get<std::string>());
  }
  if (verdict.is_array()) {
    EXPECT_NE(std::find(verdict.begin(), verdict.end(), got), verdict.end()) << got;
  }
  const std::string all = "findings: " + join(ids(), " ");
  for (const Json& id : expect_["findings"]) {
    EXPECT_TRUE(reported(id)) << id << " is not reported; " << all;
  }
  for (const Json& id : expect_["absent"]) {
    EXPECT_FALSE(reported(id)) << id << " is reported; " << all;
  }
  const Json& any = expect_["any_of"];
  const auto is_reported = [&](const Json& id) { return reported(id); };
  if (!any.empty()) {
    EXPECT_TRUE(std::any_of(any.begin(), any.end(), is_reported)) << any << "; " << all;
  }
  // A machine on which all is well has no error and no warning; another one has at least one
  // finding.
  for (const checks::Finding& finding : report_.findings) {
    const bool loud = finding.severity == checks::Severity::error ||
                      finding.severity == checks::Severity::warning;
    if (expect_["findings"].empty() && any.empty() && verdict == "works") {
      EXPECT_FALSE(loud) << finding.id;
    }
  }
}

TEST_P(Machine, HasTheLinksWrittenByHand) {
  for (const auto& [name, state] : expect_["links"].items()) {
    bool seen = false;
    for (const checks::Chain& chain : report_.chains) {
      for (const checks::Link& link : chain.links) {
        if (link.name != name) continue;
        seen = true;
        EXPECT_EQ(to_string(link.state), state.get<std::string>())
            << name << " of " << chain.gpu << ", " << link.key;
      }
    }
    EXPECT_TRUE(seen) << "no link " << name;
  }
}

// One root cause, one finding: at most one error where the hand-written diagnosis names one.
TEST_P(Machine, NamesOneRootCause) {
  std::set<std::string> errors;
  for (const checks::Finding& finding : report_.findings) {
    if (finding.severity == checks::Severity::error) errors.insert(finding.id);
  }
  std::set<std::string> expected;
  for (const char* list : {"findings", "any_of"}) {
    for (const Json& id : expect_[list]) expected.insert(id);
  }
  for (const std::string& id : errors) {
    EXPECT_TRUE(expected.count(id)) << id << " stands beside the root cause";
  }
}

TEST_P(Machine, IsSaidCompletelyInBothLanguages) {
  for (const char* lang : {"en", "zh"}) {
    for (const checks::Finding& finding : report_.findings) {
      for (const char* part : {"title", "why", "next"}) {
        const std::string text = report::finding_text(finding, part, lang, knowledge_);
        EXPECT_FALSE(text.empty())
            << finding.id << "." << part << " " << lang << " " << finding.variant;
        EXPECT_EQ(open_placeholder(text), "")
            << finding.id << "." << part << " " << finding.variant << ": " << text;
        if (std::string(lang) == "zh" && std::string(part) != "next") {
          EXPECT_TRUE(has_wide(text)) << text;
        }
      }
      if (finding.severity == checks::Severity::unknown) {
        EXPECT_FALSE(finding.unknown_because.empty()) << finding.id;
      } else {
        EXPECT_FALSE(finding.evidence.empty()) << finding.id;
      }
    }
    for (const auto* rows : {&report_.abilities, &report_.host_limits}) {
      for (const checks::Link& link : *rows) {
        const std::string_view text = knowledge_.message(link.key, lang);
        EXPECT_FALSE(text.empty()) << link.key << " " << lang;
        EXPECT_EQ(open_placeholder(
                      report::format_message(text, report::link_args(link, lang, knowledge_))),
                  "")
            << link.key;
      }
    }
    for (const checks::Chain& chain : report_.chains) {
      for (const checks::Link& link : chain.links) {
        const std::string_view text = knowledge_.message(link.key, lang);
        EXPECT_FALSE(text.empty()) << link.key << " " << lang;
        EXPECT_EQ(open_placeholder(
                      report::format_message(text, report::link_args(link, lang, knowledge_))),
                  "")
            << link.key;
      }
    }
  }
}

bool is_chinese(const std::string& text, size_t at) {
  return at < text.size() && static_cast<unsigned char>(text[at]) >= 0xe3;
}

// Outside of `code` and “quotations”: a sign of English in a line that is Chinese.
std::string english_sign(const std::string& line) {
  std::string bare;
  bool code = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') code = !code;
    if (!code && line.compare(i, 3, "“") == 0) i = std::min(line.find("”", i), line.size() - 1);
    if (!code) bare += line[i];
  }
  bool chinese = false;
  for (size_t i = 0; i < bare.size(); ++i) chinese = chinese || is_chinese(bare, i);
  if (!chinese) return {};
  for (const char* sign : {", ", "; ", " (", "[container]", "driver >="})
    if (contains(bare, sign)) return sign;
  return {};
}

// What a finding says and asks for; evidence quotes files, and GPUs have their names.
TEST_P(Machine, ChineseHasItsOwnSigns) {
  report::Style zh;
  zh.lang = "zh";
  zh.width = 4000;
  size_t number = 0;
  const std::string whole = report::doctor_text(view(), zh);
  for (std::string_view line : split_lines(whole)) {
    if (++number == 2) continue;  // the system's name for itself
    const bool quotes = starts_with(line, "  - ") || starts_with(line, "GPU ") ||
                        starts_with(line, "  /") || starts_with(line, "      ");
    if (quotes) continue;
    EXPECT_EQ(english_sign(std::string(line)), "") << line;
  }
}

// Facts survive a recording: the same report comes out of what --record would write of them.
TEST_P(Machine, SaysTheSameAfterARoundTrip) {
  Result<facts::Facts> again = facts::facts_from_json(facts::facts_to_json(facts_), "again");
  ASSERT_TRUE(again);
  const checks::Report report = checks::examine(*again, knowledge_);
  EXPECT_EQ(report::doctor_json({*again, report, knowledge_}), report::doctor_json(view()));
}

TEST_P(Machine, ReadsLikeItsGoldens) {
  const fs::path folder = k_root / GetParam() / "expected";
  report::Style en, zh;
  zh.lang = "zh";
  Json json = Json::parse(report::doctor_json(view()));
  json.erase("facts");  // facts.json already
  const std::pair<const char*, std::string> files[] = {
      {"doctor.en.txt", report::doctor_text(view(), en)},
      {"doctor.zh.txt", report::doctor_text(view(), zh)},
      {"doctor.json", json.dump(1) + "\n"}};
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (const auto& [name, text] : files) {
    if (update) {
      fs::create_directories(folder);
      std::ofstream(folder / name, std::ios::binary) << text;
      continue;
    }
    const std::string golden = read_file(folder / name);
    if (std::string(name) == "doctor.json") {
      ASSERT_FALSE(golden.empty()) << "no " << folder / name << "; UPDATE_GOLDEN=1 writes it";
      EXPECT_EQ(Json::parse(golden), json);
    } else {
      EXPECT_EQ(golden, text) << name << "; UPDATE_GOLDEN=1 writes it anew";
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Machine, testing::ValuesIn(machine_names()), test_name);

TEST(Machines, AreEnough) { EXPECT_GE(machine_names().size(), 30u); }

}  // namespace
}  // namespace cufit
