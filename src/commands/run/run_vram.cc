// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_vram.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/run/run_spill.h"
#include "commands/run/vram_domain.h"
#include "commands/run/vram_machine.h"
#include "commands/run/vram_text.h"
#include "commands/run/vram_variables.h"
#include "host/files/atomic_write.h"
#include "host/process/start_program.h"
#include "host/quota/guard_file.h"
#include "host/quota/quota_folder.h"

namespace cufit::commands {
namespace {

using resolve::BackendVerdict;
using resolve::QuotaBackend;
using resolve::VramRequest;

constexpr uint64_t k_no_limit = UINT64_MAX;
constexpr const char* k_mps_control = "nvidia-cuda-mps-control";
constexpr const char* k_mps_limit = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";

// One launch, from the words to the variables. In this order: nothing is made before all that can be refused was.
class Launch {
 public:
  Launch(const Context& context, const VramOptions& options, const VramProgram& program,
         Variables& variables)
      : context_(context), options_(options), program_(program), variables_(variables) {}
  Result<VramLimit> prepare();
  Result<void> check();

 private:
  Error problem(const std::string& id, const std::map<std::string, std::string>& args = {},
                Code code = Code::usage) const {
    return fail(code, context_.message("run.vram." + id, args));
  }
  Result<void> read_request();
  Result<void> read_limits();
  Result<void> choose_holders();
  Result<void> find_mps();
  Result<std::string> make_files();
  Result<void> make_domain();
  Result<void> start_server();
  void set_guard();
  void set_mps();
  void set_torch();
  uint64_t every_bytes() const;
  bool loads_guard() const;
  bool starts(QuotaBackend backend) const {
    return outcome_.of(backend).state == BackendVerdict::State::starts;
  }
  bool is_by(VramHolder holder) const { return options_.by && *options_.by == holder; }

  const Context& context_;
  const VramOptions& options_;
  const VramProgram& program_;
  Variables& variables_;
  VramRequest request_;
  resolve::SpillRequest spill_;
  VramMachine machine_;
  VramOutcome outcome_;
  std::string guard_file_, spill_script_;
  VramLimit out_;
};

Result<void> Launch::read_request() {
  if (auto found = vram_words_problem(context_, options_.vram, options_.share, request_))
    return std::move(*found);
  if (options_.spill)
    if (auto found = resolve::parse_spill(*options_.spill, spill_))
      return problem(found->id, found->args);
  if (options_.share && options_.by && *options_.by != VramHolder::guard)
    return problem("share_by");
  return {};
}

Result<void> Launch::read_limits() {
  std::vector<uint64_t>& limits = outcome_.limits;
  const auto& cards = machine_.cards;
  if (auto found = resolve::vram_limits(request_, cards, read_shards(context_), limits))
    return problem(found->id, found->args);
  const uint64_t least = context_.knowledge.quota_size_bytes("least_context");
  if (cards.empty() && request_.all.bytes < least)
    return problem(
        "too_small",
        {{"gpu", "?"}, {"size", format_bytes(request_.all.bytes)}, {"least", format_bytes(least)}});
  // A card without a name of its own has the limit of all others, or cannot be told from them.
  for (size_t i = 0; i < cards.size(); ++i)
    if (cards[i].uuid.empty() && cards[i].pci.empty() && limits[i] != every_bytes())
      return problem("unnamed", {{"gpu", std::to_string(i)}}, Code::unsupported);
  outcome_.every_bytes = every_bytes();
  outcome_.share = options_.share.value_or("");
  outcome_.asked = options_.by.has_value();
  return {};
}

// Of a GPU that is not seen now: a child may show itself others than cufit sees.
uint64_t Launch::every_bytes() const {
  if (request_.form == VramRequest::Form::each) return k_no_limit;
  if (request_.all.bytes != 0) return request_.all.bytes;
  const auto& limits = outcome_.limits;
  return limits.empty() ? k_no_limit : *std::min_element(limits.begin(), limits.end());
}

// A program that is static itself may start others that take the guard.
bool Launch::loads_guard() const {
  return starts(QuotaBackend::guard) || outcome_.of(QuotaBackend::guard).why == "static";
}

Result<void> Launch::choose_holders() {
  outcome_.verdicts = resolve::quota_backends(machine_.quota, context_.knowledge);
  if (is_by(VramHolder::guard) && !starts(QuotaBackend::guard))
    return problem("by_guard", {{"why", backend_why(context_, outcome_.of(QuotaBackend::guard))}},
                   Code::unsupported);
  if (is_by(VramHolder::torch) && !starts(QuotaBackend::torch))
    return problem("by_torch", {{"why", backend_why(context_, outcome_.of(QuotaBackend::torch))}},
                   Code::unsupported);
  if (options_.spill &&
      (!starts(QuotaBackend::guard) || (options_.by && !is_by(VramHolder::guard))))
    return problem("spill_guard",
                   {{"why", backend_why(context_, outcome_.of(QuotaBackend::guard))}},
                   Code::unsupported);
  if (is_by(VramHolder::mps)) return find_mps();
  outcome_.guard = !is_by(VramHolder::torch) && loads_guard();
  if (is_by(VramHolder::torch) || !starts(QuotaBackend::mps)) return {};
  outcome_.mps = variable_value(variables_, k_mps_limit).empty() ? VramOutcome::Mps::theirs
                                                                 : VramOutcome::Mps::users_own;
  return {};
}

Result<void> Launch::find_mps() {
  const BackendVerdict& mps = outcome_.of(QuotaBackend::mps);
  if (mps.state == BackendVerdict::State::not_possible)
    return problem("by_mps", {{"why", backend_why(context_, mps)}}, Code::unsupported);
  // The limit is told by numbers of GPUs, and those of a part of them are void as a whole.
  if (machine_.cards.empty()) return problem("no_gpu");
  out_.mps_program = host::find_program(k_mps_control, variables_).path;
  if (out_.mps_program.empty()) return problem("no_mps_control", {}, Code::unsupported);
  outcome_.mps = VramOutcome::Mps::own;
  return {};
}

// The folder of quotas, and what the program loads.
Result<std::string> Launch::make_files() {
  CUFIT_TRY(folder, host::quota_folder(context_.files));
  CUFIT_TRY(guard, host::write_guard_library(context_.files, folder));
  guard_file_ = guard;
  if (options_.spill) {
    CUFIT_TRY(script, host::write_spill_script(context_.files, folder));
    spill_script_ = script;
  }
  return folder;
}

Result<void> Launch::make_domain() {
  CUFIT_TRY(folder, make_files());
  host::remove_unused_domains(host::quota_folders(context_.files));
  DomainWish wish;
  wish.share = outcome_.share;
  wish.cards = machine_.cards;
  wish.limits = outcome_.limits;
  wish.every_bytes = outcome_.every_bytes;
  wish.nvml_own_process = machine_.nvml_own_process;
  wish.least_context_bytes = context_.knowledge.quota_size_bytes("least_context");
  CUFIT_TRY(domain, host::open_domain_file(folder, wish.share, domain_of(wish)));
  out_.domain = std::move(domain);
  CUFIT_TRY(rings, host::make_ring_folder(folder));
  out_.ring_folder = rings;
  if (!out_.domain.joined) return {};
  for (size_t i = 0; i < machine_.cards.size(); ++i) {
    const uint64_t there = limit_in(out_.domain.domain, machine_.cards[i]);
    if (there == k_no_limit && outcome_.limits[i] != k_no_limit)
      return problem("share_unlimited",
                     {{"name", wish.share},
                      {"gpu", std::to_string(machine_.numbers[i].value_or(uint32_t(i)))}});
    outcome_.joined_other = outcome_.joined_other || there != outcome_.limits[i];
    outcome_.limits[i] = there;
  }
  return {};
}

Result<void> Launch::start_server() {
  CUFIT_TRY(folder, host::quota_folder(context_.files));
  host::remove_unused_domains(host::quota_folders(context_.files));
  // Both by UUID: the server numbers its GPUs in its own order.
  if (const std::string visible = visible_by_uuid(machine_.cards); !visible.empty())
    set_variable(variables_, "CUDA_VISIBLE_DEVICES", visible);
  CUFIT_TRY(mps, host::start_mps(out_.mps_program, folder, variables_));
  out_.mps = mps;
  set_variable(variables_, "CUDA_MPS_PIPE_DIRECTORY", host::mps_pipe_folder(mps));
  set_variable(variables_, "CUDA_MPS_LOG_DIRECTORY", host::mps_log_folder(mps));
  return {};
}

void Launch::set_guard() {
  set_variable(variables_, "LD_PRELOAD",
               preload_with(guard_file_, variable_value(variables_, "LD_PRELOAD")));
  set_variable(variables_, "CUFIT_DOMAIN", out_.domain.path);
  set_variable(variables_, "CUFIT_RING", out_.ring_folder);
}

void Launch::set_mps() {
  const std::string limits = mps_limits(outcome_.limits);
  if (limits.empty()) outcome_.mps = VramOutcome::Mps::none;  // no card is seen
  if (!limits.empty()) set_variable(variables_, k_mps_limit, limits);
}

void Launch::set_torch() {
  const double fraction = resolve::torch_fraction(machine_.cards, outcome_.limits, outcome_.guard);
  outcome_.torch = set_torch_fraction(variables_, fraction);
}

Result<void> Launch::check() {
  if (Result<void> good = read_request(); !good) return good.error();
  machine_ = read_vram_machine(context_, program_, variables_);
  if (Result<void> good = choose_holders(); !good) return good.error();
  if (outcome_.mps == VramOutcome::Mps::own || outcome_.guard)
    if (const Result<std::string> made = make_files(); !made) return made.error();
  return {};
}

Result<VramLimit> Launch::prepare() {
  if (Result<void> good = read_request(); !good) return good.error();
  machine_ = read_vram_machine(context_, program_, variables_);
  if (Result<void> good = read_limits(); !good) return good.error();
  if (Result<void> good = choose_holders(); !good) return good.error();
  say_foreign(context_, variables_);
  Result<void> made;
  if (outcome_.guard) made = make_domain();
  if (made && outcome_.mps == VramOutcome::Mps::own) made = start_server();
  if (!made) {
    end_limit(out_);
    return made.error();
  }
  if (outcome_.guard) set_guard();
  if (outcome_.mps == VramOutcome::Mps::theirs || outcome_.mps == VramOutcome::Mps::own) set_mps();
  // torch counts what lies in host memory, too: a fraction would refuse it.
  if (starts(QuotaBackend::torch) && !options_.spill) set_torch();
  say_limit(context_, machine_, outcome_, options_.quiet);
  if (options_.spill)
    set_spill(context_,
              {spill_, guard_file_, spill_script_, machine_.link_rate, options_.quiet,
               program_.command},
              variables_);
  return std::move(out_);
}

}  // namespace

const char* to_string(VramHolder holder) {
  static const char* const k_names[] = {"guard", "mps", "torch"};
  return k_names[static_cast<int>(holder)];
}

std::optional<Error> vram_words_problem(const Context& context, const std::string& vram,
                                        const std::optional<std::string>& share,
                                        resolve::VramRequest& out) {
  std::optional<resolve::VramProblem> found = resolve::parse_vram(vram, out);
  if (!found && share && !is_share_name(*share))
    found = resolve::VramProblem{"share_name", {{"name", *share}}};
  if (!found) return std::nullopt;
  return fail(Code::usage, context.message("run.vram." + found->id, found->args));
}

Result<VramLimit> limit_vram(const Context& context, const VramOptions& options,
                             const VramProgram& program, std::vector<std::string>& variables) {
  return Launch(context, options, program, variables).prepare();
}

Result<void> check_vram(const Context& context, const VramOptions& options,
                        const VramProgram& program, const std::vector<std::string>& variables) {
  std::vector<std::string> unchanged = variables;
  return Launch(context, options, program, unchanged).check();
}

void end_limit(VramLimit& limit) {
  if (!limit.domain.path.empty()) host::leave_domain(limit.domain);
  if (!limit.ring_folder.empty()) host::remove_empty_folder(limit.ring_folder);
  if (!limit.mps.folder.empty()) host::stop_mps(limit.mps, limit.mps_program);
  limit.domain.path.clear();
  limit.mps.folder.clear();
}

}  // namespace cufit::commands
