// SPDX-License-Identifier: Apache-2.0
// Every dimension is judged, also after one has failed: a rejection names all that stands against a
// wheel, and resolve() finds the smallest conflict among them.
#include "resolve/wheel/wheel_compatibility.h"

#include <algorithm>

#include "base/format.h"
#include "checks/code_match.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

// Collects reasons and the worst state.
class Findings {
 public:
  void add(Fit fit, std::string id, std::map<std::string, std::string> args) {
    if (fit >= verdict_.fit) {
      verdict_.reasons.insert(verdict_.reasons.begin() + (fit > verdict_.fit ? 0 : last_),
                              {std::move(id), std::move(args)});
      last_ = (fit > verdict_.fit ? 0 : last_) + 1;
      verdict_.fit = fit;
    } else {
      verdict_.reasons.push_back({std::move(id), std::move(args)});
    }
  }
  Verdict take() { return std::move(verdict_); }

 private:
  Verdict verdict_{Fit::works, {}};
  std::ptrdiff_t last_ = 0;  // reasons of the worst state, in front
};

std::string text_of(const std::optional<Version>& version) {
  return version ? version->text() : std::string();
}

std::string archs_of(const Wheel& wheel) {
  std::string text = join(capabilities_of(wheel, formats::CodeKind::cubin), " ");
  const std::string ptx = join(capabilities_of(wheel, formats::CodeKind::ptx), " ");
  return ptx.empty() ? text : text + ", PTX " + ptx;
}

void judge_system(const Wheel& wheel, const Target& target, Findings& found) {
  if (wheel.platform != target.platform)
    found.add(Fit::no, "platform", {{"need", wheel.platform}, {"have", target.platform}});
  if (target.libc == "musl") found.add(Fit::no, "musl", {});
  if (wheel.glibc && target.glibc && *target.glibc < *wheel.glibc)
    found.add(Fit::no, "glibc_too_old",
              {{"need", wheel.glibc->text()}, {"have", target.glibc->text()}});
  if (!target.python.empty() && !wheel.pythons.empty() &&
      std::find(wheel.pythons.begin(), wheel.pythons.end(), target.python) == wheel.pythons.end())
    found.add(Fit::no, "python", {{"have", target.python}, {"need", join(wheel.pythons, " ")}});
}

void judge_code(const Wheel& wheel, const Target& target, const TargetGpu& gpu,
                const Knowledge& knowledge, Findings& found) {
  const std::map<std::string, std::string> args = {
      {"gpu", gpu.name}, {"cc", gpu.cc.text()}, {"archs", archs_of(wheel)}};
  if (wheel.code.empty()) return found.add(Fit::unknown, "code_unknown", args);
  // Wheels of servers are not made for these boards, whatever their code says.
  if (knowledge.has_own_code(gpu.cc)) return found.add(Fit::no, "jetson", args);
  const checks::CodeMatch match =
      checks::match_code(wheel.code, gpu.cc, target.driver_cuda, knowledge);
  switch (match.match) {
    case checks::Match::cubin:
      return;
    case checks::Match::ptx:
    case checks::Match::ptx_unknown:
      return found.add(Fit::works_ptx, "gpu_ptx",
                       {{"gpu", gpu.name}, {"cc", gpu.cc.text()}, {"ptx", match.arch}});
    case checks::Match::ptx_too_new:
      return found.add(Fit::no, "ptx_too_new",
                       {{"gpu", gpu.name},
                        {"cc", gpu.cc.text()},
                        {"need", match.needs_cuda},
                        {"have", text_of(target.driver_cuda)}});
    case checks::Match::none:
    case checks::Match::no_code:
      return found.add(Fit::no, "gpu_code", args);
  }
}

// Whether the driver drives this GPU at all, whatever the wheel.
void judge_window(const Target& target, const TargetGpu& gpu, const Knowledge& knowledge,
                  Findings& found) {
  const knowledge::DriverWindow* window = knowledge.find_window(gpu.cc);
  if (window == nullptr || !target.driver || target.wsl || target.jetson) return;
  const uint32_t branch = target.driver->part(0);
  if (branch < 100) return;  // another series of numbers
  const std::string have = driver_text(*target.driver);
  if (window->first_branch > 0 && branch < window->first_branch)
    found.add(Fit::no, "driver_for_gpu_old",
              {{"gpu", gpu.name}, {"have", have}, {"need", std::to_string(window->first_branch)}});
  if (window->last_branch > 0 && branch > window->last_branch)
    found.add(Fit::no, "driver_for_gpu_new",
              {{"gpu", gpu.name}, {"have", have}, {"need", std::to_string(window->last_branch)}});
}

bool compat_helps(const Version& cuda, const Target& target, const Knowledge& knowledge) {
  std::vector<checks::CompatCandidate> gpus;
  for (const TargetGpu& gpu : target.gpus) gpus.push_back({gpu.compat, gpu.cc});
  return target.driver && checks::forward_compat_helps(gpus, *target.driver, cuda, knowledge);
}

enum class Level { old, minor, full };

Level driver_level(const Wheel& wheel, const Target& target) {
  const Version& cuda = *wheel.cuda;
  const bool own_series =
      target.driver && target.driver->part(0) >= 100 && !target.wsl && !target.jetson;
  // The user-mode driver's own answer decides where there is one: it counts cuda-compat in.
  if (target.driver_cuda) {
    const Version& have = *target.driver_cuda;
    if (have.part(0) < cuda.part(0)) return Level::old;
    if (cuda.part(0) < 11 && have < Version{{cuda.part(0), cuda.part(1)}}) return Level::old;
    if (own_series && wheel.driver_min && have.part(0) == cuda.part(0) &&
        !checks::at_least(*target.driver, *wheel.driver_min))
      return Level::old;
    return have >= Version{{cuda.part(0), cuda.part(1)}} ? Level::full : Level::minor;
  }
  if (wheel.driver_min && !checks::at_least(*target.driver, *wheel.driver_min)) return Level::old;
  const bool full = !wheel.driver_full || checks::at_least(*target.driver, *wheel.driver_full);
  return full ? Level::full : Level::minor;
}

void judge_driver(const Wheel& wheel, const Target& target, const Knowledge& knowledge,
                  Findings& found) {
  const std::string need = wheel.driver_min ? driver_text(*wheel.driver_min) : "";
  const std::string full = wheel.driver_full ? driver_text(*wheel.driver_full) : "";
  const std::string cuda = text_of(wheel.cuda);
  const bool absent = target.driver_state == Target::Driver::absent;
  if (absent || (!target.driver && !target.driver_cuda)) {
    // Old GPUs have a last driver, new ones a first.
    uint32_t first = wheel.driver_min ? wheel.driver_min->part(0) : 0, last = 0;
    std::string least = need;
    for (const TargetGpu& gpu : target.gpus) {
      const knowledge::DriverWindow* window = knowledge.find_window(gpu.cc);
      if (window == nullptr) continue;
      if (window->first_branch > first) {
        first = window->first_branch;
        least = std::to_string(first);
      }
      if (window->last_branch > 0 && (last == 0 || window->last_branch < last))
        last = window->last_branch;
    }
    std::string id = absent ? "driver_absent" : "driver_not_told";
    if (last > 0) id += "_until";
    return found.add(Fit::unknown, id,
                     {{"need", least}, {"full", full}, {"last", std::to_string(last)}});
  }
  if (!wheel.cuda) return found.add(Fit::unknown, "code_unknown", {{"tag", wheel.tag}});
  std::string have = target.driver ? driver_text(*target.driver) : "";
  if (have.empty()) have = "CUDA " + target.driver_cuda->text();
  switch (driver_level(wheel, target)) {
    case Level::full:
      return;
    case Level::minor:
      // Of the minor: its updates need no newer driver for PTX.
      return found.add(Fit::works_minor, "driver_minor",
                       {{"have", have},
                        {"full", full},
                        {"cuda", format("{}.{}", wheel.cuda->part(0), wheel.cuda->part(1))}});
    case Level::old:
      break;
  }
  if (compat_helps(*wheel.cuda, target, knowledge)) {
    const std::string package = "cuda-compat-" + std::to_string(wheel.cuda->part(0)) + "-" +
                                std::to_string(wheel.cuda->part(1));
    return found.add(Fit::needs_compat, "driver_compat",
                     {{"have", have}, {"need", need}, {"package", package}, {"cuda", cuda}});
  }
  found.add(Fit::no, "driver_too_old", {{"have", have}, {"need", need}, {"cuda", cuda}});
}

}  // namespace

const char* to_string(Fit fit) {
  switch (fit) {
    case Fit::works:
      return "works";
    case Fit::works_minor:
      return "works_minor";
    case Fit::works_ptx:
      return "works_ptx";
    case Fit::needs_compat:
      return "needs_compat";
    case Fit::unknown:
      return "unknown";
    case Fit::no:
      return "no";
  }
  return "no";
}

bool usable(Fit fit) {
  return fit == Fit::works || fit == Fit::works_minor || fit == Fit::works_ptx;
}

Verdict judge(const Wheel& wheel, const Target& target, const Knowledge& knowledge) {
  Findings found;
  judge_system(wheel, target, found);
  const bool any_gpu = !target.gpus.empty() || !target.unknown_gpus.empty();
  if (wheel.is_cpu()) {
    if (any_gpu) found.add(Fit::no, "idle_gpu", {{"gpu", gpus_text(target)}});
    return found.take();
  }
  if (!any_gpu) {
    found.add(Fit::no, "no_gpu", {});
    return found.take();
  }
  for (const std::string& name : target.unknown_gpus)
    found.add(Fit::unknown, "gpu_unknown", {{"gpu", name}});
  for (const TargetGpu& gpu : target.gpus) {
    judge_code(wheel, target, gpu, knowledge, found);
    judge_window(target, gpu, knowledge, found);
  }
  judge_driver(wheel, target, knowledge, found);
  return found.take();
}

}  // namespace cufit::resolve
