// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_verify.h"

#include <algorithm>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/number.h"
#include "commands/quota/quota_here.h"
#include "commands/size_argument.h"
#include "host/probe.h"
#include "host/quota/domain_files.h"
#include "host/quota/quota_trial.h"
#include "report/quota.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_verify_options[] = {
    option<&QuotaVerifyRequest::vram>("--vram", "SIZE"),
    option<&QuotaVerifyRequest::gpu>("--gpu", "GPU"),
    option<&QuotaVerifyRequest::json>("--json"),
    option<&QuotaVerifyRequest::command>("COMMAND"),
};

constexpr uint64_t k_usual_trial_limit = uint64_t{2} << 30;
// Where NVML does not say what a context takes (data/gpu_memory.toml has 150 to 770 MiB by GPU).
constexpr uint64_t k_trial_context = uint64_t{512} << 20;

struct TrialDomain {
  host::QuotaTrial trial;
  uint64_t limit = 0;  // of each GPU; 0: as the domain says
};

Result<uint64_t> limit_asked(const std::string& text) {
  CUFIT_TRY(bytes, size_argument("--vram", text));
  if (bytes < resolve::k_least_trial_limit)
    return fail(Code::usage, format("`--vram {}`: a trial needs 1 GiB at least", text));
  return bytes;
}

// The quota in which cufit itself was started (`cufit run --vram 10G -- cufit quota verify`), or one for the trial.
Result<TrialDomain> trial_domain(const Context& context, const QuotaVerifyRequest& request) {
  if (!request.vram && !context.machine.variable("CUFIT_DOMAIN").value_or("").empty()) {
    CUFIT_TRY(trial, host::QuotaTrial::here(context.machine));
    return TrialDomain{std::move(trial), 0};
  }
  uint64_t limit = k_usual_trial_limit;
  if (request.vram) {
    CUFIT_TRY(asked, limit_asked(*request.vram));
    uint64_t most = 0;
    for (const facts::CudaDevice& device : quota_facts(context).cuda.devices)
      most = std::max(most, device.memory_total_bytes.value_or(UINT64_MAX));
    if (most != 0 && asked > most)
      return fail(Code::usage, format("`--vram` of {} is more than any GPU here has: {}",
                                      format_bytes(asked), format_bytes(most)));
    limit = asked;
  }
  CUFIT_TRY(trial, host::QuotaTrial::make(limit, k_trial_context));
  return TrialDomain{std::move(trial), limit};
}

// The Python of the environment that is in use, where it has torch; empty: none.
std::string torch_python(const Context& context) {
  facts::Facts facts;
  host::read_variables(context.machine, facts);
  host::read_python_envs(context.machine, {}, facts);
  for (const facts::PythonEnv& env : facts.envs)  // the active one first
    if (env.interpreter && env.torch.version) return *env.interpreter;
  return {};
}

// "0" is CUDA's number; a UUID may be cut, with or without "GPU-".
bool is_asked(const host::TrialGpu& gpu, const std::string& asked) {
  if (const std::optional<uint64_t> number = parse_uint(asked)) return *number == gpu.ordinal;
  std::string uuid = lower(asked);
  for (const char* head : {"gpu-", "mig-"})
    if (starts_with(uuid, head)) uuid = uuid.substr(4);
  return !uuid.empty() && starts_with(gpu.uuid, uuid);
}

class Verification {
 public:
  Verification(const Context& context, const QuotaVerifyRequest& request, const TrialDomain& domain,
               host::Interrupts& interrupts)
      : context_(context), request_(request), domain_(domain), interrupts_(interrupts) {}

  // Fills gpus and trials.
  Result<void> run(report::QuotaVerifyView& view) {
    host::TrialGpus here = domain_.trial.gpus(interrupts_);
    if (here.answer.phase != "done" || here.gpus.empty()) {
      keep(view, 0, {"devices", "dlsym"}, std::move(here.answer));
      return {};
    }
    // Of the living: what ended trials held is still in the file.
    CUFIT_TRY(live, host::read_quota_domain(context_.machine, domain_.trial.path()));
    const formats::QuotaDomain& domain = live.domain;
    for (host::TrialGpu& gpu : here.gpus) {
      if (request_.gpu && !is_asked(gpu, *request_.gpu)) continue;
      view.gpus.push_back(verified(std::move(gpu), domain));
    }
    if (view.gpus.empty())
      return fail(Code::usage, format("`--gpu {}`: no such GPU; CUDA shows {} here, counted from 0",
                                      request_.gpu.value_or(""), here.gpus.size()));
    view.others = here.gpus.size() - view.gpus.size();
    const std::string python = torch_python(context_);
    for (const report::VerifiedGpu& gpu : view.gpus)
      if (gpu.skipped == report::VerifiedGpu::Skipped::no) one_gpu(view, gpu, python);
    return {};
  }

 private:
  using Skipped = report::VerifiedGpu::Skipped;

  report::VerifiedGpu verified(host::TrialGpu gpu, const formats::QuotaDomain& domain) const {
    report::VerifiedGpu out;
    out.number = gpu.ordinal;
    out.name = std::move(gpu.name);
    uint64_t limit = domain.default_limit_bytes, used = 0;
    for (const formats::QuotaDevice& row : domain.devices) {
      const bool same = row.uuid.empty() ? !row.pci.empty() && row.pci == gpu.pci
                                         : row.uuid.substr(4) == gpu.uuid;
      if (!same) continue;
      limit = row.limit_bytes, used = row.used_bytes;
      out.uuid = row.uuid;  // says GPU- or MIG-
    }
    if (out.uuid.empty() && !gpu.uuid.empty())
      out.uuid = (contains(gpu.name, " MIG ") ? "MIG-" : "GPU-") + gpu.uuid;
    if (limit == formats::k_no_quota) {
      out.skipped = Skipped::no_limit;
      return out;
    }
    out.limit_bytes = limit;
    out.room_bytes = limit - std::min(limit, used);
    out.sizes = resolve::trial_sizes(limit, out.room_bytes);
    if (out.room_bytes < resolve::k_least_trial_limit) out.skipped = Skipped::no_room;
    return out;
  }

  void keep(report::QuotaVerifyView& view, uint32_t gpu, const resolve::TrialWay& way,
            facts::TrialAnswer answer) const {
    const resolve::Proof proof = resolve::judge(answer);
    view.trials.push_back({gpu, way, std::move(answer), proof});
  }

  void one_gpu(report::QuotaVerifyView& view, const report::VerifiedGpu& gpu,
               const std::string& python) const {
    const host::QuotaTrial& trial = domain_.trial;
    const facts::TrialSizes sizes = gpu.sizes;
    for (const resolve::TrialWay& way : resolve::trial_ways()) {
      if (interrupts_.caught() != 0) return;
      keep(view, gpu.number, way, trial.ask(way.way, way.route, gpu.number, sizes, interrupts_));
    }
    if (python.empty()) return;
    for (const resolve::TrialWay& way : resolve::torch_ways()) {
      if (interrupts_.caught() != 0) return;
      keep(view, gpu.number, way,
           trial.ask_torch(python, way.route, gpu.number, sizes, interrupts_));
    }
  }

  const Context& context_;
  const QuotaVerifyRequest& request_;
  const TrialDomain& domain_;
  host::Interrupts& interrupts_;
};

// The program under the same limit: in a domain of its own, so that the trials are in none of its figures, unless it is that in
// which cufit runs.
Result<void> run_command(const Context& context, const QuotaVerifyRequest& request,
                         const TrialDomain& domain, host::Interrupts& interrupts,
                         report::QuotaVerifyView& view) {
  std::optional<TrialDomain> fresh;
  if (domain.limit != 0) {
    CUFIT_TRY(made, trial_domain(context, request));
    fresh.emplace(std::move(made));
  }
  const host::QuotaTrial& trial = fresh ? fresh->trial : domain.trial;
  CUFIT_TRY(before, trial.domain());
  CUFIT_TRY(code, trial.run(request.command, interrupts));
  CUFIT_TRY(after, trial.domain());
  view.command = report::VerifiedCommand{code, 0, 0, false};
  for (size_t i = 0; i < after.devices.size(); ++i) {
    const formats::QuotaDevice& device = after.devices[i];
    view.command->peak_bytes = std::max(view.command->peak_bytes, device.peak_bytes);
    view.command->refusals +=
        device.refusals - (i < before.devices.size() ? before.devices[i].refusals : 0);
    view.command->went_over =
        view.command->went_over ||
        (device.limit_bytes != formats::k_no_quota && device.peak_bytes > device.limit_bytes);
  }
  return {};
}

}  // namespace

std::span<const Option> quota_verify_options() { return k_quota_verify_options; }

int run_quota_verify(const Context& context, const QuotaVerifyRequest& request) {
  const Output& output = context.output;
  host::Interrupts interrupts;
  const Result<TrialDomain> domain = trial_domain(context, request);
  if (!domain) return output.exit_code_for(domain.error());
  report::QuotaVerifyView view{{}, 0, {}, {}, context.knowledge};
  if (Result<void> done = Verification(context, request, *domain, interrupts).run(view); !done)
    return output.exit_code_for(done.error());
  if (interrupts.caught() != 0)
    return output.exit_code_for(
        fail(Code::cancelled, format("interrupted by signal {}", interrupts.caught())));
  if (!request.command.empty())
    if (Result<void> done = run_command(context, request, *domain, interrupts, view); !done)
      return output.exit_code_for(done.error());
  return output.print(request.json ? report::quota_verify_json(view)
                                   : report::quota_verify_text(view, output.style()),
                      report::all_verified(view) ? k_ok : k_findings);
}

}  // namespace cufit::commands
