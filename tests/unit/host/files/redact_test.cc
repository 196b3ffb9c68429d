// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "facts/facts_json.h"
#include "facts/redact.h"
#include "host/files/recording.h"

namespace cufit::host {
namespace redact_test {

RealHost host_of(std::map<std::string, std::string> environment) {
  return RealHost("/nonexistent-root", std::move(environment));
}

facts::Facts redact(const Host& host, facts::Facts facts) {
  return facts::redact(std::move(facts), private_names(host));
}

TEST(Redact, TakesOutNamesHomesAndAddresses) {
  facts::Facts facts;
  facts.envs.resize(1);
  facts.envs[0].path = "/home/zhangwei/envs/torch";
  facts.envs[0].python =
      known<std::string>("3.12.3", SourceKind::file, "/home/zhangwei/envs/torch/pyvenv.cfg");
  facts.variables = {{"MASTER_ADDR", "10.1.2.3"},
                     {"NCCL_DEBUG_FILE", "/data/zhangwei/nccl.gpubox7.log"}};
  facts.nvml.gpus.resize(2);
  facts.nvml.gpus[0].uuid =
      known<std::string>("GPU-1b2c3d4e-0001-0002-0003-1234567890ab", SourceKind::nvml, "uuid");
  facts.nvml.gpus[1].uuid =
      known<std::string>("GPU-ffffffff-0001-0002-0003-1234567890ab", SourceKind::nvml, "uuid");
  facts.nvml.gpus[0].serial = known<std::string>("1652322000123", SourceKind::nvml, "serial");
  facts.problems = {
      "asked GPU-FFFFFFFF-0001-0002-0003-1234567890AB of 52:54:00:12:34:56 for "
      "w.zhang@lab.example.cn"};
  std::string text = facts::facts_to_json(redact(
      host_of({{"USER", "zhangwei"}, {"HOME", "/home/zhangwei"}, {"HOSTNAME", "gpubox7"}}), facts));
  for (const char* secret : {"zhangwei", "gpubox7", "10.1.2.3", "1b2c3d4e", "ffffffff",
                             "1652322000123", "52:54", "w.zhang", "FFFFFFFF"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << "\n" << text;
  }
  EXPECT_NE(text.find("/home/user/envs/torch"), std::string::npos);
  // The second GPU's UUID is told apart from the first one's, wherever it stands.
  EXPECT_NE(text.find("asked GPU-00000000-0000-0000-0000-000000000001"), std::string::npos) << text;
}

// Each in any field: paths of environments are no better than variables.
TEST(Redact, TakesOutWhatIsOrdinaryOnClusters) {
  const std::pair<const char*, const char*> cases[] = {
      {"node17 is down", "host is down"},
      {"login.gpu.acme-corp.com and acme-corp.com", "login.domain and domain"},
      {"/data/zhangwei_proj/x", "/data/user_proj/x"},
      {"/data/zhangwei2", "/data/user2"},
      {"/data/users/li/envs", "/data/users/user/envs"},
      {"/data1/people/lixiaoming/x", "/data1/people/user/x"},
      {"/mnt/nas/users/wang/x", "/mnt/nas/users/user/x"},
      {"/home/John Doe/venv", "/home/user/venv"},
      {R"(C:\Users\JohnDoe\venv)", R"(C:\Users\user\venv)"},
      {R"(C:\Users\John Doe\venv)", R"(C:\Users\user\venv)"},
      {"at 2001:db8::1234:5678 and fd12:3456::1.", "at :: and ::."},
      {"52-54-00-12-34-56", "00-00-00-00-00-00"},
      {"GPU-8f6d7c1a,MIG-8f6d7c1a0001",
       "GPU-00000000-0000-0000-0000-000000000000,"
       "MIG-8f6d7c1a0001"},
      {"8f6d7c1a000100020003123456789abc", "00000000-0000-0000-0000-000000000000"},
      {"https://bob:p$ss!w0rd@repo.example/x", "https://user@example.org/x"},
      {"https://__token__:pypi-AgEIcHlwaS5vcmcCJDA@mirror/", "https://user@mirror/"},
      {"hf_AbCdEfGhIjKlMnOpQrStUvWx", "redacted"},
      {"ghp_AbCdEfGhIjKlMnOpQrStUvWx", "redacted"},
      {"eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ-S", "redacted"},
      {"https://m/simple?page=1&api_token=abc", "https://m/simple?page=1&api_token=redacted"},
      {"http://10.1.2.3:80/x on 192.168.1.7", "http://0.0.0.0:80/x on 0.0.0.0"},
  };
  const auto host = host_of(
      {{"USER", "zhangwei"}, {"HOME", "/data/users/li"}, {"HOSTNAME", "node17.gpu.acme-corp.com"}});
  for (const auto& [text, want] : cases) {
    facts::Facts facts;
    facts.problems = {text};
    const facts::Facts once = redact(host, facts);
    EXPECT_EQ(once.problems[0], want);
    EXPECT_EQ(redact(host, once).problems[0], want) << "a second time";
  }
  // What looks alike and is something else.
  for (const char* text :
       {"/opt/max_split/libcurand.so.10.3.5.147", "max_split_size_mb:128", "c10::Error",
        "2026:11:28 04:05:06", "https://download.pytorch.org/whl/cu126", "sk-learn", "a::b"}) {
    facts::Facts facts;
    facts.problems = {text};
    EXPECT_EQ(redact(host_of({{"USER", "max2"}, {"HOME", "/root"}}), facts).problems[0], text);
  }
}

// A device is the same whether it is named whole or by its beginning.
TEST(Redact, KeepsTheBeginningOfAUuidWithItsDevice) {
  facts::Facts facts;
  facts.problems = {"CUDA_VISIBLE_DEVICES=GPU-8f6d7c1a", "GPU-11111111-0001-0002-0003-123456789abc",
                    "GPU-8f6d7c1a-0001-0002-0003-123456789abc"};
  const facts::Facts after = redact(host_of({{"HOME", "/root"}}), facts);
  EXPECT_EQ(after.problems[0].substr(21), after.problems[2]);
  EXPECT_NE(after.problems[1], after.problems[2]);
}

// Under sudo USER is root, and the one who called it stands in another variable.
TEST(Redact, KnowsTheUserByEachOfTheVariables) {
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    facts::Facts facts;
    facts.problems = {"cannot read /data/lihua/torch", "owner LiHua"};
    const facts::Facts after = redact(host_of({{"HOME", "/root"}, {variable, "lihua"}}), facts);
    EXPECT_EQ(after.problems[0], "cannot read /data/user/torch") << variable;
    EXPECT_EQ(after.problems[1], "owner user") << variable;
  }
  facts::Facts facts;
  facts.problems = {"cannot read /data/lihua/torch"};
  EXPECT_EQ(redact(host_of({{"HOME", "/srv/lihua"}}), facts).problems[0],
            "cannot read /data/user/torch");
}

TEST(Redact, LeavesVersionsPciAddressesAndPathsAlone) {
  facts::Facts facts;
  facts.envs.resize(1);
  facts.envs[0].path = "/opt/conda";
  facts.envs[0].distributions = known<std::vector<facts::Distribution>>(
      {{.name = "nvidia-cublas", .version = "13.1.0.3"}}, SourceKind::file, "x");
  facts.kernel.version =
      known<std::string>("580.159.04", SourceKind::file, "/sys/module/nvidia/version");
  facts.pci = known<std::vector<facts::PciGpu>>({{.address = "0000:01:00.0", .device_id = "2204"}},
                                                SourceKind::file, "/sys");
  std::string before = facts::facts_to_json(facts);
  EXPECT_EQ(before,
            facts::facts_to_json(redact(host_of({{"USER", "root"}, {"HOME", "/root"}}), facts)));
}

TEST(Redact, ShortOrCommonNamesDoNotTearTextsApart) {
  facts::Facts facts;
  facts.problems = {"cannot read /opt/cuda/lib64 of user al"};
  facts::Facts after = redact(host_of({{"USER", "al"}, {"HOSTNAME", "cuda"}}), facts);
  EXPECT_EQ(after.problems[0], facts.problems[0]);
}

}  // namespace redact_test
}  // namespace cufit::host
