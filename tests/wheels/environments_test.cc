// SPDX-License-Identifier: Apache-2.0
// From requirements to a running torch, with the real uv and real wheels of the default index: a
// lock of two classes whose torch releases have different CUDA majors, their environments, and
// `cufit run` on described machines. The program that is started says which torch it has.
// uv: $CUFIT_UV, else <build>/uv/bin/uv (tools/fetch-uv). About 4.7 GiB the first time; uv keeps
// them in <build>/uv-cache.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "support/places.h"

namespace cufit {
namespace {

namespace fs = std::filesystem;

struct Output {
  std::string text;
  int status = -1;
};

class RealEnvironments : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* given = std::getenv("CUFIT_UV");
    const std::string uv = given && *given ? given : cufit::test::binary_dir() + "/uv/bin/uv";
    if (!fs::exists(uv)) {
      why_not_ = "no uv: `tools/fetch-uv DIR` gets it, CUFIT_UV=DIR/bin/uv names it";
      return;
    }
    if (fs::space(cufit::test::binary_dir()).available < k_needed_bytes) {
      why_not_ = "less than 16 GiB are free";
      return;
    }
    ::setenv("CUFIT_UV", uv.c_str(), 1);
    ::setenv("UV_CACHE_DIR", (cufit::test::binary_dir() + "/uv-cache").c_str(), 1);
    ::unsetenv("VIRTUAL_ENV");
    folder_ = cufit::test::binary_dir() + "/environments";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ + "/requirements.txt") << "torch<2.12\nnumpy\n";
    made_ =
        run(format("lock -r '{0}/requirements.txt' --for 'A800,470' --for 'RTX 5090,580' "
                   "--default-index-only -o '{0}' --json",
                   folder_));
  }
  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
    ASSERT_EQ(made_.status, 0) << made_.text;
  }
  static Output run(const std::string& arguments,
                    const std::string& program = cufit::test::program()) {
    Output out;
    FILE* pipe = popen(format("'{}' {}", program, arguments).c_str(), "r");
    if (!pipe) return out;
    std::array<char, 4096> buffer;
    while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
      out.text.append(buffer.data(), got);
    const int status = pclose(pipe);
    out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
  }
  static nlohmann::json json_of(const std::string& text) {
    return nlohmann::json::parse(text, nullptr, false);
  }

  static constexpr uintmax_t k_needed_bytes = uintmax_t{16} << 30;
  static inline std::string folder_, why_not_;
  static inline Output made_;
};

TEST_F(RealEnvironments, AreLockedMadeAndChosen) {
  const nlohmann::json lock = json_of(made_.text);
  ASSERT_EQ(lock.at("classes").size(), 2u) << made_.text;
  EXPECT_EQ(lock["classes"][0]["tag"], "cu130");
  EXPECT_EQ(lock["classes"][1]["tag"], "cu117");
  // An index, or a mirror, may give no sizes.
  if (lock["classes"][0]["unsized_packages"] == 0) {
    EXPECT_GT(lock["classes"][0]["download_bytes"], uint64_t{1} << 30);
  }

  const Output made = run(format("env create --lock '{}' --json", folder_));
  ASSERT_EQ(made.status, 0) << made.text;
  const nlohmann::json report = json_of(made.text);
  for (const nlohmann::json& env : report.at("environments")) {
    EXPECT_EQ(env["state"], "made");
    // Hard links from uv's cache, which lies on the same filesystem here.
    EXPECT_GT(env["shared_bytes"].get<uint64_t>(), env["bytes"].get<uint64_t>() * 9 / 10);
  }
  const Output check = run(format("env check --lock '{}'", folder_));
  EXPECT_EQ(check.status, 0) << check.text;
  const Output again = run(format("lock --check -o '{}'", folder_));
  EXPECT_EQ(again.status, 0) << again.text;

  struct {
    const char* machine;  // driver and PCI ids
    const char* torch;
  } const cases[] = {
      {"470.256.02 20f5", "2.0.1+cu117"},  // A800
      {"535.183.01 2684", "2.0.1+cu117"},  // RTX 4090: driver too old for CUDA 13
      {"580.95.05 2b85", "2.11.0+cu130"},  // RTX 5090
      {"580.95.05 1b80", "2.0.1+cu117"},   // GTX 1080: no code in the newer one
  };
  for (const auto& one : cases) {
    const std::string machine = folder_ + "/machine";
    fs::remove_all(machine);
    ASSERT_EQ(std::system(format("sh '{}/tests/run/machine.sh' '{}' {}",
                                 cufit::test::source_dir(), machine, one.machine)
                              .c_str()),
              0);
    ::setenv("CUFIT_TEST_MACHINE", machine.c_str(), 1);
    const Output said =
        run(format("run -q --lock '{}' -- python -W ignore -c 'import torch; "
                   "print(torch.__version__, torch.ones(3).sum().item())'",
                   folder_),
            cufit::test::program_on_machine());
    ::unsetenv("CUFIT_TEST_MACHINE");
    EXPECT_EQ(said.status, 0) << one.machine;
    EXPECT_EQ(said.text, std::string(one.torch) + " 3.0\n") << one.machine;
  }
  // The default index has no wheel without CUDA for this platform, so that this lock has no class
  // for a machine without a GPU: nothing is started there, unless a class is asked for.
  const std::string none = folder_ + "/machine";
  fs::remove_all(none);
  ASSERT_EQ(std::system(
                format("sh '{}/tests/run/machine.sh' '{}' none", cufit::test::source_dir(), none)
                    .c_str()),
            0);
  ::setenv("CUFIT_TEST_MACHINE", none.c_str(), 1);
  const std::string on_machine = cufit::test::program_on_machine();
  const Output refused =
      run(format("run --lock '{}' -- python -c 'print(1)' 2>&1", folder_), on_machine);
  const Output asked =
      run(format("run -q --lock '{}' --env cu130 -- python -W ignore -c 'import "
                 "torch; print(torch.__version__, torch.cuda.is_available())'",
                 folder_),
          on_machine);
  ::unsetenv("CUFIT_TEST_MACHINE");
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.text, "no class for a machine without an NVIDIA GPU"))
      << refused.text;
  EXPECT_EQ(asked.text, "2.11.0+cu130 False\n");
}

TEST_F(RealEnvironments, OfAChangedFileAreFoundAndMadeAnew) {
  const std::string python = folder_ + "/.cufit/envs/cu117/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "the environments were not made";
  const std::string uv = std::getenv("CUFIT_UV");
  ASSERT_EQ(std::system(format("'{}' pip uninstall -q --python {} numpy", uv, python).c_str()), 0);
  const Output check = run(format("env check cu117 --json --lock '{}'", folder_));
  EXPECT_EQ(check.status, 1);
  EXPECT_TRUE(contains(check.text, "env_packages_differ")) << check.text;
  EXPECT_EQ(run(format("env create --force --offline cu117 --lock '{}'", folder_)).status, 0);
  EXPECT_EQ(run(format("env check cu117 --lock '{}'", folder_)).status, 0);
  EXPECT_EQ(run(format("env remove cu117 cu130 --lock '{}'", folder_)).status, 0);
}

}  // namespace
}  // namespace cufit
