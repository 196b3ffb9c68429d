// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_spill.h"

#include <algorithm>

#include "base/format.h"
#include "host/quota/guard_file.h"

namespace cufit::commands {
namespace {

void set(std::vector<std::string>& variables, const std::string& name, const std::string& value) {
  const std::string start = name + "=";
  variables.erase(std::remove_if(variables.begin(), variables.end(),
                                 [&](const std::string& one) { return starts_with(one, start); }),
                  variables.end());
  variables.push_back(start + value);
}

std::string get(const std::vector<std::string>& variables, const std::string& name) {
  for (const std::string& one : variables)
    if (starts_with(one, name + "=")) return one.substr(name.size() + 1);
  return {};
}

// What the script says, with {names} for what only it knows.
void set_sentences(const Context& context, std::vector<std::string>& variables) {
  for (const auto& [name, id] :
       {std::pair("ON", "on"), std::pair("ON_FUSED", "on_fused"), std::pair("END", "end"),
        std::pair("OLD", "old"), std::pair("DRIVER", "driver"), std::pair("FULL", "full"),
        std::pair("OFF", "off"), std::pair("EMERGENCY", "emergency")})
    set(variables, format("CUFIT_SPILL_SAY_{}", name), context.message(format("run.spill.{}", id)));
}

bool asks_for_expandable(const std::vector<std::string>& variables) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (get(variables, name).find("expandable_segments:True") != std::string::npos) return true;
  return false;
}

// The slowest link: a guess before the start, for nobody knows yet what will be touched.
uint64_t slowest_link(const facts::Facts& facts) {
  uint64_t least = 0;
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    const uint64_t rate =
        resolve::link_rate(gpu.pcie_gen_max.value_or(0), gpu.pcie_width.value_or(0));
    if (rate != 0 && (least == 0 || rate < least)) least = rate;
  }
  return least;
}

void say_cost(const Context& context, const resolve::SpillRequest& request,
              const facts::Facts& facts) {
  const uint64_t rate = slowest_link(facts);
  constexpr double k_gib = 1024.0 * 1024 * 1024;
  std::map<std::string, std::string> args = {
      {"size", format_bytes(request.emergency_bytes)},
      {"cost", rate ? format("{:.0f}", k_gib / static_cast<double>(rate) * 1e3) : std::string()}};
  context.output.print_message(
      context.message(rate ? "run.spill.may" : "run.spill.may_unknown", args));
}

}  // namespace

Result<void> set_spill(const Context& context, const resolve::SpillRequest& request,
                       const SpillPlace& place, const facts::Facts& facts, bool quiet,
                       std::vector<std::string>& variables) {
  CUFIT_TRY(folder, host::write_spill_script(context.files, place.quota_folder));
  set(variables, "CUFIT_SPILL", std::to_string(request.emergency_bytes));
  set(variables, "CUFIT_SPILL_LIBRARY", place.guard);
  set(variables, "CUFIT_SPILL_OPTIMIZER",
      request.always      ? "always"
      : request.optimizer ? "fit"
                          : "");
  set(variables, "CUFIT_SPILL_QUIET", quiet ? "1" : "");
  set_sentences(context, variables);
  const std::string path = get(variables, "PYTHONPATH");
  set(variables, "PYTHONPATH", path.empty() ? folder : folder + ":" + path);
  if (request.emergency_bytes == 0) return {};
  if (!quiet) say_cost(context, request, facts);
  // A growing segment would mix pages of the host and of the GPU in one range.
  if (asks_for_expandable(variables))
    context.output.print_message(context.message("run.spill.expandable"));
  return {};
}

}  // namespace cufit::commands
