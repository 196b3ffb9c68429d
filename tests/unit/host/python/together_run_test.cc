// SPDX-License-Identifier: Apache-2.0
// The program is tested under a real torch by tests/together; here what is around it, with a `torch`
// of a few lines.
#include "host/python/together_run.h"
#include "base/format.h"

#include <gtest/gtest.h>

#include "base/ascii.h"
#include "host/probe.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace together_run_test {

facts::TogetherFacts run_with(const char* torch, double seconds = 60) {
  test::FakeRoot root;
  root.file("/torch/__init__.py", torch);
  root.file("/torch/distributed.py", "is_nccl_available = lambda: False\n");
  RealHost host("/", {{"PATH", "/usr/bin:/bin"}, {"PYTHONPATH", root.path()}});
  TogetherOptions options;
  options.python = "/usr/bin/python3";
  options.ranks = 2;
  options.seconds = seconds;
  std::vector<std::string> problems;
  facts::TogetherFacts facts = run_together(host, options, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_FALSE(RealHost().exists(root.at("/torch/__pycache__"))) << "it left files behind";
  return facts;
}

TEST(TogetherRun, SaysWhatTorchSays) {
  if (!RealHost().exists("/usr/bin/python3")) GTEST_SKIP() << "needs /usr/bin/python3";
  const facts::TogetherFacts facts = run_with("raise ImportError('libnccl.so.2: not found')");
  EXPECT_EQ(facts.sum.value_or(""), "failed");
  EXPECT_TRUE(ends_with(facts.said, ", import of torch: ImportError: libnccl.so.2: not found"))
      << facts.said;
  EXPECT_EQ(facts.copies.value_or(""), "failed");
}

TEST(TogetherRun, TorchWithoutNcclIsNoFault) {
  if (!RealHost().exists("/usr/bin/python3")) GTEST_SKIP() << "needs /usr/bin/python3";
  const facts::TogetherFacts facts = run_with("__version__ = '2.0'\n");
  EXPECT_EQ(facts.sum.why, WhyNot::not_supported);
  EXPECT_EQ(facts.sum.note, "torch has no NCCL");
}

TEST(TogetherRun, AHangIsEndedWithAllProcesses) {
  if (!RealHost().exists("/usr/bin/python3")) GTEST_SKIP() << "needs /usr/bin/python3";
  const facts::TogetherFacts facts = run_with("import time\ntime.sleep(1000)\n", 6);
  EXPECT_EQ(facts.sum.value_or(""), "hung");
  EXPECT_EQ(facts.said, "rank 0: import of torch; rank 1: import of torch");
}

TEST(TogetherRun, APythonThatIsNotThere) {
  TogetherOptions options;
  options.python = "/nonexistent/python";
  std::vector<std::string> problems;
  const facts::TogetherFacts facts = run_together(RealHost(), options, problems);
  EXPECT_EQ(facts.sum.why, WhyNot::not_present);
}

TEST(TogetherCheck, AsksOnlyGpusThatComputeAndATorchThatRuns) {
  facts::Facts facts;
  ProbeOptions options;
  options.deep = true;
  run_together_check(RealHost(), options, facts);
  EXPECT_TRUE(facts.together.sum.note.empty()) << "one GPU has nobody to work with";
  facts.cuda.devices.resize(2);
  facts.cuda.devices[1].ordinal = 1;
  facts.cuda.devices[0].compute_check = known<std::string>("ok", SourceKind::cuda, "test");
  run_together_check(RealHost(), options, facts);
  EXPECT_EQ(facts.together.sum.note, "GPU 1 does not compute");
  facts.cuda.devices[1].compute_check = known<std::string>("ok", SourceKind::cuda, "test");
  facts.envs.emplace_back().interpreter = known<std::string>("/bin/false", SourceKind::file, "t");
  run_together_check(RealHost(), options, facts);
  EXPECT_EQ(facts.together.sum.note, "there is no environment whose torch computes on the GPUs");
}

}  // namespace together_run_test
}  // namespace cufit::host
