// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/backend.h"

#include "base/shell_word.h"
#include "resolve/wheel/target.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;
using State = BackendVerdict::State;
using Program = QuotaMachine::Program;

BackendVerdict verdict(QuotaBackend backend, State state, std::string why = {},
                       std::string to_enable = {}) {
  BackendVerdict out;
  out.backend = backend;
  out.state = state;
  out.why = std::move(why);
  out.to_enable = std::move(to_enable);
  return out;
}

BackendVerdict no(QuotaBackend backend, std::string why, std::string to_enable = {}) {
  return verdict(backend, State::not_possible, std::move(why), std::move(to_enable));
}

bool has_mig_instance(const QuotaMachine& machine) {
  for (const QuotaGpu& gpu : machine.gpus)
    if (gpu.mig_instance) return true;
  return false;
}

BackendVerdict kernel_verdict(const QuotaMachine& machine, const Knowledge& knowledge) {
  constexpr QuotaBackend k = QuotaBackend::kernel;
  const std::string since(knowledge.quota_since("kernel"));
  BackendVerdict out;
  if (machine.wsl) return no(k, "wsl");
  if (machine.jetson) return no(k, "jetson");
  if (!machine.driver) {
    out = no(k, "no_driver", "driver");
  } else if (*machine.driver < parse_version(since).value_or(Version{{0}})) {
    out = no(k, "driver", "driver");
    out.args["driver"] = driver_text(*machine.driver);
  } else if (has_mig_instance(machine)) {
    out = no(k, "mig", "");
  } else if (!machine.cgroup_v2) {
    out = no(k, "cgroup", "cgroup");
  } else if (machine.accounting.empty()) {
    out = no(k, "accounting", "accounting");
  } else if (!machine.root) {
    out = no(k, "root", "set");
  } else {
    out = verdict(k, State::possible, "not_started", "set");
  }
  out.args["since"] = since;
  return out;
}

BackendVerdict mig_verdict(const QuotaMachine& machine, const Knowledge& knowledge) {
  constexpr QuotaBackend k = QuotaBackend::mig;
  if (machine.gpus.empty()) return no(k, "no_gpu");
  if (has_mig_instance(machine)) return verdict(k, State::possible, "instance", "");
  for (const QuotaGpu& gpu : machine.gpus) {
    const knowledge::Gpu* row = knowledge.find_gpu(gpu.name);
    const knowledge::MigCardRow* card = row ? knowledge.find_mig_card(row->name) : nullptr;
    BackendVerdict out = no(k, card ? "driver" : "card", card ? "driver" : "");
    out.args["gpu"] = gpu.name;
    if (!card) return out;
    const std::optional<Version> first = parse_version(card->driver);
    out.args["since"] = std::string(card->driver);
    out.args["driver"] = machine.driver ? driver_text(*machine.driver) : "?";
    if (first && machine.driver && *machine.driver < *first) return out;
  }
  BackendVerdict out = verdict(k, State::possible, "not_divided", "divide");
  const QuotaGpu& first = machine.gpus[0];
  out.args["gpu"] = first.name;
  out.args["card"] = shell_word(knowledge.find_gpu(first.name)->name);
  return out;
}

BackendVerdict mps_verdict(const QuotaMachine& machine, const Knowledge& knowledge) {
  constexpr QuotaBackend k = QuotaBackend::mps;
  const std::string since(knowledge.quota_since("mps"));
  if (machine.wsl) return no(k, "wsl");
  if (machine.jetson) return no(k, "jetson");
  if (machine.gpus.empty()) return no(k, "no_gpu");
  BackendVerdict out;
  for (const QuotaGpu& gpu : machine.gpus)
    if (gpu.cc && gpu.cc->major < 7) {  // before Volta clients share one address space
      out = no(k, "card");
      out.args["gpu"] = gpu.name;
      return out;
    }
  if (machine.driver && *machine.driver < parse_version(since).value_or(Version{{0}})) {
    out = no(k, "driver", "driver");
    out.args["driver"] = driver_text(*machine.driver);
  } else if (!machine.mps_running && !machine.mps_program) {
    out = no(k, "no_program", "program");
  } else if (!machine.mps_running) {
    out = verdict(k, State::possible, "no_server", "server");
  } else {
    out = verdict(k, State::starts, "each");
  }
  out.args["since"] = since;
  return out;
}

BackendVerdict guard_verdict(const QuotaMachine& machine) {
  constexpr QuotaBackend k = QuotaBackend::guard;
  if (machine.guard_off) return no(k, "off", "on");
  if (machine.architecture != "x86_64" && machine.architecture != "aarch64") {
    BackendVerdict out = no(k, "architecture");
    out.args["architecture"] = machine.architecture.empty() ? "?" : machine.architecture;
    return out;
  }
  switch (machine.program) {
    case Program::static_linked:
      return no(k, "static");
    case Program::musl:
      return no(k, "musl", "glibc");
    case Program::secure:
      return no(k, "secure", "plain");
    case Program::none:
    case Program::dynamic:
    case Program::not_read:
      break;
  }
  return verdict(k, State::starts);
}

BackendVerdict torch_verdict(const QuotaMachine& machine, const Knowledge& knowledge) {
  constexpr QuotaBackend k = QuotaBackend::torch;
  const std::string since(knowledge.quota_since("torch_fraction"));
  BackendVerdict out;
  if (machine.fraction_set) {
    out = no(k, "set");
  } else if (!machine.torch) {
    out = no(k, "not_found", "torch");
  } else if (*machine.torch < parse_version(since).value_or(Version{{0}})) {
    out = no(k, "old", "torch");
    out.args["torch"] = machine.torch->text();
  } else {
    out = verdict(k, State::starts);
  }
  out.args["since"] = since;
  return out;
}

}  // namespace

const char* to_string(QuotaBackend backend) {
  switch (backend) {
    case QuotaBackend::kernel:
      return "kernel";
    case QuotaBackend::mig:
      return "mig";
    case QuotaBackend::mps:
      return "mps";
    case QuotaBackend::guard:
      return "guard";
    case QuotaBackend::torch:
      break;
  }
  return "torch";
}

std::vector<BackendVerdict> quota_backends(const QuotaMachine& machine,
                                           const Knowledge& knowledge) {
  return {kernel_verdict(machine, knowledge), mig_verdict(machine, knowledge),
          mps_verdict(machine, knowledge), guard_verdict(machine),
          torch_verdict(machine, knowledge)};
}

const BackendVerdict* chosen_backend(const std::vector<BackendVerdict>& verdicts) {
  for (const BackendVerdict& one : verdicts)
    if (one.state == State::starts) return &one;
  return nullptr;
}

}  // namespace cufit::resolve
