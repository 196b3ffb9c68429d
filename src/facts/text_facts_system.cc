// SPDX-License-Identifier: Apache-2.0
// The machine around a pasted text: distribution, kernel, C library, WSL, and what a container got.
#include <algorithm>

#include "base/format.h"
#include "facts/text_claims.h"

namespace cufit::facts {
namespace {

using formats::MachineMention;
using formats::MachineWord;

class SystemClaims {
 public:
  SystemClaims(const TextParts& parts, const TextSource& source, Facts& facts)
      : parts_(parts), source_(source), facts_(facts) {}

  void read() { system(); }

 private:
  void settle(Fact<std::string>& fact, MachineWord what) const {
    if (fact) return;  // the dump said it
    fact = source_.settle(mentions_of(parts_.words, what));
  }

  void system() {
    SystemFacts& system = facts_.system;
    distribution();
    settle(system.kernel, MachineWord::kernel);
    settle(system.architecture, MachineWord::architecture);
    settle(system.glibc, MachineWord::glibc);
    if (!system.libc) {
      system.libc = system.glibc ? known<std::string>("glibc", SourceKind::claimed,
                                                      system.glibc.source.detail)
                                 : source_.unsaid<std::string>();
    }
    settle(system.wsl, MachineWord::wsl);
    std::vector<Claim> jetson = mentions_of(parts_.words, MachineWord::jetson);
    auto is_l4t = [](const Claim& claim) { return starts_with(claim.value, "L4T"); };
    if (std::any_of(jetson.begin(), jetson.end(), is_l4t))  // JetPack's number says the same
      jetson.erase(std::remove_if(jetson.begin(), jetson.end(),
                                  [&](const Claim& claim) { return !is_l4t(claim); }),
                   jetson.end());
    if (!system.jetson) system.jetson = source_.settle(jetson);
    // What a container lacks is read from its /dev, which no text shows; that a text speaks of one
    // is no evidence of that.
    std::vector<Claim> containers = mentions_of(parts_.words, MachineWord::container);
    system.container = containers.empty()
                           ? source_.unsaid<std::string>()
                           : source_.unsaid<std::string>(format(
                                 "line {} speaks of {}", containers[0].line, containers[0].value));
    Fact<std::string> secure = source_.settle(mentions_of(parts_.words, MachineWord::secure_boot));
    system.secure_boot =
        secure ? known<bool>(*secure == "enabled", SourceKind::claimed, secure.source.detail)
               : source_.unsaid<bool>();
    const formats::DockerRun* sized = nullptr;
    for (const formats::DockerRun& run : parts_.shell.containers) {
      if (formats::docker_size(run.shm_size) == 0) continue;
      if (sized && sized->shm_size != run.shm_size) {
        system.shm_bytes = source_.contradicted<uint64_t>({sized->shm_size, sized->line},
                                                          {run.shm_size, run.line});
        return;
      }
      sized = &run;
      system.shm_bytes = source_.claim<uint64_t>(formats::docker_size(run.shm_size), run.line);
    }
  }

  void distribution() {
    SystemFacts& system = facts_.system;
    if (system.distribution) return;
    std::vector<Claim> claims = mentions_of(parts_.words, MachineWord::system);
    // Under WSL, Windows is the machine around this one.
    bool wsl =
        std::any_of(parts_.words.mentions.begin(), parts_.words.mentions.end(),
                    [](const MachineMention& word) { return word.what == MachineWord::wsl; });
    if (wsl) {
      claims.erase(
          std::remove_if(claims.begin(), claims.end(),
                         [](const Claim& claim) { return starts_with(claim.value, "Windows"); }),
          claims.end());
    }
    system.distribution = source_.settle(claims);
    system.distribution_id = source_.unsaid<std::string>();
    if (!system.distribution) return;
    std::string low = lower(*system.distribution);
    for (std::string_view id : {"ubuntu", "debian", "fedora", "centos", "almalinux"}) {
      if (!starts_with(low, std::string(id) + " ")) continue;
      std::vector<std::string_view> parts = split(std::string_view(low).substr(id.size() + 1), '.');
      std::string version(parts[0]);
      if (id == "ubuntu" && parts.size() > 1) version += "." + std::string(parts[1]);
      system.distribution_id = known<std::string>(
          std::string(id) + " " + version, SourceKind::claimed, system.distribution.source.detail);
    }
  }

  const TextParts& parts_;
  const TextSource& source_;
  Facts& facts_;
};

}  // namespace

void read_text_system(const TextParts& parts, const TextSource& source, Facts& facts) {
  SystemClaims(parts, source, facts).read();
}

}  // namespace cufit::facts
