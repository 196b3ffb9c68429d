// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/inspect.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/format.h"
#include "checks/code_match.h"
#include "commands/inspect/inspect_files.h"
#include "host/process/this_process.h"
#include "report/inspect.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr Option k_inspect_options[] = {
    option<&InspectRequest::paths>("PATH").needed(),
    option<&InspectRequest::gpus>("--gpu", "NAME|CC"),
    option<&InspectRequest::driver>("--driver", "VERSION"),
    option<&InspectRequest::json>("--json"),
    option<&InspectRequest::verbose>("-v,--verbose"),
};

struct Target {
  std::string gpu;
  ComputeCapability cc;
};

// What the names of all that was meant begin with: "GeForce RTX 3060" of the one with 8 and with 12 GB.
std::string common_name(const std::vector<const knowledge::Gpu*>& meant) {
  std::vector<std::string_view> words = split(meant.front()->name, ' ');
  for (const knowledge::Gpu* gpu : meant) {
    const std::vector<std::string_view> others = split(gpu->name, ' ');
    const auto end = std::mismatch(words.begin(), words.end(), others.begin(), others.end()).first;
    words.erase(end, words.end());
  }
  return join(std::vector<std::string>(words.begin(), words.end()), " ");
}

Result<Target> find_target(const std::string& name, const knowledge::Knowledge& knowledge) {
  if (const knowledge::Gpu* gpu = knowledge.find_gpu(name)) {
    if (std::optional<ComputeCapability> cc = parse_compute_capability(gpu->cc))
      return Target{common_name(knowledge.gpus_meant(name)), *cc};
  }
  if (std::optional<ComputeCapability> cc = parse_compute_capability(name))
    return Target{cc->text(), *cc};
  if (const std::string_view maker = knowledge::Knowledge::other_maker(name); !maker.empty())
    return fail(Code::usage,
                format("--gpu \"{}\": a GPU of {}; cufit judges NVIDIA's alone", name, maker));
  std::vector<std::string> close = knowledge.nearest_gpus(name, 3);
  std::string hint = close.empty() ? "" : format("; did you mean `{}`?", join(close, "`, `"));
  return fail(Code::usage, format("`--gpu {}`: no such GPU or compute capability{}", name, hint));
}

Result<std::vector<Target>> find_targets(const std::vector<std::string>& gpus,
                                         const knowledge::Knowledge& knowledge) {
  std::vector<Target> targets;
  for (const std::string& name : gpus) {
    CUFIT_TRY(target, find_target(name, knowledge));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<std::optional<Version>> find_driver(const std::string& text) {
  if (text.empty()) return std::optional<Version>();
  std::optional<Version> driver = parse_version(text);
  if (!driver)
    return fail(Code::usage,
                format("`--driver {}`: not a driver version such as 535.183.01", text));
  return driver;
}

// One line on a terminal that is overwritten; nothing when stderr is a file.
void inspect_progress(const std::string& what, uint64_t done, uint64_t total) {
  static uint64_t shown = 0;
  const uint64_t percent = total == 0 ? 100 : done * 100 / total;
  if (percent == shown && done < total) return;
  shown = percent;
  std::fprintf(stderr, "\r%-40.40s %3u %%", report::printable(what).c_str(),
               static_cast<unsigned>(percent));
  if (done >= total) std::fprintf(stderr, "\r%48s\r", "");
}

}  // namespace

std::span<const Option> inspect_options() { return k_inspect_options; }

int run_inspect(const Context& context, const InspectRequest& request) {
  const knowledge::Knowledge& knowledge = context.knowledge;
  const Output& output = context.output;
  if (request.paths.empty()) {
    output.print_error("`cufit inspect` needs a file, a wheel or a directory");
    return k_usage;
  }
  Result<std::vector<Target>> targets = find_targets(request.gpus, knowledge);
  Result<std::optional<Version>> driver = find_driver(request.driver.value_or(""));
  if (!targets || !driver) {
    output.print_error(!targets ? targets.error().text() : driver.error().text());
    return k_usage;
  }
  const std::optional<Version> driver_cuda =
      *driver ? knowledge.driver_cuda(**driver) : std::nullopt;
  InspectProgress progress;
  if (host::is_terminal(host::Stream::err)) progress = inspect_progress;
  report::InspectResult result;
  for (const std::string& path : request.paths) {
    if (!starts_with(path, "https://") && !starts_with(path, "http://"))
      inspect_path(context.files, path, progress, result);
    else if (const int signal = inspect_url(path, progress, result); signal != 0)
      return interrupted_exit(signal);
  }

  bool broken = false;
  for (report::InspectedFile& file : result.files) {
    // Of a file that was fetched in part the rest is missing on purpose.
    broken = broken || (!file.elf.damage.empty() && file.seen_bytes == 0);
    for (const Target& target : *targets) {
      report::InspectVerdict verdict{target.gpu, target.cc.text(), {}, {}, "", {}};
      verdict.match = checks::match_code(file.elf.device_code, target.cc, driver_cuda, knowledge);
      verdict.driver = checks::file_driver(file.elf.needed, target.cc, *driver, knowledge);
      report::judge_file(file.elf, verdict, file.seen_bytes == 0);
      // Which libraries it needs stands behind what was fetched, so a driver cannot be judged.
      if (file.seen_bytes != 0 && *driver && verdict.verdict == checks::LinkState::ok) {
        verdict.verdict = checks::LinkState::unknown;
        verdict.because = "partial_needs";
      }
      broken = broken || verdict.verdict == checks::LinkState::broken;
      file.verdicts.push_back(std::move(verdict));
    }
  }
  for (report::InspectedVariant& one : result.variants)
    for (const Target& target : *targets)
      one.fits.push_back(
          {target.gpu, target.cc.text(),
           facts::fit_of(one.variant, facts::nvidia_properties(driver_cuda, target.cc))});
  const int exit_code = result.files.empty() && result.variants.empty() && !result.errors.empty()
                            ? k_failed
                        : broken ? k_findings
                                 : k_ok;
  if (request.json) return output.print(report::inspect_json(result, knowledge), exit_code);
  return output.print(report::inspect_text(result, output.style(request.verbose), knowledge),
                      exit_code);
}

}  // namespace cufit::commands
