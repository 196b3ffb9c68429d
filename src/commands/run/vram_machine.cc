// SPDX-License-Identifier: Apache-2.0
#include "commands/run/vram_machine.h"

#include "commands/run/vram_variables.h"
#include "host/files/paths.h"
#include "host/probe.h"
#include "host/quota/mps_server.h"
#include "host/quota/slurm_node.h"
#include "resolve/quota/domain_usage.h"
#include "resolve/quota/quota_machine.h"
#include "resolve/quota/spill_size.h"

namespace cufit::commands {
namespace {

using Program = resolve::QuotaMachine::Program;

facts::Facts ask_driver(const Context& context) {
  facts::Facts out;
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  host::read_system(context.machine, out);
  host::read_pci(context.machine, out);
  host::read_kernel_driver(context.machine, out);
  host::read_driver_answers(context.machine, probe, out);
  return out;
}

Program program_of(host::ProgramKind::Links links) {
  using Links = host::ProgramKind::Links;
  switch (links) {
    case Links::dynamic:
      return Program::dynamic;
    case Links::static_linked:
      return Program::static_linked;
    case Links::musl:
      return Program::musl;
    case Links::secure:
      return Program::secure;
    case Links::not_read:
      break;
  }
  return Program::not_read;
}

}  // namespace

VramMachine read_vram_machine(const Context& context, const VramProgram& program,
                              const std::vector<std::string>& variables) {
  VramMachine out;
  const facts::Facts facts = ask_driver(context);
  out.program =
      host::read_program_kind(context.files, host::absolute_path(program.path), variables);
  out.cards = resolve::quota_cards(facts, context.knowledge);
  for (const resolve::QuotaCard& card : out.cards)
    out.numbers.push_back(resolve::place_on_bus(card.pci, facts));
  out.link_rate = resolve::slowest_link(facts, out.cards);
  out.quota = resolve::quota_machine(facts, context.knowledge);
  out.quota.mps_running = !host::reachable_mps(variables).empty();
  out.quota.program = program_of(out.program.links);
  out.quota.guard_off = variable_value(variables, "CUFIT_GUARD") == "0";
  out.quota.torch = program.torch ? program.torch : out.program.torch;
  out.quota.fraction_set = has_torch_fraction(variables);
  const auto since = parse_version(context.knowledge.quota_since("nvml_own"));
  out.nvml_own_process = since && out.quota.driver && *out.quota.driver >= *since;
  return out;
}

resolve::SlurmShards read_shards(const Context& context) {
  resolve::SlurmShards out;
  out.on_node = context.files.variable("SLURM_SHARDS_ON_NODE").value_or("");
  if (out.on_node.empty()) return out;
  const formats::SlurmNode node = host::read_slurm_node(context.files);
  out.node_gpus = node.gpus;
  out.node_shards = node.shards;
  return out;
}

}  // namespace cufit::commands
