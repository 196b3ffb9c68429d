// SPDX-License-Identifier: Apache-2.0
#include "facts/facts_json.h"

#include <gtest/gtest.h>

#include "facts/facts_fields.h"

namespace cufit::facts {
namespace facts_json_test {

// Gives every field of every struct a value of its own, so that a forgotten line in facts_fields.h
// or a mistake in reading or writing shows up as a difference.
struct Filler {
  int next = 1;

  template <class T>
  void operator()(const char*, T& value) {
    fill(value);
  }
  void fill(std::string& value) { value = "text " + std::to_string(next++); }
  void fill(bool& value) { value = true; }
  void fill(double& value) { value = next++ + 0.5; }
  void fill(int& value) { value = -next++; }
  void fill(uint32_t& value) { value = static_cast<uint32_t>(next++); }
  void fill(uint64_t& value) { value = UINT64_MAX - static_cast<uint64_t>(next++); }
  void fill(formats::CodeKind& value) { value = formats::CodeKind::ptx; }
  template <class T>
  void fill(std::vector<T>& values) {
    values.resize(2);
    for (T& value : values) fill(value);
  }
  template <class T>
  void fill(Fact<T>& fact) {
    if (next++ % 3 == 0) {
      fact = missing<T>(WhyNot::no_permission, SourceKind::nvml, "tried " + std::to_string(next),
                        "note");
      return;
    }
    T value{};
    fill(value);
    fact = known(std::move(value), SourceKind::cuda, "detail " + std::to_string(next));
  }
  template <class T>
  void fill(T& value) {
    visit_fields(*this, value);
  }
};

TEST(FactsJson, EveryFieldSurvivesARoundTrip) {
  Facts facts;
  Filler filler;
  filler.fill(facts);
  facts.schema = "cufit.facts/1";
  std::string once = facts_to_json(facts);
  Result<Facts> back = facts_from_json(once, "test");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(once, facts_to_json(*back));
  EXPECT_EQ(back->nvml.gpus.size(), 2u);
  EXPECT_EQ(back->envs[1].binaries[1].device_code[1].kind, formats::CodeKind::ptx);
}

// `loadable` and `has_record` begin as true: a false one that is left out would come back as true.
TEST(FactsJson, FalseSurvivesWhereTrueIsTheDefault) {
  Facts facts;
  facts.envs.resize(1);
  facts.envs[0].binaries.resize(1);
  facts.envs[0].binaries[0].device_code = {{formats::CodeKind::ptx, "120", "9.0", 2, false}};
  Distribution one;
  one.has_record = false;
  facts.envs[0].distributions = known(std::vector<Distribution>{one}, SourceKind::file, "x");
  const Result<Facts> back = facts_from_json(facts_to_json(facts), "test");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_FALSE(back->envs[0].binaries[0].device_code[0].loadable);
  EXPECT_FALSE(back->envs[0].distributions->at(0).has_record);
}

TEST(FactsJson, LeavesOutWhatWasNeverAsked) {
  std::string json = facts_to_json(Facts{}, -1);
  EXPECT_EQ(json, R"({"schema":"cufit.facts/1","origin":"live"})");
}

TEST(FactsJson, KeepsTheReasonOfAMissingFact) {
  Facts facts;
  facts.system.kernel =
      missing<std::string>(WhyNot::no_permission, SourceKind::file, "/proc/version", "denied");
  Facts back = facts_from_json(facts_to_json(facts), "test").value();
  EXPECT_FALSE(back.system.kernel);
  EXPECT_EQ(back.system.kernel.why, WhyNot::no_permission);
  EXPECT_EQ(back.system.kernel.source.detail, "/proc/version");
  EXPECT_EQ(back.system.kernel.note, "denied");
}

TEST(FactsJson, AcceptsDoctorsJson) {
  Result<Facts> facts = facts_from_json(
      R"({"schema":"cufit.doctor/1","facts":{"schema":"cufit.facts/1","cufit_version":"9"}})",
      "d.json");
  ASSERT_TRUE(facts) << facts.error().text();
  EXPECT_EQ(facts->cufit_version, "9");
  facts = facts_from_json(R"({"schema":"cufit.doctor/1"})", "d.json");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().what, "`d.json`: `facts` of the report is missing");
}

// Checks compare GPUs with each other: a list without an end would be a report without one.
TEST(FactsJson, ListsAreAsLongAsMachinesAre) {
  Facts facts;
  facts.nvml.gpus.resize(256);
  EXPECT_TRUE(facts_from_json(facts_to_json(facts), "t"));
  facts.nvml.gpus.resize(257);
  const Result<Facts> many = facts_from_json(facts_to_json(facts), "t");
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().what, "`t`: `nvml.gpus` has more entries than any machine");
}

TEST(FactsJson, InvalidUtf8DoesNotStopTheWriter) {
  Facts facts;
  facts.problems = {"name \xff\xfe"};
  EXPECT_TRUE(facts_from_json(facts_to_json(facts), "test"));
}

struct BadCase {
  const char* json;
  const char* message_part;
};
class BadRecording : public testing::TestWithParam<BadCase> {};

TEST_P(BadRecording, IsNamed) {
  Result<Facts> facts = facts_from_json(GetParam().json, "bad.json");
  ASSERT_FALSE(facts);
  EXPECT_TRUE(facts.error().code == Code::malformed || facts.error().code == Code::unsupported);
  EXPECT_NE(facts.error().text().find(GetParam().message_part), std::string::npos)
      << facts.error().text();
  EXPECT_NE(facts.error().text().find("bad.json"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRecording,
    testing::Values(
        BadCase{"", "byte"}, BadCase{"[]", "object"}, BadCase{"{}", "schema"},
        BadCase{R"({"schema":"cufit.inspect/1"})", "cufit.inspect/1"},
        BadCase{R"({"system":)", "byte"},
        BadCase{R"({"schema":"cufit.facts/1","nvml":{"gpus":[{},{"index":-1}]}})",
                "nvml.gpus[1].index"},
        BadCase{R"({"schema":"cufit.facts/1","nvml":{"gpus":{}}})", "nvml.gpus"},
        BadCase{R"({"schema":"cufit.facts/1","nvml":{"init_result":{"value":99999999999}}})",
                "nvml.init_result.value"},
        BadCase{R"({"schema":"cufit.facts/1","system":{"kernel":{"missing":"lazy"}}})",
                "system.kernel.missing"},
        BadCase{R"({"schema":"cufit.facts/1","system":{"kernel":"6.1"}})", "system.kernel"},
        BadCase{
            R"({"schema":"cufit.facts/1","envs":[{"binaries":[{"device_code":[{"kind":"gif"}]}]}]})",
            "device_code[0].kind"}));

}  // namespace facts_json_test
}  // namespace cufit::facts
