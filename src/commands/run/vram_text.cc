// SPDX-License-Identifier: Apache-2.0
#include "commands/run/vram_text.h"

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/run/vram_variables.h"

namespace cufit::commands {
namespace {

using resolve::BackendVerdict;
using resolve::QuotaBackend;
using Arguments = std::map<std::string, std::string>;

void say(const Context& context, const std::string& id, const Arguments& arguments) {
  context.output.print_message(context.message("run.vram." + id, arguments));
}

std::string gpu_name(const VramMachine& machine, size_t at) {
  const std::string& name = machine.cards[at].name;
  return name.empty() ? "?" : name;
}

std::string limits_text(const Context& context, const VramMachine& machine,
                        const VramOutcome& outcome) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < machine.cards.size(); ++i) {
    const bool other = machine.numbers[i] && *machine.numbers[i] != i;
    const std::string key = outcome.limits[i] == UINT64_MAX ? "unlimited" : "of_gpu";
    parts.push_back(context.message("run.vram." + key + (other ? "_other" : ""),
                                    {{"gpu", std::to_string(i)},
                                     {"index", std::to_string(machine.numbers[i].value_or(0))},
                                     {"name", gpu_name(machine, i)},
                                     {"size", format_bytes(outcome.limits[i])}}));
  }
  if (parts.empty())
    return context.message("run.vram.of_any", {{"size", format_bytes(outcome.every_bytes)}});
  return join(parts, context.message("run.vram.comma"));
}

// "cufit's guard and torch's own fraction"; empty: nothing.
std::string held_text(const Context& context, const VramOutcome& outcome) {
  std::vector<std::string> parts;
  if (outcome.guard) parts.push_back(context.message("quota.backend.guard"));
  if (outcome.mps == VramOutcome::Mps::theirs)
    parts.push_back(context.message("run.vram.held_mps"));
  if (outcome.mps == VramOutcome::Mps::own)
    parts.push_back(context.message("run.vram.held_own_mps"));
  if (outcome.torch) parts.push_back(context.message("quota.backend.torch"));
  std::string out;
  for (const std::string& part : parts)
    out = out.empty() ? part : context.message("run.vram.both", {{"first", out}, {"second", part}});
  return out;
}

void warn(const Context& context, const VramMachine& machine, const VramOutcome& outcome) {
  if (outcome.joined_other) say(context, "first_counts", {{"name", outcome.share}});
  for (const size_t i : resolve::tight_cards(machine.cards, outcome.limits))
    say(context, "tight",
        {{"gpu", format("{}: {}", i, gpu_name(machine, i))},
         {"size", format_bytes(outcome.limits[i])},
         {"context", format_bytes(machine.cards[i].context_bytes)}});
  if (outcome.mps == VramOutcome::Mps::users_own) say(context, "users_mps", {});
}

}  // namespace

std::string backend_why(const Context& context, const BackendVerdict& verdict) {
  return context.message(format("quota.why.{}_{}", to_string(verdict.backend), verdict.why),
                         verdict.args);
}

void say_limit(const Context& context, const VramMachine& machine, const VramOutcome& outcome,
               bool quiet) {
  const std::string held = held_text(context, outcome);
  const std::string limits = limits_text(context, machine, outcome);
  const BackendVerdict& guard = outcome.of(QuotaBackend::guard);
  warn(context, machine, outcome);
  if (held.empty())
    return say(context, "nothing", {{"limits", limits}, {"guard", backend_why(context, guard)}});
  if (!quiet)
    say(context,
        !outcome.guard          ? "line_plain"
        : outcome.share.empty() ? "line"
                                : "line_shared",
        {{"limits", limits}, {"held", held}, {"name", outcome.share}});
  if (outcome.asked || guard.state == BackendVerdict::State::starts) return;
  say(context, outcome.guard ? "children_only" : "no_guard",
      {{"program", shell_word(machine.program.path)}, {"why", backend_why(context, guard)}});
}

void say_foreign(const Context& context, const std::vector<std::string>& variables) {
  std::string everywhere;
  if (const auto text = context.files.read_file("/etc/ld.so.preload", size_t{64} << 10))
    for (std::string_view line : split(*text, '\n'))
      everywhere += std::string(line.substr(0, line.find('#'))) + " ";
  for (const auto& [where, text] :
       {std::pair<std::string, std::string>("LD_PRELOAD", variable_value(variables, "LD_PRELOAD")),
        std::pair<std::string, std::string>("/etc/ld.so.preload", everywhere)}) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of(" :\t\r"), rest.size());
      const std::string_view entry = file_name(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      for (const knowledge::QuotaShimRow& row : context.knowledge.quota_shims)
        if (starts_with(entry, row.file))
          say(context, "foreign",
              {{"file", shell_word(std::string(entry))},
               {"name", std::string(row.name)},
               {"where", where}});
    }
  }
}

}  // namespace cufit::commands
