// SPDX-License-Identifier: Apache-2.0
// Kubernetes and Slurm. A node or a claimed GPU must be one that some class of the lock runs on;
// which class, `cufit run` decides there.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "report/export/export_values.h"

namespace cufit::report {
namespace {

constexpr const char* k_image = "IMAGE@sha256:FILL_IN_THE_DIGEST";

bool holds(const std::vector<ComputeCapability>& list, ComputeCapability cc) {
  return std::find(list.begin(), list.end(), cc) != list.end();
}

std::string quoted_list(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (const uint32_t number : numbers) out += format("{}\"{}\"", out.empty() ? "" : ", ", number);
  return out;
}

std::string capabilities_text(const std::vector<ComputeCapability>& list) {
  std::string out;
  for (const ComputeCapability& cc : list) out += (out.empty() ? "" : " ") + cc.text();
  return out;
}

std::vector<uint32_t> majors_of(const std::vector<ComputeCapability>& list) {
  std::vector<uint32_t> out;
  for (const ComputeCapability& cc : list)
    if (out.empty() || out.back() != cc.major) out.push_back(cc.major);
  return out;
}

std::vector<ComputeCapability> of_major(const std::vector<ComputeCapability>& list,
                                        uint32_t major) {
  std::vector<ComputeCapability> out;
  for (const ComputeCapability& cc : list)
    if (cc.major == major) out.push_back(cc);
  return out;
}

// The label has the driver's first number only: 525 stands for 525.60.13.
std::string driver_above(const std::optional<Version>& floor) {
  return floor && floor->part(0) > 0 ? std::to_string(floor->part(0) - 1) : std::string();
}

Scope node_term(const ExportClass& one, const std::vector<ComputeCapability>& served,
                const std::vector<uint32_t>& majors, const std::string& driver, bool with_minors) {
  Scope term;
  std::vector<uint32_t> minors;
  std::vector<ComputeCapability> what;
  for (const uint32_t major : majors)
    for (const ComputeCapability& cc : of_major(served, major)) {
      what.push_back(cc);
      minors.push_back(cc.minor);
    }
  term.values = {{"name", one.lock.name},
                 {"what", capabilities_text(what)},
                 {"driver", driver},
                 {"majors", quoted_list(majors)},
                 {"minors", with_minors ? quoted_list(minors) : std::string()}};
  return term;
}

// Majors of which the class serves every known capability share a term; another major names the
// minors that are served.
void add_terms(const ExportClass& one, const std::vector<ComputeCapability>& served,
               const std::vector<ComputeCapability>& known, const std::string& driver,
               std::vector<Scope>& terms) {
  std::vector<uint32_t> whole;
  for (const uint32_t major : majors_of(served))
    if (of_major(served, major) == of_major(known, major)) whole.push_back(major);
  if (!whole.empty()) terms.push_back(node_term(one, served, whole, driver, false));
  for (const uint32_t major : majors_of(served))
    if (std::find(whole.begin(), whole.end(), major) == whole.end())
      terms.push_back(node_term(one, served, {major}, driver, true));
}

std::vector<Scope> node_terms(const ExportView& view) {
  std::vector<Scope> terms;
  for (const ExportClass& one : view.classes) {
    const resolve::Wheel& wheel = one.lock.wheel;
    if (!wheel.cuda) continue;
    const std::vector<ComputeCapability> known = known_capabilities(wheel.platform, view.knowledge);
    const Coverage coverage = coverage_of(wheel, view.knowledge);
    add_terms(one, coverage.by_code, known, driver_above(driver_floor(wheel, view.knowledge)),
              terms);
    // PTX needs a driver of the toolkit itself; where none is told, nothing is promised.
    if (wheel.driver_full)
      add_terms(one, coverage.by_ptx, known, driver_above(wheel.driver_full), terms);
  }
  return terms;
}

// Ranges [from, to) of capabilities. Upwards within a major without a gap among the known ones;
// else each capability alone.
std::vector<std::pair<ComputeCapability, ComputeCapability>> ranges_of(
    const std::vector<ComputeCapability>& served, const std::vector<ComputeCapability>& known) {
  std::vector<std::pair<ComputeCapability, ComputeCapability>> out;
  for (const uint32_t major : majors_of(served)) {
    const std::vector<ComputeCapability> mine = of_major(served, major);
    bool upwards = true;
    for (const ComputeCapability& cc : of_major(known, major))
      upwards = upwards && (cc < mine.front() || holds(mine, cc));
    if (upwards && !out.empty() && out.back().second == mine.front())
      out.back().second = {major + 1, 0};
    else if (upwards)
      out.emplace_back(mine.front(), ComputeCapability{major + 1, 0});
    else
      for (const ComputeCapability& cc : mine)
        out.emplace_back(cc, ComputeCapability{cc.major, cc.minor + 1});
  }
  return out;
}

// "(driver && (range || range))" as lines of a CEL expression.
void add_cel(const std::vector<std::pair<ComputeCapability, ComputeCapability>>& ranges,
             const Version& driver_cuda, std::vector<std::string>& lines) {
  if (ranges.empty()) return;
  constexpr const char* k_attributes = "device.attributes['gpu.nvidia.com']";
  lines.push_back(format("({}.cudaDriverVersion.compareTo(semver('{}.{}.0')) >= 0 && (",
                         k_attributes, driver_cuda.part(0), driver_cuda.part(1)));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto& range = ranges[i];
    lines.push_back(
        format("  ({0}.cudaComputeCapability.compareTo(semver('{1}.{2}.0')) >= 0 && "
               "{0}.cudaComputeCapability.compareTo(semver('{3}.{4}.0')) < 0){5}",
               k_attributes, range.first.major, range.first.minor, range.second.major,
               range.second.minor, i + 1 < ranges.size() ? " ||" : ""));
  }
  lines.push_back(")) ||");
}

std::vector<Scope> cel_lines(const ExportView& view) {
  std::vector<std::string> lines;
  for (const ExportClass& one : view.classes) {
    const resolve::Wheel& wheel = one.lock.wheel;
    if (!wheel.cuda) continue;
    const std::vector<ComputeCapability> known = known_capabilities(wheel.platform, view.knowledge);
    const Coverage coverage = coverage_of(wheel, view.knowledge);
    add_cel(ranges_of(coverage.by_code, known), Version{{wheel.cuda->part(0), 0}}, lines);
    add_cel(ranges_of(coverage.by_ptx, known), *wheel.cuda, lines);
  }
  if (!lines.empty()) lines.back().resize(lines.back().size() - 3);  // " ||"
  std::vector<Scope> out;
  for (std::string& line : lines) {
    out.emplace_back();
    out.back().values["text"] = std::move(line);
  }
  return out;
}

// A lock without CUDA makes a job that asks for no GPU; a number of GPUs is then a mistake.
Result<void> gpus_fit(const ExportView& view) {
  if (has_gpu(view) || view.gpus == 0) return {};
  return tl::unexpected(
      fail(Code::unsupported, format("{}: no class with CUDA is chosen, and `--gpus {}` asks for "
                                     "GPUs",
                                     view.lock.path, view.gpus)));
}

std::string gpu_count(const ExportView& view) {
  return std::to_string(view.gpus == 0 ? 1 : view.gpus);
}

}  // namespace

ExportFiles export_k8s(const ExportView& view) {
  if (Result<void> same = one_platform(view); !same) return same.error();
  if (Result<void> fits = gpus_fit(view); !fits) return fits.error();
  Scope scope = common_scope(view);
  scope.lists["term"] = node_terms(view);
  scope.lists["cel"] = cel_lines(view);
  scope.values["terms"] = scope.lists["term"].empty() ? "" : "yes";
  scope.values["gpus"] = gpu_count(view);
  scope.values["image"] = k_image;
  scope.values["k8s_arch"] =
      view.classes.front().lock.wheel.platform == "linux_aarch64" ? "arm64" : "amd64";
  std::vector<ExportFile> out{{"job.yaml", filled("job.yaml", scope, view)}};
  if (!has_gpu(view)) return out;
  if (scope.lists["cel"].empty())
    return fail(Code::unsupported, format("{}: the lock does not say which GPUs its classes have "
                                          "code for (`cubins`)",
                                          view.lock.path));
  out.push_back({"job-dra.yaml", filled("job-dra.yaml", scope, view)});
  return out;
}

ExportFiles export_slurm(const ExportView& view) {
  if (Result<void> fits = gpus_fit(view); !fits) return fits.error();
  Scope scope = common_scope(view);
  scope.values["gpus"] = gpu_count(view);
  // The lock beside the job has all classes: one that was chosen is named. Of several, `cufit run`
  // chooses.
  const bool one = view.classes.size() == 1 && !all_classes(view);
  scope.values["env"] = one ? " --env " + view.classes.front().lock.name : std::string();
  scope.values["any_class"] = one ? "" : "yes";
  std::vector<ExportFile> out{{"job.sbatch", filled("job.sbatch", scope, view)}};
  if (has_gpu(view)) out.push_back({"prolog.sh", filled("prolog.sh", scope, view), true});
  return out;
}

}  // namespace cufit::report
