// SPDX-License-Identifier: Apache-2.0
// Described machines (hosts.toml) through resolve, and docs/hosts.md, which is made of the same
// rows (UPDATE_GOLDEN=1): what cufit chooses beside what uv's published rule would, and whether
// that wheel can run there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "formats/toml_text.h"
#include "report/resolve.h"
#include "support/places.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Row {
  std::string asked, best, fit, last, uv;
  std::vector<std::string> groups;
  std::string uv_variants;
};

std::vector<Row> rows() {
  const std::string path = cufit::test::source_dir() + "/tests/hosts/hosts.toml";
  const auto document = formats::parse_toml(read(path), "hosts.toml");
  EXPECT_TRUE(document) << document.error().what;
  std::vector<Row> out;
  const formats::TomlValue* hosts = document ? document->find("host") : nullptr;
  if (hosts == nullptr) return out;
  for (const formats::TomlValue& host : hosts->items) {
    const auto text = [&](const char* key) {
      const formats::TomlValue* value = host.find(key);
      return value == nullptr ? std::string() : value->text;
    };
    Row row{text("for"), text("best"), text("fit"),        text("last"),
            text("uv"),  {},           text("uv_variants")};
    if (const formats::TomlValue* groups = host.find("groups"))
      for (const formats::TomlValue& group : groups->items) row.groups.push_back(group.text);
    out.push_back(std::move(row));
  }
  return out;
}

std::string name_of(const Wheel& wheel) {
  return wheel.torch.empty() ? "" : wheel.torch + " " + wheel.tag;
}

std::string best_of(const Answer& answer) {
  return answer.usable.empty() ? "" : name_of(answer.usable.front().wheel);
}

// The floors of uv's torch backends on Linux, newest variant first, as uv-torch publishes them
// (source read at 2026-08-21): the first that the driver reaches is taken, and nothing else asked.
std::string uv_choice(const Target& target) {
  if (target.driver_state == Target::Driver::absent) return "cpu";
  if (!target.driver) return "";
  static constexpr std::pair<const char*, const char*> k_floors[] = {
      {"cu132", "580"},       {"cu129", "525.60.13"}, {"cu118", "450.80.02"},
      {"cu110", "450.36.06"}, {"cu102", "440.33"},    {"cu101", "418.39"}};
  for (const auto& [tag, floor] : k_floors)
    if (checks::at_least(*target.driver, *parse_version(floor))) return tag;
  return "cpu";
}

// The newest wheel of a variant, judged like every other.
std::optional<Choice> newest_of(const std::string& tag, const Answer& answer) {
  for (const auto* list : {&answer.usable, &answer.rejected})
    for (const Choice& choice : *list)
      if (choice.wheel.tag == tag) return choice;
  return std::nullopt;
}

TEST(Hosts, EveryDescribedMachineGetsItsWheel) {
  const Knowledge& knowledge = Knowledge::builtin();
  EXPECT_GE(rows().size(), 20u);
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.asked);
    const auto target = described_target(row.asked, knowledge);
    ASSERT_TRUE(target) << target.error().text();
    const Answer answer = resolve(*target, {}, knowledge);
    EXPECT_EQ(best_of(answer), row.best);
    const std::string fit =
        answer.usable.empty() ? "" : to_string(answer.usable.front().verdict.fit);
    EXPECT_EQ(fit, row.fit);
    EXPECT_EQ(name_of(answer.last_for_gpus), row.last);
    std::vector<std::string> groups;
    for (const Answer& group : answer.groups) groups.push_back(best_of(group));
    EXPECT_EQ(groups, row.groups);
    EXPECT_EQ(uv_choice(*target), row.uv);
    // A machine without an answer is told what stands against it.
    EXPECT_EQ(answer.usable.empty(), !answer.conflict.empty());
  }
}

// Laws: every wheel is in one of the lists, a usable one is judged so again, a rejected one has its
// reasons.
TEST(Hosts, EveryAnswerIsWhole) {
  const Knowledge& knowledge = Knowledge::builtin();
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.asked);
    const auto target = described_target(row.asked, knowledge);
    ASSERT_TRUE(target);
    const Answer answer = resolve(*target, {}, knowledge);
    EXPECT_EQ(answer.usable.size() + answer.rejected.size(),
              known_wheels(knowledge, target->platform).size());
    for (const Choice& choice : answer.rejected) EXPECT_FALSE(choice.verdict.reasons.empty());
    for (const Choice& choice : answer.usable) {
      const Verdict again = judge(choice.wheel, *target, knowledge);
      EXPECT_EQ(again.fit, choice.verdict.fit) << name_of(choice.wheel);
      EXPECT_NE(again.fit, Fit::no);
      EXPECT_FALSE(choice.python.empty());
    }
  }
}

std::string cell(const std::string& text) { return "| " + text + " "; }

std::string table() {
  const Knowledge& knowledge = Knowledge::builtin();
  std::string out =
      "<!-- Made by tests/hosts (UPDATE_GOLDEN=1). -->\n# Described machines, what `cufit resolve` "
      "chooses, and what the driver alone would\n\n"
      "`uv`: the variant that the published rule of `uv pip install --torch-backend=auto` takes, "
      "the newest whose driver floor is met (uv-torch, read 2026-08-21).\nIt asks the driver and "
      "not the GPU. \"Runs\" is the verdict of the same engine on the newest wheel of that "
      "variant.\n`works_minor` is minor-version compatibility: machine code runs, PTX of that "
      "toolkit does not compile.\n\n"
      "`variants`: what uv 0.13.9 took with `--preview-features wheel-variants` (PEP 817 and 825, "
      "drafts) of four variants of one package, made for this table: cu126 for 5.0 to 9.0, cu128 "
      "for 7.0 to 12.0, cu130 for 7.5 to 12.0, and `null`, the one for no GPU; measured "
      "2026-11-27.\nIt looks at the GPU, but at the best one only, knows no minor-version "
      "compatibility, and falls to `null` (a CPU build) without a word. -: not measured.\n\n"
      "| machine | cufit | fit | uv | runs | why not | variants |\n|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows()) {
    const auto target = described_target(row.asked, knowledge);
    if (!target) continue;
    const Answer answer = resolve(*target, {}, knowledge);
    std::string best = best_of(answer);
    std::string fit = answer.usable.empty() ? "no" : to_string(answer.usable.front().verdict.fit);
    if (!row.groups.empty()) best = "one environment per group: " + join(row.groups, "; ");
    if (best.empty()) best = "nothing: " + join(answer.conflict, " + ");
    const std::string tag = uv_choice(*target);
    std::string runs = "-", why;
    if (const auto choice = newest_of(tag, answer)) {
      runs = usable(choice->verdict.fit) ? "yes" : "**no**";
      if (!usable(choice->verdict.fit))
        why = report::reason_text(choice->verdict.reasons.front(), "en", knowledge);
    }
    out += cell("`" + row.asked + "`") + cell(best) + cell(fit) + cell(tag.empty() ? "-" : tag) +
           cell(runs) + cell(why) + cell(row.uv_variants.empty() ? "-" : row.uv_variants) + "|\n";
  }
  return out;
}

TEST(Hosts, TheTableInDocsIsTheSame) {
  const std::string path = cufit::test::source_dir() + "/docs/hosts.md";
  const std::string made = table();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << made;
  EXPECT_EQ(read(path), made) << "UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace
}  // namespace cufit::resolve
