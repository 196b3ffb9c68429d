// SPDX-License-Identifier: Apache-2.0
// The cli_filter.lua of `cufit export --to slurm-submit`, run by each Lua that is here as Slurm runs
// it (Debian's plug-in has 5.1), with programs that stand for cufit and sinfo.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "support/places.h"

namespace cufit {
namespace {

namespace fs = std::filesystem;

bool done(const std::string& line) {
  const int status = std::system(line.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Notes folder and words of each call; keeps answers for train.py alone.
constexpr const char* k_cufit = R"sh(#!/bin/sh
{ printf '%s ' "$PWD"; for word in "$@"; do printf '[%s]' "$word"; done; echo; } >>"$ASKED"
shift 3
usable=41875931136; name="A100 SXM4 40GB"; fits=false; code=1
case "$2" in *200*) usable=150000000000; name=H200; fits=true; code=0;; esac
shift 3
case "$*" in *unknown.py*) exit 4;; *slow.py*) sleep 60;; esac
cat <<END
{
  "peak_reserved_upper_bytes": 1,
  "schema": "cufit.fit/1",
  "cached": {
    "made": 1,
    "files": 2,
    "gpus": [
      {
        "name": "$name",
        "needs_bytes": 85899345920,
        "usable_bytes": $usable,
        "fits": $fits
      }
    ]
  }
}
END
exit $code
)sh";

constexpr const char* k_sinfo = R"sh(#!/bin/sh
echo "gpu*|gpu:a100:4(S:0-1),shard:16"
echo "gpu*|gpu:h200:8"
echo "big|gpu:h200:8"
echo "old|gpu:a100:4(S:0-1)"
echo "mixed|gpu:a100:4(S:0-1),gpu:2"
echo "cpu|(null)"
)sh";

class SlurmSubmit : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cufit-submit-XXXXXX";
    folder_ = mkdtemp(name);
    fs::create_directories(folder_ + "/bin");
    fs::create_directories(folder_ + "/work");
    write("bin/cufit", k_cufit);
    write("bin/sinfo", k_sinfo);
    ASSERT_TRUE(
        done(format("cd {} && '{}' export --to slurm-submit --lang {} -o cli_filter.lua "
                    ">/dev/null",
                    folder_, test::program(), GetParam().second)));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const char* text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }

  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Luas, SlurmSubmit,
                         testing::Values(std::pair("lua5.1", "en"), std::pair("lua5.3", "en"),
                                         std::pair("lua5.4", "zh")));

TEST_P(SlurmSubmit, ReadsJobsAndNeverStopsThemUnasked) {
  const std::string lua = GetParam().first;
  if (!done("command -v " + lua + " >/dev/null 2>&1")) GTEST_SKIP() << "no " << lua << " here";
  EXPECT_TRUE(
      done(format("cd {} && env -u SLURM_JOB_ID ASKED={}/asked PATH={}/bin:\"$PATH\" {} "
                  "'{}/tests/export/cli_filter_test.lua' cli_filter.lua {}",
                  folder_, folder_, folder_, lua, test::source_dir(), folder_)));
}

// A step of a job that runs is not looked at, and an unreadable script stops nothing.
TEST_P(SlurmSubmit, StepsAreLeftAlone) {
  const std::string lua = GetParam().first;
  if (!done("command -v " + lua + " >/dev/null 2>&1")) GTEST_SKIP() << "no " << lua << " here";
  EXPECT_TRUE(done(format(
      "cd {} && SLURM_JOB_ID=7 ASKED={}/asked PATH={}/bin:\"$PATH\" {} -e 'slurm = {{SUCCESS = 0, "
      "ERROR = -1}}' -e 'dofile(\"cli_filter.lua\")' -e 'os.exit(slurm_cli_pre_submit({{type = "
      "\"srun\", gres = \"gpu:1\", argv = {{\"python\", \"train.py\"}}}}, 0))' && test ! -e asked",
      folder_, folder_, folder_, lua)));
}

}  // namespace
}  // namespace cufit
