// SPDX-License-Identifier: Apache-2.0
// A small world and two reports in it for the tests of the renderers: one machine where all is
// well, one where the driver is too old.
#pragma once

#include <algorithm>

#include "report/report.h"

namespace cufit::report::testing {

using checks::LinkState;
using checks::Severity;

inline const knowledge::TextPair k_driver_texts[] = {
    {"title", "The driver is too old for CUDA {cuda}", "驱动对 CUDA {cuda} 来说太旧"},
    {"why", "This torch needs driver {need}, the machine has {have}",
     "此 torch 需要驱动 {need}，本机为 {have}"},
    {"why.dump", "According to the text, {have} is installed", "文本称已安装 {have}"},
    {"rule", "Any driver of the family works", "同系列的驱动都可用"},
    {"next", "Take a wheel for this driver: `{command}`. Then start again",
     "换用适合此驱动的 wheel：`{command}`。然后重试"},
};
inline const knowledge::TextPair k_shm_texts[] = {
    {"title", "/dev/shm is small", "/dev/shm 太小"},
    {"next", "Start the container with `--shm-size=8g`", "启动容器时加上 `--shm-size=8g`"},
};
inline const knowledge::TextPair k_command_texts[] = {
    {"next", "sudo reboot --with a very long list of words that passes any width",
     "sudo reboot --with a very long list of words that passes any width"},
};
inline const knowledge::FindingTexts k_findings[] = {
    {"driver_too_old", "driver", "update-driver", k_driver_texts},
    {"reboot_now", "driver", "reset", k_command_texts},
    {"shm_too_small", "container", "configure", k_shm_texts},
};

// The real labels plus the texts above.
struct World {
  World() {
    const knowledge::Knowledge& real = knowledge::Knowledge::builtin();
    for (const knowledge::TextPair& pair : real.messages) {
      if (pair.key.substr(0, 7) == "report.") messages.push_back(pair);
    }
    messages.push_back({"test.link", "says {what}", "显示 {what}"});
    std::sort(
        messages.begin(), messages.end(),
        [](const knowledge::TextPair& a, const knowledge::TextPair& b) { return a.key < b.key; });
    knowledge.messages = messages;
    knowledge.findings = k_findings;
  }
  std::vector<knowledge::TextPair> messages;
  knowledge::Knowledge knowledge{};
  facts::Facts facts;
  checks::Report report;
  DoctorView view() const { return {facts, report, knowledge}; }
};

inline checks::Link link(std::string name, LinkState state, std::string what) {
  return {std::move(name),
          state,
          "test.link",
          {{"what", std::move(what)}},
          {{"file", "/proc/x", "seen"}}};
}

inline facts::PythonEnv env(std::string path, std::string torch) {
  facts::PythonEnv out;
  out.path = std::move(path);
  out.kind = "venv";
  out.python = known<std::string>("3.12.3", SourceKind::file, "pyvenv.cfg");
  if (!torch.empty())
    out.torch.version = known<std::string>(std::move(torch), SourceKind::file, "version.py");
  return out;
}

inline void add_chain(World& world, const std::string& gpu, const std::string& env,
                      LinkState driver) {
  world.report.chains.push_back(
      {gpu,
       env,
       {link("gpu", LinkState::ok, "a GPU"), link("kernel_driver", driver, "520.61.05"),
        link("torch", LinkState::ok, "sm_90")}});
}

inline World healthy() {
  World world;
  world.report.verdict = LinkState::ok;
  world.facts.system.distribution =
      known<std::string>("Debian GNU/Linux 12", SourceKind::file, "/etc/os-release");
  world.facts.envs = {env("/opt/venv", "2.11.0+cu130"), env("/usr", "")};
  for (int i = 0; i < 3; ++i)
    add_chain(world, std::to_string(i) + ": NVIDIA H200 (9.0)", "/opt/venv", LinkState::ok);
  return world;
}

inline World broken() {
  World world;
  world.report.verdict = LinkState::broken;
  world.facts.envs = {env("/opt/venv", "2.5.1+cu121")};
  add_chain(world, "0: NVIDIA GeForce RTX 3090 (8.6)", "/opt/venv", LinkState::broken);
  checks::Finding finding;
  finding.id = "driver_too_old";
  finding.severity = Severity::error;
  finding.subject = "GPU 0";
  finding.args = {{"cuda", "12.1"},
                  {"need", "525.60.13"},
                  {"have", "520.61.05"},
                  {"command",
                   "/opt/venv/bin/python -m pip install torch --index-url "
                   "https://download.pytorch.org/whl/cu118"}};
  finding.evidence = {{"file", "/sys/module/nvidia/version", "520.61.05"},
                      {"cuda", "cuInit", "803"},
                      {"table", "data/cuda.toml", ""}};
  finding.consequences = {"shm_too_small", "no_such_id"};
  world.report.findings = {finding};
  return world;
}

}  // namespace cufit::report::testing
