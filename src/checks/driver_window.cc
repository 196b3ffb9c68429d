// SPDX-License-Identifier: Apache-2.0
// Does this driver branch drive this GPU, and with this flavour of kernel module? Asks the window
// table, but only where the driver does not show the GPU itself: a GPU that NVML or CUDA lists is
// driven, whatever a table says.
#include <cctype>

#include "base/format.h"
#include "checks/evidence.h"
#include "checks/install/after_step.h"
#include "checks/install/driver_step.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// Shown by the running driver (or by one that somebody reported), not merely described with --gpu.
bool is_driven(const Input& input, const GpuView& gpu) {
  bool replaced =
      input.facts.kernel.version.source.kind == SourceKind::assumed;  // --driver: another driver
  if (replaced) return false;
  if (gpu.cuda != nullptr) return true;
  if (gpu.nvml == nullptr) return false;
  return gpu.nvml->name.source.kind != SourceKind::assumed &&
         gpu.nvml->compute_capability.source.kind != SourceKind::assumed;
}

// The kernel's own words about this GPU: "supported through the NVIDIA 580.xx Legacy drivers",
// "requires use of the NVIDIA open kernel modules".
const std::string* window_log_line(const Input& input, std::string_view words) {
  if (!input.facts.kernel.log) return nullptr;
  for (const std::string& line : *input.facts.kernel.log)
    if (contains(line, words)) return &line;
  return nullptr;
}

std::string newest_known_driver(const Input& input) {
  if (input.facts.kernel.version) return *input.facts.kernel.version;
  if (input.facts.nvml.driver_version) return *input.facts.nvml.driver_version;
  return input.driver ? input.driver->text() : "";
}

Finding about(const Input& input, const char* id, const GpuView& gpu,
              const knowledge::DriverWindow& window) {
  Finding made = finding(id, Severity::error, subject_of(gpu));
  made.args = {{"gpu", gpu.name},
               {"arch", std::string(window.arch)},
               {"cc", gpu.cc->text()},
               {"have", newest_known_driver(input)},
               {"first", window.first_branch ? std::to_string(window.first_branch) : ""},
               {"last", window.last_branch ? std::to_string(window.last_branch) : ""},
               {"module", std::string(window.kernel_module)}};
  std::string range = "driver branch " + made.args["first"] + " to " +
                      (made.args["last"].empty() ? "now" : made.args["last"]);
  made.evidence = {seen(input.driver_source, made.args["have"]),
                   seen(gpu.cc_source, gpu.cc->text()),
                   table_says("data/drivers.toml", std::string(window.arch) + ": " + range)};
  return made;
}

void check_flavour(const Input& input, const GpuView& gpu, const knowledge::DriverWindow& window,
                   std::vector<Finding>& found) {
  const Fact<std::string>& flavour = input.facts.kernel.flavour;
  bool picky = window.kernel_module == "open" || window.kernel_module == "proprietary";
  if (!flavour || !picky || *flavour == window.kernel_module || is_wsl(input.facts) ||
      is_jetson(input.facts))
    return;
  Finding made = about(input, "driver_kernel_module_flavour", gpu, window);
  made.variant = std::string(window.kernel_module);
  made.args["have_module"] = *flavour;
  made.evidence.push_back(seen(flavour));
  if (const std::string* line = window_log_line(input, "open kernel modules"))
    made.evidence.push_back({"file", "kernel log", *line});
  found.push_back(std::move(made));
}

// GPUs before Turing are not in the table of PCI ids; then only the kernel's own line tells:
// "supported through the NVIDIA 580.xx Legacy drivers".
std::optional<Finding> from_kernel_log(const Input& input, const GpuView& gpu) {
  const std::string* line = window_log_line(input, ".xx Legacy drivers");
  if (line == nullptr) return std::nullopt;
  size_t end = line->find(".xx Legacy drivers"), start = end;
  while (start > 0 && std::isdigit(static_cast<unsigned char>((*line)[start - 1]))) --start;
  if (start == end) return std::nullopt;
  Finding made = finding("driver_dropped_gpu", Severity::error, subject_of(gpu));
  made.args = {{"gpu", gpu.name},
               {"have", newest_known_driver(input)},
               {"last", line->substr(start, end - start)}};
  made.evidence = {{"file", "kernel log", *line}};
  return made;
}

}  // namespace

std::vector<Finding> check_driver_window(const Input& input) {
  std::vector<Finding> found;
  for (const GpuView& gpu : input.gpus) {
    if (is_driven(input, gpu)) continue;
    if (!gpu.cc) {
      if (auto made = from_kernel_log(input, gpu)) found.push_back(std::move(*made));
      continue;
    }
    const knowledge::DriverWindow* window = input.knowledge.find_window(*gpu.cc);
    if (window == nullptr || !input.driver || is_jetson(input.facts)) continue;
    uint32_t branch = input.driver->part(0);
    if (window->last_branch != 0 && branch > window->last_branch) {
      Finding made = about(input, "driver_dropped_gpu", gpu, *window);
      if (const std::string* line = window_log_line(input, "Legacy drivers"))
        made.evidence.push_back({"file", "kernel log", *line});
      found.push_back(std::move(made));
    } else if (window->first_branch != 0 && branch < window->first_branch) {
      Finding made = about(input, "driver_too_old_for_gpu", gpu, *window);
      made.variant = driver_place(input.facts);
      const DriverNeed need = driver_need(input);
      add_driver_args(need, made.args);
      if (need.branch != 0) made.change = driver_change(need.branch);
      found.push_back(std::move(made));
    } else {
      check_flavour(input, gpu, *window, found);
    }
  }
  return found;
}

}  // namespace cufit::checks
