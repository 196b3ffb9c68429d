// SPDX-License-Identifier: Apache-2.0
#include "host/files/recording.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "facts/facts_json.h"

namespace cufit::host {
namespace recording_test {

class Recording : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cufit-recording-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
  RealHost host_;
};

TEST_F(Recording, ComesBackAsItWasSaved) {
  facts::Facts facts;
  facts.kernel.version =
      known<std::string>("580.65.06", SourceKind::file, "/sys/module/nvidia/version");
  const std::string path = (folder_ / "machine.json").string();
  ASSERT_TRUE(save_recording(path, facts));
  EXPECT_EQ(files(), 1u) << "a temporary file was left behind";
  facts::Facts back = load_facts(host_, path).value();
  EXPECT_EQ(back.origin, "recording");
  facts.origin = "recording";
  EXPECT_EQ(facts::facts_to_json(back), facts::facts_to_json(facts));
}

TEST_F(Recording, ReplacesAnOlderFileWhole) {
  const std::string path = write("machine.json", std::string(100000, 'x'));
  ASSERT_TRUE(save_recording(path, facts::Facts{}));
  EXPECT_TRUE(load_facts(host_, path));
}

TEST_F(Recording, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(load_facts(host_, (folder_ / "none.json").string()).error().code, Code::not_found);
  EXPECT_NE(load_facts(host_, write("empty.json", " \n")).error().text().find("is empty"),
            std::string::npos);
  Error error = load_facts(host_, write("cut.json", R"({"schema":"cufit.facts/1","nv)")).error();
  EXPECT_EQ(error.code, Code::malformed);
  EXPECT_NE(error.text().find("cut.json"), std::string::npos);
  EXPECT_NE(error.text().find("byte 30"), std::string::npos) << error.text();
  EXPECT_FALSE(save_recording((folder_ / "no" / "such.json").string(), facts::Facts{}));
}

TEST_F(Recording, TakesACollectEnvDump) {
  facts::Facts facts = load_facts(host_, write("dump.txt",
                                               "Collecting environment information...\n"
                                               "PyTorch version: 2.3.1+cu121\n"
                                               "Nvidia driver version: 535.183.01\n"))
                           .value();
  EXPECT_EQ(facts.origin, "dump");
  ASSERT_EQ(facts.envs.size(), 1u);
  EXPECT_EQ(*facts.envs[0].torch.version, "2.3.1+cu121");
  EXPECT_EQ(facts.envs[0].torch.version.source.kind, SourceKind::claimed);
}

}  // namespace recording_test
}  // namespace cufit::host
