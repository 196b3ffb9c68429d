// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_vram.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/run/run_spill.h"
#include "formats/system/slurm_conf.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/probe.h"
#include "host/quota/domain_file.h"
#include "host/quota/guard_file.h"
#include "host/quota/program_kind.h"
#include "resolve/quota/backend.h"
#include "resolve/quota/vram_size.h"

namespace cufit::commands {
namespace {

using resolve::BackendVerdict;
using resolve::QuotaBackend;
using resolve::QuotaCard;
using resolve::QuotaMachine;
using resolve::VramRequest;
using Arguments = std::map<std::string, std::string>;

constexpr uint64_t k_no_limit = UINT64_MAX;
constexpr uint64_t k_mib_bytes = 1 << 20;
// Where no card is known: what the smallest context of data/gpu_memory.toml takes.
constexpr uint64_t k_least_context = 147 * k_mib_bytes;
constexpr uint32_t k_domain_slots = 512;
constexpr size_t k_most_share_name = 48;

std::string& variable_of(std::vector<std::string>& variables, const std::string& name) {
  for (std::string& each : variables)
    if (starts_with(each, name + "=")) return each;
  return variables.emplace_back(name + "=");
}

std::string value_of(const std::vector<std::string>& variables, const std::string& name) {
  for (const std::string& each : variables)
    if (starts_with(each, name + "=")) return each.substr(name.size() + 1);
  return {};
}

// The GPUs as the program's process will number them: the driver's own answer, by a child.
facts::Facts ask_driver(const Context& context) {
  facts::Facts out;
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  host::read_system(context.machine, out);
  host::read_kernel_driver(context.machine, out);
  host::read_driver_answers(context.machine, probe, out);
  return out;
}

// In a container /sys may not have the module; NVML says it then.
std::optional<Version> driver_of(const facts::Facts& facts) {
  return parse_version(facts.kernel.version.value_or(facts.nvml.driver_version.value_or("")));
}

std::vector<QuotaCard> cards_of(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  std::vector<QuotaCard> out;
  for (const facts::CudaDevice& device : facts.cuda.devices) {
    QuotaCard card;
    card.name = device.name.value_or("");
    card.uuid = device.uuid.value_or("");
    card.pci = device.pci_address.value_or("");
    card.total_bytes = device.memory_total_bytes.value_or(0);
    card.context_bytes = k_least_context;
    if (const auto* row = knowledge.find_gpu_context(device.compute_capability.value_or("")))
      card.context_bytes = static_cast<uint64_t>(row->mib) * k_mib_bytes;
    out.push_back(std::move(card));
  }
  return out;
}

resolve::SlurmShards slurm_shards(const host::Host& files) {
  resolve::SlurmShards out;
  out.on_node = files.variable("SLURM_SHARDS_ON_NODE").value_or("");
  if (out.on_node.empty()) return out;
  const std::string node = files.variable("SLURMD_NODENAME").value_or("");
  for (const std::string& path :
       {files.variable("SLURM_CONF").value_or(""), std::string("/etc/slurm/slurm.conf"),
        std::string("/run/slurm/conf/slurm.conf")}) {
    if (path.empty()) continue;
    const auto text = files.read_file(path, size_t{16} << 20);
    if (!text) continue;
    const formats::SlurmNode found = formats::parse_slurm_node(*text, node);
    out.node_gpus = found.gpus;
    out.node_shards = found.shards;
    break;
  }
  return out;
}

QuotaMachine::Program program_of(host::ProgramKind::Links links) {
  switch (links) {
    case host::ProgramKind::Links::dynamic:
      return QuotaMachine::Program::dynamic;
    case host::ProgramKind::Links::static_linked:
      return QuotaMachine::Program::static_linked;
    case host::ProgramKind::Links::musl:
      return QuotaMachine::Program::musl;
    case host::ProgramKind::Links::secure:
      return QuotaMachine::Program::secure;
    case host::ProgramKind::Links::not_read:
      break;
  }
  return QuotaMachine::Program::not_read;
}

bool has_fraction(const std::vector<std::string>& variables) {
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
    if (value_of(variables, name).find("per_process_memory_fraction") != std::string::npos)
      return true;
  return false;
}

QuotaMachine machine_of(const facts::Facts& facts, const host::ProgramKind& kind,
                        const std::optional<Version>& torch,
                        const std::vector<std::string>& variables) {
  QuotaMachine out;
  out.driver = driver_of(facts);
  out.architecture = facts.system.architecture.value_or("x86_64");
  out.wsl = facts.system.wsl ? true : false;
  out.jetson = facts.system.jetson ? true : false;
  for (const facts::CudaDevice& device : facts.cuda.devices)
    out.gpus.push_back({device.name.value_or(""),
                        parse_compute_capability(device.compute_capability.value_or("")),
                        starts_with(device.uuid.value_or(""), "MIG-")});
  out.program = program_of(kind.links);
  out.guard_off = value_of(variables, "CUFIT_GUARD") == "0";
  out.torch = torch ? torch : kind.torch;
  out.fraction_set = has_fraction(variables);
  return out;
}

// What the domain's file is to say.
formats::QuotaDomain domain_of(const VramRequest& request, const std::vector<QuotaCard>& cards,
                               const std::vector<uint64_t>& limits, const facts::Facts& facts,
                               const std::string& share, const knowledge::Knowledge& knowledge) {
  formats::QuotaDomain out;
  out.name = share;
  out.slot_count = k_domain_slots;
  const auto since = parse_version(knowledge.quota_since("nvml_own"));
  const std::optional<Version> driver = driver_of(facts);
  out.nvml_own_process = since && driver && *driver >= *since;
  out.default_context_bytes = k_least_context;
  // A GPU that was not seen, or comes later, has the same limit.
  if (request.form == VramRequest::Form::all && request.all.bytes != 0)
    out.default_limit_bytes = request.all.bytes;
  for (size_t i = 0; i < cards.size(); ++i) {
    out.default_context_bytes = std::max(out.default_context_bytes, cards[i].context_bytes);
    if (limits[i] == k_no_limit || (cards[i].uuid.empty() && cards[i].pci.empty())) continue;
    formats::QuotaDevice device;
    device.uuid = cards[i].uuid;
    device.pci = cards[i].pci;
    device.limit_bytes = limits[i];
    device.total_bytes = cards[i].total_bytes;
    device.context_bytes = cards[i].context_bytes;
    out.devices.push_back(std::move(device));
  }
  return out;
}

// What a shared domain that is in use says of the card.
uint64_t limit_in(const formats::QuotaDomain& domain, const QuotaCard& card) {
  for (const formats::QuotaDevice& device : domain.devices)
    if ((!card.uuid.empty() && device.uuid == card.uuid) ||
        (device.uuid.empty() && !card.pci.empty() && device.pci == card.pci))
      return device.limit_bytes;
  return domain.default_limit_bytes;
}

// Ours first, what the user has there after it, an older guard of ours gone.
std::string preload_with(const std::string& guard, const std::string& before) {
  std::string out = guard;
  std::string_view rest = before;
  while (!rest.empty()) {
    const size_t end = rest.find_first_of(" :");
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!entry.empty() && !starts_with(file_name(entry), "libcufit-guard"))
      out += ":" + std::string(entry);
  }
  return out;
}

void set_fraction(std::vector<std::string>& variables, double fraction) {
  // torch reads PYTORCH_ALLOC_CONF first, and the other one only where it is not set.
  const bool newer = !value_of(variables, "PYTORCH_ALLOC_CONF").empty();
  std::string& entry =
      variable_of(variables, newer ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF");
  if (entry.back() != '=') entry += ',';
  // Rounded down, so that the limit holds.
  entry += format("per_process_memory_fraction:0.{:04d}",
                  std::min<uint64_t>(9999, static_cast<uint64_t>(fraction * 10000)));
}

bool is_share_name(const std::string& name) {
  if (name.empty() || name.size() > k_most_share_name || name[0] == '.') return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
         std::string::npos;
}

// One launch, from the words to the variables.
class Launch {
 public:
  Launch(const Context& context, const VramOptions& options, const VramProgram& program,
         std::vector<std::string>& variables)
      : context_(context), options_(options), program_(program), variables_(variables) {}
  Result<VramLimit> prepare();

 private:
  Error problem(const resolve::VramProblem& found) const {
    return fail(Code::usage, context_.message("run.vram." + found.id, found.args));
  }
  Result<void> read_limits();
  Result<void> make_files();
  void judge_joined();
  bool loads_guard() const;
  const BackendVerdict& verdict(QuotaBackend backend) const {
    return verdicts_[static_cast<size_t>(backend)];
  }
  std::string why(QuotaBackend backend) const;
  void say() const;
  void say_foreign() const;
  void note(const std::string& id, const Arguments& arguments) const {
    if (!options_.quiet) context_.output.print_message(context_.message(id, arguments));
  }
  std::string limits_text() const;

  const Context& context_;
  const VramOptions& options_;
  const VramProgram& program_;
  std::vector<std::string>& variables_;
  VramRequest request_;
  resolve::SpillRequest spill_;
  facts::Facts facts_;
  std::vector<QuotaCard> cards_;
  std::vector<uint64_t> limits_;
  host::ProgramKind kind_;
  std::vector<BackendVerdict> verdicts_;
  host::DomainFile domain_;
  std::string folder_, guard_;
  double fraction_ = 0;
  VramLimit out_;
};

Result<void> Launch::read_limits() {
  if (auto found = resolve::parse_vram(options_.vram, request_)) return problem(*found);
  if (options_.spill)
    if (auto found = resolve::parse_spill(*options_.spill, spill_)) return problem(*found);
  if (options_.share && !is_share_name(*options_.share))
    return problem({"share_name", {{"name", *options_.share}}});
  if (const std::string inside = value_of(variables_, "CUFIT_DOMAIN"); !inside.empty())
    return problem({"nested", {{"file", shell_word(inside)}}});
  facts_ = ask_driver(context_);
  cards_ = cards_of(facts_, context_.knowledge);
  if (auto found = resolve::vram_limits(request_, cards_, slurm_shards(context_.files), limits_))
    return problem(*found);
  if (cards_.empty() && request_.all.bytes <= k_least_context)
    return problem({"too_small",
                    {{"gpu", "?"},
                     {"size", format_bytes(request_.all.bytes)},
                     {"context", format_bytes(k_least_context)}}});
  return {};
}

// A program that is static itself, or that drops the variable, may start others that take it.
bool Launch::loads_guard() const {
  if (verdict(QuotaBackend::guard).state == BackendVerdict::State::starts) return true;
  return kind_.links == host::ProgramKind::Links::static_linked &&
         verdict(QuotaBackend::guard).why == "static";
}

void Launch::judge_joined() {
  if (!domain_.joined) return;
  bool differs = false;
  for (size_t i = 0; i < cards_.size(); ++i) {
    const uint64_t there = limit_in(domain_.domain, cards_[i]);
    differs = differs || there != limits_[i];
    limits_[i] = there;
  }
  if (differs) note("run.vram.first_counts", {{"name", *options_.share}});
}

Result<void> Launch::make_files() {
  CUFIT_TRY(folder, host::quota_folder(context_.files));
  folder_ = folder;
  host::remove_unused_domains(folder);
  CUFIT_TRY(guard, host::write_guard_library(context_.files, folder));
  guard_ = guard;
  CUFIT_TRY(domain,
            host::open_domain_file(folder, options_.share.value_or(""),
                                   domain_of(request_, cards_, limits_, facts_,
                                             options_.share.value_or(""), context_.knowledge)));
  domain_ = std::move(domain);
  const Result<std::string> rings = host::make_ring_folder(folder);
  if (!rings) {
    if (!domain_.joined) host::remove_file(domain_.path);
    return rings.error();
  }
  out_.ring_folder = *rings;
  return {};
}

std::string Launch::why(QuotaBackend backend) const {
  const BackendVerdict& found = verdict(backend);
  return context_.message(format("quota.why.{}_{}", to_string(backend), found.why), found.args);
}

std::string Launch::limits_text() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < cards_.size(); ++i)
    parts.push_back(
        limits_[i] == k_no_limit
            ? context_.message("run.vram.unlimited", {{"gpu", std::to_string(i)}})
            : context_.message("run.vram.of_gpu", {{"gpu", std::to_string(i)},
                                                   {"name", cards_[i].name},
                                                   {"size", format_bytes(limits_[i])}}));
  if (parts.empty())
    return context_.message("run.vram.of_any", {{"size", format_bytes(request_.all.bytes)}});
  return join(parts, context_.message("run.vram.comma"));
}

void Launch::say() const {
  std::string held;
  if (loads_guard()) held = context_.message("quota.backend.guard");
  if (fraction_ > 0) {
    const std::string torch = context_.message("quota.backend.torch");
    held = held.empty() ? torch
                        : context_.message("run.vram.both", {{"first", held}, {"second", torch}});
  }
  if (held.empty()) {
    note("run.vram.nothing", {{"limits", limits_text()}, {"guard", why(QuotaBackend::guard)}});
    return;
  }
  note(options_.share ? "run.vram.line_shared" : "run.vram.line",
       {{"limits", limits_text()}, {"held", held}, {"name", options_.share.value_or("")}});
  if (verdict(QuotaBackend::guard).state == BackendVerdict::State::starts) return;
  note(loads_guard() ? "run.vram.children_only" : "run.vram.no_guard",
       {{"program", shell_word(kind_.path)}, {"why", why(QuotaBackend::guard)}});
}

// Another's library between programs and the driver: two of them do not stack reliably.
void Launch::say_foreign() const {
  const auto everywhere = context_.files.read_file("/etc/ld.so.preload", size_t{64} << 10);
  for (const auto& [where, text] :
       {std::pair<std::string, std::string>("LD_PRELOAD", value_of(variables_, "LD_PRELOAD")),
        std::pair<std::string, std::string>("/etc/ld.so.preload", everywhere ? *everywhere : "")})
    for (const knowledge::QuotaShimRow& row : context_.knowledge.quota_shims)
      if (text.find(row.file) != std::string::npos)
        note("run.vram.foreign",
             {{"file", std::string(row.file)}, {"name", std::string(row.name)}, {"where", where}});
}

Result<VramLimit> Launch::prepare() {
  if (Result<void> read = read_limits(); !read) return read.error();
  kind_ = host::read_program_kind(context_.files, host::absolute_path(program_.path), variables_);
  const QuotaMachine machine = machine_of(facts_, kind_, program_.torch, variables_);
  verdicts_ = resolve::quota_backends(machine, context_.knowledge);
  say_foreign();
  if (options_.spill && !loads_guard())
    return problem({"spill_guard", {{"why", why(QuotaBackend::guard)}}});
  if (loads_guard()) {
    if (Result<void> made = make_files(); !made) return made.error();
    judge_joined();
    variable_of(variables_, "LD_PRELOAD") =
        "LD_PRELOAD=" + preload_with(guard_, value_of(variables_, "LD_PRELOAD"));
    variable_of(variables_, "CUFIT_DOMAIN") = "CUFIT_DOMAIN=" + domain_.path;
    variable_of(variables_, "CUFIT_RING") = "CUFIT_RING=" + out_.ring_folder;
  }
  // torch counts what lies in host memory, too: a fraction would refuse it.
  if (!options_.spill && verdict(QuotaBackend::torch).state == BackendVerdict::State::starts)
    fraction_ = resolve::torch_fraction(cards_, limits_, loads_guard());
  if (fraction_ > 0) set_fraction(variables_, fraction_);
  say();
  if (options_.spill) {
    const Result<void> set =
        set_spill(context_, spill_, {folder_, guard_}, facts_, options_.quiet, variables_);
    if (!set) return set.error();
  }
  return out_;
}

}  // namespace

Result<VramLimit> limit_vram(const Context& context, const VramOptions& options,
                             const VramProgram& program, std::vector<std::string>& variables) {
  return Launch(context, options, program, variables).prepare();
}

}  // namespace cufit::commands
