// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/format.h"
#include "report/doctor_content.h"
#include "report/report.h"
#include "report/terminal/width.h"
#include "unit/report/sample.h"

namespace cufit::report {
namespace doctor_text_test {

using testing::broken;
using testing::healthy;
using testing::World;

std::string text(const World& world, const std::string& lang = "en", int width = 100,
                 bool verbose = false) {
  Style style;
  style.lang = lang;
  style.width = width;
  style.verbose = verbose;
  return doctor_text(world.view(), style);
}

TEST(DoctorText, HealthyMachineIsOneGlance) {
  EXPECT_EQ(text(healthy()),
            "✓ Yes: PyTorch will run on all 3 GPUs of this machine\n"
            "  Debian GNU/Linux 12\n"
            "\n"
            "GPU 0-2: NVIDIA H200 (9.0)\n"
            "  /opt/venv (venv, Python 3.12.3, torch 2.11.0+cu130)\n"
            "  ✓ ok       GPU, kernel driver, torch\n"
            "\n"
            "Environments without torch\n"
            "  /usr (venv, Python 3.12.3, no torch)\n"
            "\n"
            "`cufit doctor -v` shows every fact and where it was read\n");
}

TEST(DoctorText, BrokenMachineShowsTheLinkAndTheCommand) {
  EXPECT_EQ(text(broken()),
            "✗ No: PyTorch will not run on this machine's GPU\n"
            "  1 error\n"
            "\n"
            "GPU 0: NVIDIA GeForce RTX 3090 (8.6)\n"
            "  /opt/venv (venv, Python 3.12.3, torch 2.5.1+cu121)\n"
            "  ✓ ok       GPU\n"
            "  ✗ broken   kernel driver  says 520.61.05\n"
            "  ✓ ok       torch\n"
            "\n"
            "✗ error: The driver is too old for CUDA 12.1 [GPU 0]\n"
            "  This torch needs driver 525.60.13, the machine has 520.61.05\n"
            "  - `/sys/module/nvidia/version`: 520.61.05\n"
            "  - CUDA driver `cuInit`: 803\n"
            "  - table `data/cuda.toml`\n"
            "  What follows: /dev/shm is small; `no_such_id`\n"
            "  Rule: Any driver of the family works\n"
            "  Next: Take a wheel for this driver:\n"
            "      /opt/venv/bin/python -m pip install torch --index-url "
            "https://download.pytorch.org/whl/cu118\n"
            "    Then start again\n"
            "\n"
            "`cufit doctor -v` shows every fact; `cufit doctor --record FILE` makes a file for a "
            "colleague who\n"
            "helps\n");
}

TEST(DoctorText, ChineseSaysTheSame) {
  std::string zh = text(broken(), "zh");
  for (const char* part :
       {"✗ 不行：PyTorch 不能在本机的 GPU 上运行\n", "  ✗ 不通  内核驱动  显示 520.61.05\n",
        "✗ 错误：驱动对 CUDA 12.1 来说太旧 [GPU 0]\n", "  由此导致：/dev/shm 太小；`no_such_id`\n",
        "  下一步：换用适合此驱动的 wheel：\n"}) {
    EXPECT_NE(zh.find(part), std::string::npos) << part << "\n" << zh;
  }
}

TEST(DoctorText, HonoursEveryWidth) {
  World world = broken();
  const std::string command = world.report.findings[0].args["command"];
  for (const char* lang : {"en", "zh"}) {
    for (int width = 40; width <= 100; ++width) {
      std::string all = text(world, lang, width);
      for (std::string_view line : split_lines(all)) {
        if (contains(line, command)) continue;  // a command is never wrapped
        EXPECT_LE(columns(line), width) << lang << " " << width << ": " << line;
      }
      EXPECT_NE(all.find("      " + command + "\n"), std::string::npos);
    }
  }
}

TEST(DoctorText, EveryMarkStandsBesideAWord) {
  World world = broken();
  world.report.chains[0].links.push_back(
      testing::link("container", checks::LinkState::limited, "a limit"));
  world.report.chains[0].links.push_back(
      testing::link("libraries", checks::LinkState::unknown, "nothing"));
  std::string all = text(world);
  for (const char* part : {"  ✓ ok       GPU", "  ✗ broken   kernel driver",
                           "  ! limit    container", "  ? unknown  CUDA libraries"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

TEST(DoctorText, ColourOnlyAddsToTheSameText) {
  World world = broken();
  Style style;
  style.colour = true;
  std::string coloured = doctor_text(world.view(), style), plain;
  EXPECT_NE(coloured.find("\x1b["), std::string::npos);
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      plain += coloured[i];
    }
  }
  EXPECT_EQ(plain, text(world));
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
}

TEST(DoctorText, ForeignTextCannotSteerTheTerminal) {
  World world = broken();
  world.facts.envs[0].path = world.report.chains[0].env = "/opt/\x1b[2Jevil";
  world.report.findings[0].evidence[0].value = "\x1b]0;title\x07";
  world.report.findings[0].args["command"] = "echo \x1b[0m hi";
  world.facts.problems = {"`\x1b[5m`: bad"};
  for (bool verbose : {false, true})
    EXPECT_EQ(text(world, "en", 100, verbose).find('\x1b'), std::string::npos);
}

TEST(DoctorText, VerboseListsFactsWithSourceOrReason) {
  World world = healthy();
  world.facts.system.secure_boot =
      missing<bool>(WhyNot::no_permission, SourceKind::file, "/sys/efi", "denied");
  world.facts.system.ram_bytes = known<uint64_t>(1u << 30, SourceKind::file, "/proc/meminfo");
  std::string all = text(world, "en", 100, true);
  for (const char* part : {"  system.distribution: Debian GNU/Linux 12  [file /etc/os-release]\n",
                           "  system.secure_boot: no permission (denied)  [file /sys/efi]\n",
                           "  system.ram_bytes: 1073741824 (1.0 GiB)  [file /proc/meminfo]\n",
                           "  envs[0].torch.version: 2.11.0+cu130  [file version.py]\n",
                           "  ✓ ok       kernel driver  says 520.61.05\n      `/proc/x`: seen\n"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
}

TEST(DoctorText, SaysWhenFactsAreNotOfThisMachine) {
  World world = healthy();
  world.facts.origin = "dump";
  EXPECT_NE(text(world).find("claimed, not observed"), std::string::npos);
  world.facts.origin = "recording";
  EXPECT_NE(text(world).find("recording"), std::string::npos);
  world.facts.origin = "live";
  world.facts.kernel.version = known<std::string>("535", SourceKind::assumed, "--driver");
  EXPECT_NE(text(world).find("What if:"), std::string::npos);
}

TEST(DoctorText, ABreakInOneEnvironmentIsNotSaidOfAll) {
  World world = broken();
  world.facts.envs.push_back(testing::env("/opt/other", "2.11.0+cu118"));
  testing::add_chain(world, "0: NVIDIA GeForce RTX 3090 (8.6)", "/opt/other",
                     checks::LinkState::limited);
  EXPECT_NE(text(world).find("PyTorch runs in 1 of 2 pairs"), std::string::npos);
}

TEST(DoctorText, NoGpuAndNoEnvironmentStillAnswers) {
  World world;
  world.report.verdict = checks::LinkState::broken;
  EXPECT_TRUE(starts_with(text(world), "✗ No: PyTorch cannot use a GPU on this machine\n"));
}

TEST(DoctorText, AnEnvironmentWithTorchIsNotListedAsOneWithout) {
  World world = broken();
  world.report.chains.clear();  // no GPU, no chain
  std::string all = text(world);
  EXPECT_EQ(all.find("without torch"), std::string::npos) << all;
  EXPECT_NE(all.find("\nEnvironments\n  /opt/venv (venv, Python 3.12.3, torch 2.5.1+cu121)\n"),
            std::string::npos)
      << all;
}

TEST(CutCommands, TakesOutOnlyWhatCanBeCopied) {
  auto shown = [](std::string_view text) {
    std::string out;
    for (const Piece& piece : cut_commands(text))
      out += (piece.command ? "$" : "") + piece.text + "|";
    return out;
  };
  EXPECT_EQ(shown("Run `a b`. Then `c d`, or not"), "Run|$a b|Then|$c d|or not|");
  EXPECT_EQ(shown("`a b`"), "$a b|");
  EXPECT_EQ(shown("Start with `--gpus all`"), "Start with `--gpus all`|");
  EXPECT_EQ(shown("Install it (Ubuntu: `apt x`, Debian: `apt y`), then `a b`"),
            "Install it (Ubuntu: `apt x`, Debian: `apt y`), then|$a b|");
  EXPECT_EQ(shown("安装（Ubuntu：`apt x`），然后 `a b`。"), "安装（Ubuntu：`apt x`），然后|$a b|");
  EXPECT_EQ(shown("写 `a b`、`c d`、`e`"), "写|$a b|$c d|`e`|");
  EXPECT_EQ(shown("no `closing quote"), "no `closing quote|");
}

TEST(DoctorText, ANextStepThatIsOneCommandIsNeverWrapped) {
  World world = broken();
  world.report.findings[0].id = "reboot_now";
  for (std::string lang : {"en", "zh"}) {
    std::string colon = lang == "zh" ? "：" : ":";
    EXPECT_NE(
        text(world, lang, 40)
            .find(colon +
                  "\n      sudo reboot --with a very long list of words that passes any width\n"),
        std::string::npos)
        << text(world, lang, 40);
  }
}

TEST(FindingText, ChoosesVariantLanguageAndFallsBack) {
  World world = broken();
  checks::Finding finding = world.report.findings[0];
  EXPECT_EQ(finding_text(finding, "title", "zh", world.knowledge), "驱动对 CUDA 12.1 来说太旧");
  finding.variant = "dump";
  EXPECT_EQ(finding_text(finding, "why", "en", world.knowledge),
            "According to the text, 520.61.05 is installed");
  EXPECT_EQ(finding_text(finding, "title", "en", world.knowledge),
            "The driver is too old for CUDA 12.1");
  finding.id = "no_such_id";
  EXPECT_EQ(finding_text(finding, "title", "en", world.knowledge), "no_such_id");
  EXPECT_EQ(finding_text(finding, "why", "en", world.knowledge), "");
}

// What could not be decided must not read like a fact, nor send anybody to install something.
TEST(FindingText, AnUndecidedFindingAssertsNothing) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  checks::Finding finding;
  finding.id = "driver_too_old";
  finding.severity = checks::Severity::unknown;
  EXPECT_EQ(finding_text(finding, "title", "en", knowledge),
            "Could not be judged: \"The driver is too old for torch's CUDA runtime\"");
  EXPECT_EQ(finding_text(finding, "why", "zh", knowledge),
            "决定这一点的信息没有读到，因此无法断定是否如此。");
  EXPECT_EQ(finding_text(finding, "next", "en", knowledge),
            "Run `cufit doctor -v`, which names what was not read and why");
  finding.variant = "unknown_driver";
  finding.args = {{"need", "580"}};
  EXPECT_EQ(finding_text(finding, "next", "en", knowledge),
            "Ask again with a driver as well, for instance `--driver 580`");
}

TEST(Fill, FillsOnlyKnownNames) {
  std::map<std::string, std::string> args{{"a", "1"}, {"b", "{a}"}};
  EXPECT_EQ(format_message("{a} {b} {c} {{a}} { a} {", args), "1 {a} {c} {a} { a} {");
}

}  // namespace doctor_text_test
}  // namespace cufit::report
