// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/package_mentions.h"

#include <gtest/gtest.h>

#include "formats/python/install_command.h"

namespace cufit::formats {
namespace package_mentions_test {

using Names = std::vector<std::string>;

PackageMentions mentions_of(std::string_view text) {
  return parse_package_mentions(plain_text_lines(text));
}

// "name" or "name==version" of one kind; '?' where prose may read the same.
Names names(const PackageMentions& said, MentionKind kind) {
  Names out;
  for (const PackageMention& one : said.mentions) {
    if (one.kind != kind) continue;
    out.push_back(one.name + (one.version.empty() ? "" : "==" + one.version) +
                  (one.sure ? "" : "?"));
  }
  return out;
}
Names failed(std::string_view text) { return names(mentions_of(text), MentionKind::build_failed); }
Names asked(std::string_view text) {
  Names out;
  for (const InstallCommand& command : mentions_of(text).commands) {
    out.push_back(command.typed ? "$" : "");
    for (const PackageMention& one : command.wanted)
      out.back() += " " + one.name + (one.version.empty() ? "" : "==" + one.version);
  }
  return out;
}

TEST(PackageMentions, FailedBuildsOfInstallers) {
  EXPECT_EQ(failed("  ERROR: Failed building wheel for flash-attn"), Names{"flash-attn"});
  EXPECT_EQ(failed("ERROR: Could not build wheels for a1, mamba-ssm, which is required to install "
                   "pyproject.toml-based projects"),
            (Names{"a1", "mamba-ssm"}));
  EXPECT_EQ(failed("  Building wheel for apex (setup.py) ... error"), Names{"apex"});
  EXPECT_EQ(failed("    Running setup.py install for apex: finished with status 'error'"),
            Names{"apex"});
  EXPECT_EQ(failed("  x Failed to build `deepspeed==0.16.4`"), Names{"deepspeed==0.16.4"});
  EXPECT_EQ(failed("ERROR: Failed to build installable wheels for some pyproject.toml based "
                   "projects (flash-attn)"),
            Names{"flash-attn"});
  EXPECT_EQ(failed("hint: This error likely indicates that `deepspeed@0.16.4` depends on `torch`"),
            Names{"deepspeed==0.16.4"});
  EXPECT_EQ(
      failed("Note: This error originates from the build backend, and is likely not a problem "
             "with poetry but with flash-attn (2.5.8) not supporting PEP 517 builds."),
      Names{"flash-attn==2.5.8"});
  EXPECT_EQ(failed("Failed to build flash-attn mamba-ssm"), (Names{"flash-attn?", "mamba-ssm?"}));
}

TEST(PackageMentions, PipFailsAtWhatItCollectedLast) {
  EXPECT_EQ(failed("Collecting torch\nCollecting flash-attn==2.5.8 (from -r r.txt (line 3))\n"
                   "  Preparing metadata (setup.py): finished with status 'error'\n"
                   "  error: subprocess-exited-with-error\n"),
            Names{"flash-attn==2.5.8"});
  EXPECT_TRUE(failed("Collecting einops\nBuilding wheels for collected packages: x\n"
                     "error: subprocess-exited-with-error\n")
                  .empty());
}

TEST(PackageMentions, WhatWasBuiltIsNone) {
  const PackageMentions said = mentions_of(
      "  Building wheel for a1 (setup.py): started\n"
      "  Building wheel for a1 (setup.py): finished with status 'done'\n"
      "  Building wheel for flash-attn (setup.py): started\n");
  EXPECT_EQ(names(said, MentionKind::build), Names{"flash-attn"});
}

TEST(PackageMentions, FoldersThatAnInstallerUnpacksInto) {
  EXPECT_EQ(names(mentions_of("File \"/tmp/pip-install-k2/"
                              "flash-attn_0123456789abcdef0123456789abcdef/setup.py\", line 9"),
                  MentionKind::build),
            Names{"flash-attn"});
  EXPECT_EQ(names(mentions_of("/root/.cache/uv/sdists-v9/pypi/flash-attn/2.8.3/AbC/src/setup.py"),
                  MentionKind::build),
            Names{"flash-attn"});
}

TEST(PackageMentions, ModulesThatDoNotLoad) {
  const auto modules = [](std::string_view text) {
    return names(mentions_of(text), MentionKind::module);
  };
  const auto files = [](std::string_view text) {
    return names(mentions_of(text), MentionKind::file);
  };
  EXPECT_EQ(modules("ModuleNotFoundError: No module named 'mmcv._ext'"), Names{"mmcv._ext"});
  EXPECT_EQ(modules("ImportError: No module named amp_C"), Names{"amp_C"});
  EXPECT_EQ(modules("ImportError: DLL load failed while importing flash_attn_2_cuda: The"),
            Names{"flash_attn_2_cuda"});
  EXPECT_EQ(modules("ImportError: cannot import name 'scatter' from 'torch_scatter' (unknown)"),
            Names{"torch_scatter"});
  EXPECT_EQ(files("ImportError: /opt/lib/python3.10/site-packages/mmcv/_ext.cpython-310-x86_64-"
                  "linux-gnu.so: undefined symbol: _ZN3c10"),
            Names{"mmcv._ext"});
  EXPECT_EQ(files("OSError: C:\\venv\\Lib\\site-packages\\torch_sparse\\_spmm_cuda.pyd"),
            Names{"torch_sparse._spmm_cuda"});
  EXPECT_EQ(files("ImportError: /x/site-packages/pointnet2_ops-3.0-py3.8-linux-x86_64.egg/"
                  "pointnet2_ops/_ext.cpython-38-x86_64-linux-gnu.so: undefined symbol: _Z"),
            Names{"pointnet2_ops._ext"});
  EXPECT_EQ(files("flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c10"),
            Names{"flash_attn_2_cuda"});
  EXPECT_TRUE(files("loaded /x/site-packages/mmcv/_ext.cpython-310-x86_64-linux-gnu.so").empty());
}

TEST(PackageMentions, ModulesOfTheLastTraceback) {
  const PackageMentions said = mentions_of(
      "Traceback (most recent call last):\n"
      "  File \"/v/site-packages/xformers/ops.py\", line 3, in f\n    x()\n"
      "Traceback (most recent call last):\n"
      "  File \"/v/site-packages/mamba_ssm/ops.py\", line 3, in f\n"
      "    out = causal_conv1d_cuda.causal_conv1d_fwd(x)\n");
  EXPECT_EQ(names(said, MentionKind::frame), (Names{"mamba_ssm", "causal_conv1d_cuda"}));
}

TEST(PackageMentions, InstallCommands) {
  EXPECT_EQ(asked("$ pip install flash-attn==2.5.8 --no-build-isolation"),
            Names{"$ flash-attn==2.5.8"});
  EXPECT_EQ(asked("(env) me@h:~$ python -m pip install -U 'xformers[x]>=0.0.2' ninja && ls"),
            Names{"$ xformers ninja"});
  EXPECT_EQ(asked("RUN uv pip install --index-url https://x/cu121 torch mamba-ssm"),
            Names{"$ torch mamba-ssm"});
  EXPECT_EQ(asked("It says `pip install flash-attn` fails"), Names{"$ flash-attn"});
  EXPECT_EQ(asked("pip install fails"), Names{" fails"});  // prose, perhaps
  EXPECT_EQ(asked("$ pip install -r requirements.txt"), Names{"$"});
  EXPECT_EQ(asked("$ pip install $(reboot) x;ls"), Names{"$"});
}

TEST(PackageMentions, OwnProjectsAndRepositories) {
  EXPECT_TRUE(mentions_of("$ pip install -e .").from_folder);
  EXPECT_TRUE(mentions_of("$ pip install git+https://github.com/a/b").from_folder);
  EXPECT_TRUE(mentions_of("Processing /home/me/project").from_folder);
  EXPECT_TRUE(mentions_of("x Failed to build `b @ file:///home/me/b`").from_folder);
  EXPECT_FALSE(mentions_of("$ pip install https://x/flash_attn-2.5.8-cp310-cp310-linux_x86_64.whl")
                   .from_folder);
}

TEST(PackageMentions, OnlyNamesAndVersionsThatACommandMayHold) {
  EXPECT_TRUE(failed("ERROR: Failed building wheel for x;reboot").empty());
  EXPECT_TRUE(failed("ERROR: Failed building wheel for $(reboot)").empty());
  EXPECT_TRUE(failed("ERROR: Failed building wheel for -rf").empty());
  EXPECT_TRUE(failed("ERROR: Failed building wheel for " + std::string(65, 'a')).empty());
  EXPECT_EQ(failed("x Failed to build `a1==2.0;reboot`"), Names{"a1==2.0"});
  EXPECT_EQ(failed("x Failed to build `a1==$(reboot)`"), Names{"a1"});
  EXPECT_FALSE(is_distribution_name("a b"));
  EXPECT_FALSE(is_distribution_name("a-"));
  EXPECT_FALSE(is_distribution_name(""));
  EXPECT_EQ(pinned_version("2.5.8`"), "2.5.8");
  EXPECT_EQ(pinned_version("2.5.*"), "");              // no release
  EXPECT_EQ(pinned_version("2.5.8+cu122torch2"), "");  // no index has a local part
  EXPECT_EQ(pinned_version("2.5.8.post1,<3"), "2.5.8.post1");
}

}  // namespace package_mentions_test
}  // namespace cufit::formats
