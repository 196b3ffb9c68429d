// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/report.h"
#include "unit/report/sample.h"

namespace cufit::report {
namespace json_test {

using Json = nlohmann::ordered_json;

TEST(DoctorJson, HoldsTheWholeSchema) {
  testing::World world = testing::broken();
  Json json = Json::parse(doctor_json(world.view()));
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"schema", "cufit", "tables_date", "verdict", "findings", "chains",
                                            "abilities", "host_limits", "facts"}));
  EXPECT_EQ(json["schema"], "cufit.doctor/1");
  EXPECT_EQ(json["verdict"], "broken");
  const Json& finding = json["findings"][0];
  EXPECT_EQ(finding["id"], "driver_too_old");
  EXPECT_EQ(finding["severity"], "error");
  EXPECT_EQ(finding["action"], "update-driver");
  EXPECT_EQ(finding["subject"], "GPU 0");
  EXPECT_EQ(finding["summary"], "The driver is too old for CUDA 12.1");
  EXPECT_EQ(finding["why"], "This torch needs driver 525.60.13, the machine has 520.61.05");
  EXPECT_EQ(finding["rule"], "Any driver of the family works");
  EXPECT_EQ(finding["evidence"][1],
            (Json{{"kind", "cuda"}, {"detail", "cuInit"}, {"value", "803"}}));
  EXPECT_EQ(finding["consequences"], (Json{"shm_too_small", "no_such_id"}));
  EXPECT_EQ(json["chains"][0]["gpu"], "0: NVIDIA GeForce RTX 3090 (8.6)");
  EXPECT_EQ(json["chains"][0]["env"], "/opt/venv");
  EXPECT_EQ(json["chains"][0]["links"][1]["name"], "kernel_driver");
  EXPECT_EQ(json["chains"][0]["links"][1]["state"], "broken");
  EXPECT_EQ(json["chains"][0]["links"][1]["detail"], "says 520.61.05");
  EXPECT_EQ(json["facts"]["envs"][0]["torch"]["version"]["value"], "2.5.1+cu121");
}

TEST(DoctorJson, WorksIsTheWordForOk) {
  testing::World world = testing::healthy();
  EXPECT_EQ(Json::parse(doctor_json(world.view()))["verdict"], "works");
  world.report.verdict = checks::LinkState::limited;
  EXPECT_EQ(Json::parse(doctor_json(world.view()))["verdict"], "limited");
}

TEST(DoctorJson, BytesThatAreNotUtf8DoNotThrow) {
  testing::World world = testing::broken();
  world.report.findings[0].evidence[0].value = "\xff\xfe";
  world.facts.problems = {"\xc3"};
  EXPECT_FALSE(Json::parse(doctor_json(world.view()), nullptr, false).is_discarded());
}

TEST(DoctorJson, EqualReportsAreEqualBytes) {
  EXPECT_EQ(doctor_json(testing::broken().view()), doctor_json(testing::broken().view()));
}

}  // namespace json_test
}  // namespace cufit::report
