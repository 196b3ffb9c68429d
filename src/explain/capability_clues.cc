// SPDX-License-Identifier: Apache-2.0
#include "explain/capability_clues.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "base/format.h"
#include "checks/check.h"
#include "checks/torch_env.h"

namespace cufit::explain {
namespace {

using Cc = ComputeCapability;

// "12.1" or "sm_121" -> {12, 1}
std::optional<Cc> capability(const std::string& text) {
  if (contains(text, ".")) return parse_compute_capability(text);
  if (text.size() < 2 || text.size() > 3) return std::nullopt;
  return parse_compute_capability(text.substr(0, text.size() - 1) + "." + text.back());
}

// Tegra's minors share no code with the others of their major.
bool stands_alone(const Cc& cc) { return cc == Cc{8, 7} || cc == Cc{10, 1} || cc == Cc{11, 0}; }

bool runs(const Cc& code, const Cc& gpu) {
  if (stands_alone(code) || stands_alone(gpu)) return code == gpu;
  return code.major == gpu.major && code.minor <= gpu.minor;
}

struct Warning {
  std::optional<Cc> gpu;
  uint64_t line = 0;
  std::vector<Cc> list;
  bool ranges = false;  // says itself what each entry serves
};

void read_list(const std::string& line, Warning& out) {
  static const RE2 sm(R"(\bsm_(\d{2,3}))"), range(R"(\((\d+\.\d)\) - \((\d+\.\d)\))"),
      entry(R"(^\W*(\d+\.\d) which supports hardware CC)");
  std::string one, other;
  if (const size_t at = line.find("supports CUDA capabilities"); at != line.npos) {
    re2::StringPiece rest(line.data() + at, line.size() - at);
    while (RE2::FindAndConsume(&rest, sm, &one)) {
      if (const auto cc = capability(one)) out.list.push_back(*cc);
    }
  } else if (RE2::PartialMatch(line, range, &one, &other)) {
    for (const std::string& end : {one, other})
      if (const auto cc = capability(end)) out.list.push_back(*cc);
  } else if (RE2::PartialMatch(line, entry, &one)) {
    if (const auto cc = capability(one)) out.list.push_back(*cc);
    out.ranges = true;
  }
}

Warning read_warning(std::span<const formats::TextLine> lines) {
  static const RE2 gpu(
      R"((?:CUDA capability sm_|cuda capability |compute capability \(CC\) )(\d+\.\d|\d{2,3}))");
  Warning out;
  for (const formats::TextLine& line : lines) {
    const bool may = contains(line.text, "apabilit") || contains(line.text, ") - (") ||
                     contains(line.text, "hardware CC");
    if (!may) continue;
    std::string found;
    if (!out.gpu && RE2::PartialMatch(line.text, gpu, &found)) {
      out.gpu = capability(found);
      out.line = line.number;
    }
    if (out.list.empty() || contains(line.text, "which supports hardware"))
      read_list(line.text, out);
  }
  return out;
}

// The toolkit that a build log shows: nvcc's banner, a path, a name.
std::vector<Version> toolkits(std::span<const formats::TextLine> lines) {
  static const RE2 version(
      R"((?i)(?:release |cuda-|/cuda/|\\v|CUDA(?:_VERSION| toolkit| version)?[ :=]{1,3}|nvcc )(\d{1,2}\.\d|1[0-9]\b))");
  std::vector<Version> out;
  for (const formats::TextLine& line : lines) {
    re2::StringPiece rest(line.text);
    std::string found;
    while (RE2::FindAndConsume(&rest, version, &found)) {
      if (const auto parsed = parse_version(found)) out.push_back(*parsed);
    }
  }
  return out;
}

std::optional<ComputedClue> dropped_arch(std::span<const formats::TextLine> lines,
                                         const knowledge::Knowledge& knowledge) {
  static const RE2 refused(
      R"((?:Unsupported gpu architecture|Value) .?(?:compute|sm)_(\d{2,3})\w?.?(?:$|[^\w]| is not defined))");
  for (const formats::TextLine& line : lines) {
    std::string arch;
    if (!contains(line.text, "gpu architecture") && !contains(line.text, "is not defined"))
      continue;
    if (!RE2::PartialMatch(line.text, refused, &arch)) continue;
    const auto row = std::find_if(knowledge.nvcc_archs.begin(), knowledge.nvcc_archs.end(),
                                  [&](const auto& one) { return one.arch == arch; });
    if (row == knowledge.nvcc_archs.end() || row->last.empty()) continue;
    const auto last = parse_version(row->last);
    const auto first = parse_version(row->first);
    const std::vector<Version> have = toolkits(lines);
    const bool before = std::any_of(have.begin(), have.end(),
                                    [&](const Version& one) { return first && one < *first; });
    const bool after =
        std::any_of(have.begin(), have.end(), [&](const Version& one) { return one > *last; });
    if (after || (have.empty() && !before))
      return ComputedClue{"nvcc_arch_dropped", line.number,
                          format("CUDA {} was the last that makes code for {}.{}", row->last,
                                 arch.substr(0, arch.size() - 1), arch.substr(arch.size() - 1))};
  }
  return std::nullopt;
}

const knowledge::ArchSet* archs_of(const facts::PythonEnv& env,
                                   const knowledge::Knowledge& knowledge) {
  if (!env.torch.version) return nullptr;
  std::string release = env.torch.version->substr(0, env.torch.version->find('+'));
  if (std::count(release.begin(), release.end(), '.') == 1) release += ".0";
  std::string tag = env.torch.variant;
  if (const size_t plus = env.torch.version->find('+'); plus != std::string::npos)
    tag = env.torch.version->substr(plus + 1);
  for (const knowledge::WheelVariant* wheel : knowledge.wheels_of(release)) {
    if (wheel->tag != tag) continue;
    for (const knowledge::ArchSet& set : knowledge.arch_sets)
      if (set.id == wheel->arch_set) return &set;
  }
  return nullptr;
}

std::optional<ComputedClue> torch_has_code(const facts::Facts& facts,
                                           const knowledge::Knowledge& knowledge) {
  const facts::PythonEnv* env = checks::main_env(facts);
  const knowledge::ArchSet* archs = env ? archs_of(*env, knowledge) : nullptr;
  if (!archs) return std::nullopt;
  const checks::Input input = checks::make_input(facts, knowledge);
  size_t known = 0;
  std::string name;
  for (const checks::GpuView& gpu : input.gpus) {
    if (!gpu.cc) continue;
    ++known;
    name = gpu.name;
    bool has = false;
    for (std::string_view one : split(archs->sm, ' ')) {
      const auto code = parse_compute_capability(one);
      has = has || (code && runs(*code, *gpu.cc));
    }
    if (!has) return std::nullopt;
  }
  if (known == 0) return std::nullopt;
  const std::string& detail = env->torch.version.source.detail;
  uint64_t line = 0;
  if (const size_t colon = detail.rfind(':'); colon != std::string::npos)
    line = std::strtoull(detail.c_str() + colon + 1, nullptr, 10);
  return ComputedClue{"torch_has_code", line,
                      format("torch {} has code for {}", *env->torch.version, name)};
}

}  // namespace

std::optional<ComputedClue> compare_capability(std::span<const formats::TextLine> lines) {
  const Warning warning = read_warning(lines);
  if (!warning.gpu || warning.list.empty()) return std::nullopt;
  const Cc gpu = *warning.gpu;
  const auto [least, most] = std::minmax_element(warning.list.begin(), warning.list.end());
  if (gpu < *least)
    return ComputedClue{
        "arch_below_list", warning.line,
        format("the GPU is sm_{}, the wheel's list begins at sm_{}", gpu.sm(), least->sm())};
  if (gpu <= *most) return std::nullopt;
  const bool covered = std::any_of(warning.list.begin(), warning.list.end(),
                                   [&](const Cc& code) { return runs(code, gpu); });
  if (covered)
    return ComputedClue{
        "arch_covered", warning.line,
        format("the GPU is sm_{}, and code for sm_{} runs on it", gpu.sm(), most->sm())};
  return ComputedClue{
      "arch_above_list", warning.line,
      format("the GPU is sm_{}, the wheel's list ends at sm_{}", gpu.sm(), most->sm())};
}

std::vector<ComputedClue> capability_clues(std::span<const formats::TextLine> lines,
                                           const facts::Facts& facts,
                                           const knowledge::Knowledge& knowledge) {
  std::vector<ComputedClue> out;
  if (auto clue = torch_has_code(facts, knowledge)) out.push_back(std::move(*clue));
  if (auto clue = dropped_arch(lines, knowledge)) out.push_back(std::move(*clue));
  return out;
}

}  // namespace cufit::explain
