// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_spill.h"

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/run/vram_variables.h"

namespace cufit::commands {
namespace {

// What the script says, with {names} for what only it knows.
void set_sentences(const Context& context, std::vector<std::string>& variables) {
  for (const auto& [name, id] :
       {std::pair("ON", "on"), std::pair("ON_FUSED", "on_fused"), std::pair("ON_ALL", "on_all"),
        std::pair("ON_ALL_FUSED", "on_all_fused"), std::pair("END", "end"), std::pair("OLD", "old"),
        std::pair("DRIVER", "driver"), std::pair("FULL", "full"), std::pair("OFF", "off"),
        std::pair("EMERGENCY", "emergency")})
    set_variable(variables, format("CUFIT_SPILL_SAY_{}", name),
                 context.message(format("run.spill.{}", id)));
}

bool asks_for_expandable(const std::vector<std::string>& variables) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (variable_value(variables, name).find("expandable_segments:True") != std::string::npos)
      return true;
  return false;
}

void say_cost(const Context& context, const SpillWish& wish) {
  constexpr double k_gib = 1024.0 * 1024 * 1024;
  const double rate = static_cast<double>(wish.link_rate);
  const std::map<std::string, std::string> args = {
      {"size", format_bytes(wish.request.emergency_bytes)},
      {"cost", wish.link_rate ? format("{:.0f}", k_gib / rate * 1e3) : std::string()}};
  context.output.print_message(
      context.message(wish.link_rate ? "run.spill.may" : "run.spill.may_unknown", args));
}

}  // namespace

void set_spill(const Context& context, const SpillWish& wish, std::vector<std::string>& variables) {
  const resolve::SpillRequest& request = wish.request;
  set_variable(variables, "CUFIT_SPILL", std::to_string(request.emergency_bytes));
  set_variable(variables, "CUFIT_SPILL_LIBRARY", wish.guard);
  set_variable(variables, "CUFIT_SPILL_OPTIMIZER",
               request.always      ? "always"
               : request.optimizer ? "fit"
                                   : "");
  set_variable(variables, "CUFIT_SPILL_QUIET", wish.quiet ? "1" : "");
  set_sentences(context, variables);
  const std::string path = variable_value(variables, "PYTHONPATH");
  set_variable(variables, "PYTHONPATH", path.empty() ? wish.script : wish.script + ":" + path);
  const std::string shut_out = resolve::shutting_out_option(wish.command);
  if (request.optimizer && !shut_out.empty())
    context.output.print_message(
        context.message("run.spill.shut_out", {{"option", shell_argument(shut_out)}}));
  // Beside state that stays, plain segments leave more room unused. (Whole segments are what SIZE spills.)
  if (request.emergency_bytes == 0)
    return add_torch_setting(variables, "expandable_segments", "True");
  if (!wish.quiet) say_cost(context, wish);
  // A growing segment would mix pages of the host and of the GPU in one range.
  if (asks_for_expandable(variables))
    context.output.print_message(context.message("run.spill.expandable"));
}

}  // namespace cufit::commands
