// SPDX-License-Identifier: Apache-2.0
#include "explain/torch_step.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "checks/check.h"
#include "checks/install/torch_command.h"
#include "checks/install/torch_step.h"
#include "checks/torch_env.h"
#include "checks/wheel_pick.h"
#include "formats/python/requirement.h"
#include "knowledge/finding_text.h"

namespace cufit::explain {
namespace {

// What a cause says of a GPU or driver that the text does not name: a wheel for all of these fits.
std::vector<ComputeCapability> implied_gpus(std::string_view cause) {
  if (cause == "arch_gpu_too_new") return {{12, 0}};
  if (cause == "arch_gpu_too_old") return {{5, 0}, {6, 0}, {7, 0}};
  return {};
}

bool asks_for_torch(std::string_view text) {
  return contains(text, "{install}") || contains(text, "{family}") ||
         contains(text, "{reinstall}") || contains(text, "{restore}") ||
         contains(text, "{patched}");
}

class TorchStep {
 public:
  TorchStep(const facts::Facts& facts, const knowledge::Knowledge& knowledge)
      : knowledge_(knowledge), input_(checks::make_input(facts, knowledge)) {
    if (const facts::PythonEnv* env = checks::main_env(facts)) {
      env_ = *env;
    } else {
      env_.path = "(claimed)";
      env_.kind = "claimed";
      env_.installer = "pip";
    }
  }

  void fill(Cause& cause) {
    checks::Input input = input_;
    const bool named = std::any_of(input.gpus.begin(), input.gpus.end(),
                                   [](const checks::GpuView& gpu) { return gpu.cc.has_value(); });
    std::vector<ComputeCapability> ccs = named ? capabilities() : implied_gpus(cause.id);
    imply_driver(cause.id, named, input);
    const facts::PythonEnv env =
        cause.id == "torch_not_installed" ? env_ : with_partners(env_, input, ccs);
    const checks::TorchStep step = checks::torch_step(input, env, ccs);
    const std::optional<checks::WheelPick>& pick = step.pick;
    std::map<std::string, std::string>& args = cause.finding.args;
    args["gpu"] = names();
    checks::add_torch_step(env, step, cause.finding);
    // What is not known leaves its sentence out.
    std::erase_if(args, [](const auto& one) { return one.second.empty(); });
    const auto add = [&](const char* name, const std::string& text) {
      if (!text.empty()) args[name] = text;
    };
    add("family", family(pick, cause.id == "torch_family_mismatch"));
    add("reinstall", reinstalled(pick));
    add("restore", restored());
    add("patched", patched());
    const knowledge::FindingTexts& texts = *knowledge_.find_texts(cause.id);
    const bool unknown = !named && !env_.torch.version && cause.finding.variant == "text";
    if (unknown && knowledge::find_text(texts, "next.text.unknown_torch"))
      cause.finding.variant += ".unknown_torch";
    if (!step.blocked.empty() && cause.finding.variant == "text" &&
        knowledge::find_text(texts, "next.text." + step.blocked))
      cause.finding.variant += "." + step.blocked;
  }

  // A check that found it by torch's own version alone knows of no partners. `family`: the program
  // needs them all, so the newest torch that has them goes before a newer one.
  void add_partners_to(Cause& cause, bool family) {
    if (cause.finding.args.count("install") == 0 || !env_.torch.version) return;
    const std::vector<ComputeCapability> ccs = capabilities();
    const facts::PythonEnv env = with_partners(env_, input_, ccs);
    const checks::TorchStep step = checks::torch_step(input_, env, ccs);
    if (step.command.empty() || !step.blocked.empty() || !step.pinner.empty() || !step.pick) return;
    if (!family && cause.finding.args["last_torch"] != step.pick->torch) return;
    cause.finding.args["install"] = family ? with_xformers(step) : step.command;
    cause.finding.args["last_torch"] = step.pick->torch;
    cause.finding.args["last_tag"] = step.pick->tag;
  }

 private:
  // A text that lists no packages does not say that torch stands alone: torchvision and torchaudio
  // of another torch would not load after the step. So both go along, where the release has them.
  facts::PythonEnv with_partners(facts::PythonEnv env, const checks::Input& input,
                                 const std::vector<ComputeCapability>& ccs) const {
    if (env.kind != "claimed" || lists_packages(env)) return env;
    add_partners(env, checks::torch_step(input, env, ccs).pick);
    return env;
  }

  // xformers is loaded at the start of a program that has it, so one that fits comes along.
  std::string with_xformers(const checks::TorchStep& step) const {
    const size_t at = step.command.find(" --index-url");
    if (!checks::find_distribution(env_, "xformers") || at == std::string::npos)
      return step.command;
    std::string newest;
    for (const knowledge::ExtensionRow& row : knowledge_.extensions) {
      const auto clauses = formats::parse_clauses(row.torch);
      const std::string cuda = step.pick->tag.substr(2, 2) + "." + step.pick->tag.substr(4);
      const auto served = split(row.cuda, ' ');
      if (row.package == "xformers" && clauses && formats::satisfies(*clauses, step.pick->torch) &&
          std::find(served.begin(), served.end(), cuda) != served.end())
        newest = row.version;
    }
    if (newest.empty()) return step.command;
    return step.command.substr(0, at) + " xformers==" + newest + step.command.substr(at);
  }

  // A partner or a whole list; an extension that is named beside torch is none.
  static bool lists_packages(const facts::PythonEnv& env) {
    constexpr size_t k_few = 4;
    return env.distributions &&
           (env.distributions->size() > k_few || checks::find_distribution(env, "torchvision") ||
            checks::find_distribution(env, "torchaudio"));
  }

  // torch with its partners, whether or not the text names them: the release that is there, where
  // the tables know it, else the one that fits.
  // `beside`: torch itself is right and stays, so its partners alone.
  std::string family(const std::optional<checks::WheelPick>& pick, bool beside) const {
    facts::PythonEnv env = env_;
    add_partners(env, pick);
    const checks::TorchBuild build = checks::torch_build_of(input_, env);
    const bool stays = build.kind == "cuda" && !build.tag.empty() &&
                       knowledge_.find_torch(build.release) != nullptr;
    if (stays && beside) return checks::partners_command(input_, env, build.release, build.tag);
    // All of them anew: what is there now counts for nothing.
    if (stays) return checks::install_command(input_, without_torch(env), build.release, build.tag);
    return checks::install_text(input_, env, pick);
  }

  static facts::PythonEnv without_torch(facts::PythonEnv env) {
    std::vector<facts::Distribution> packages = *env.distributions;
    std::erase_if(packages, [](const auto& one) { return one.name == "torch"; });
    env.distributions = known(std::move(packages), SourceKind::assumed, "");
    return env;
  }

  // torchvision and torchaudio, as installed beside torch in a version that is not known.
  void add_partners(facts::PythonEnv& env, const std::optional<checks::WheelPick>& pick) const {
    std::vector<facts::Distribution> packages;
    if (env.distributions) packages = *env.distributions;
    for (const char* partner : {"torchvision", "torchaudio"}) {
      if (checks::find_distribution(env, partner)) continue;
      if (std::string_view(partner) == "torchaudio" && !has_torchaudio(pick)) continue;
      packages.emplace_back();
      packages.back().name = partner;
    }
    env.distributions = known(std::move(packages), SourceKind::assumed, "");
  }

  bool has_torchaudio(const std::optional<checks::WheelPick>& pick) const {
    const checks::TorchBuild build = checks::torch_build_of(input_, env_);
    const knowledge::TorchRelease* row = knowledge_.find_torch(build.release);
    if (row == nullptr && pick) row = knowledge_.find_torch(pick->torch);
    return row != nullptr && !row->torchaudio.empty();
  }

  std::string reinstalled(const std::optional<checks::WheelPick>& pick) const {
    const checks::TorchBuild build = checks::torch_build_of(input_, env_);
    if (build.kind == "cuda" && !build.tag.empty() && !build.release.empty())
      return checks::repair_command(input_, env_, build.release, build.tag);
    return checks::install_text(input_, env_, pick);
  }

  // The release that is there once more: pip leaves it and installs what it misses. Empty: the
  // release or its variant is not known.
  std::string restored() const {
    const checks::TorchBuild build = checks::torch_build_of(input_, env_);
    const bool known = build.kind == "cuda" && !build.tag.empty() && !build.release.empty();
    return known ? checks::complete_command(input_, env_, build.release, build.tag) : std::string();
  }

  // The newest patch of the release that is there, in its variant; empty: there is none, or the
  // variant is not known.
  std::string patched() const {
    const checks::TorchBuild build = checks::torch_build_of(input_, env_);
    const std::optional<Version> have = parse_version(build.release);
    if (!have || build.tag.empty()) return {};
    std::string best;
    for (const knowledge::WheelVariant& wheel : knowledge_.wheel_variants) {
      const std::optional<Version> other = parse_version(wheel.torch);
      if (wheel.tag == build.tag && other && other->part(0) == have->part(0) &&
          other->part(1) == have->part(1) && *other > *have)
        best = wheel.torch;
    }
    return best.empty() ? best : checks::install_command(input_, env_, best, build.tag);
  }

  std::vector<ComputeCapability> capabilities() const {
    std::vector<ComputeCapability> out;
    for (const checks::GpuView& gpu : input_.gpus)
      if (gpu.cc) out.push_back(*gpu.cc);
    return out;
  }
  std::string names() const {
    std::vector<std::string> out;
    for (const checks::GpuView& gpu : input_.gpus) {
      const std::string name = gpu.cc ? format("{} ({})", gpu.name, gpu.cc->text()) : gpu.name;
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return cufit::join(out, ", ");
  }

  // A driver that is too old for torch is of an older CUDA major than torch's; one of which nothing
  // is known is not taken for the newest.
  void imply_driver(std::string_view cause, bool gpu_named, checks::Input& input) const {
    if (input.driver || input.driver_cuda) return;
    const checks::TorchBuild build = checks::torch_build_of(input, env_);
    if (cause == "driver_too_old") {
      const uint32_t major = build.cuda ? build.cuda->part(0) : 12;
      input.driver_cuda = Version{{major > 11 ? major - 1 : 11, 0}};
    } else if (gpu_named &&
               std::any_of(input.gpus.begin(), input.gpus.end(), [](const checks::GpuView& gpu) {
                 return gpu.cc && gpu.cc->major >= 10;
               })) {
      // The first driver that knows Blackwell speaks CUDA 12.8: what all of them run.
      input.driver_cuda = Version{{12, 8}};
    } else {
      input.driver_cuda = Version{{12, 0}};
    }
  }

  const knowledge::Knowledge& knowledge_;
  const checks::Input input_;
  facts::PythonEnv env_;
};

}  // namespace

void fill_torch_steps(std::vector<Cause>& causes, const facts::Facts& facts,
                      const knowledge::Knowledge& knowledge,
                      std::span<const std::string_view> clues) {
  const bool family = std::any_of(clues.begin(), clues.end(), [](std::string_view clue) {
    return clue == "comfy_word" || clue == "bundle_word";
  });
  std::optional<TorchStep> step;
  for (Cause& cause : causes) {
    if (!starts_with(cause.finding.variant, "text")) {
      if (cause.id != "torch_not_cuda_build" && cause.id != "arch_gpu_too_new" &&
          cause.id != "arch_gpu_too_old")
        continue;
      if (!step) step.emplace(facts, knowledge);
      step->add_partners_to(cause, family);
      continue;
    }
    const knowledge::FindingTexts* texts = knowledge.find_texts(cause.id);
    const bool asks =
        texts &&
        std::any_of(texts->texts.begin(), texts->texts.end(), [](const knowledge::TextPair& pair) {
          return starts_with(pair.key, "next.text") && asks_for_torch(pair.en);
        });
    if (!asks) continue;
    if (!step) step.emplace(facts, knowledge);
    step->fill(cause);
  }
}

}  // namespace cufit::explain
