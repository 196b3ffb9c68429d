// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_status.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "commands/quota/quota_here.h"
#include "host/process/this_process.h"
#include "host/quota/domain_files.h"
#include "host/quota/queued_jobs.h"
#include "report/quota.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_status_options[] = {
    option<&QuotaStatusRequest::domains>("DOMAIN"),
    option<&QuotaStatusRequest::json>("--json"),
};

// Those that were named, in this order: a word with a slash is a file.
Result<facts::QuotaDomains> named_domains(const Context& context,
                                          const std::vector<std::string>& names) {
  facts::QuotaDomains out;
  std::optional<facts::QuotaDomains> all;
  for (const std::string& name : names) {
    if (contains(name, "/")) {
      CUFIT_TRY(domain, host::read_quota_domain(context.files, name));
      out.domains.push_back(std::move(domain));
      continue;
    }
    if (!all) all = host::read_quota_domains(context.machine);
    bool found = false;
    for (const facts::LiveDomain& domain : all->domains) {
      if (domain.domain.name != name) continue;
      out.domains.push_back(domain);
      found = true;
    }
    // A file of that name which is damaged or another user's is no domain that is not there.
    for (const facts::SkippedDomain& skipped : all->skipped)
      if (const std::string_view file = file_name(skipped.path);
          !found &&
          (file == name || file == name + ".domain" || file == "share-" + name + ".domain"))
        return fail(Code::no_permission, skipped.why);
    if (!found)
      return fail(Code::not_found,
                  format("no quota domain `{}` here; `cufit quota status` lists all", name));
  }
  return out;
}

}  // namespace

std::span<const Option> quota_status_options() { return k_quota_status_options; }

int run_quota_status(const Context& context, const QuotaStatusRequest& request) {
  const Output& output = context.output;
  const Result<facts::QuotaDomains> domains =
      request.domains.empty()
          ? Result<facts::QuotaDomains>(host::read_quota_domains(context.machine))
          : named_domains(context, request.domains);
  if (!domains) return output.exit_code_for(domains.error());
  const facts::Facts facts = quota_facts(context);
  const std::vector<resolve::DomainUsage> usage = resolve::domain_usage(*domains, facts);
  const resolve::QuotaMachine machine = quota_machine_here(context, facts);
  report::QuotaStatusView view{usage,
                               domains->skipped,
                               resolve::quota_backends(machine, context.knowledge),
                               !facts.nvml.gpus.empty(),
                               !machine.gpus.empty(),
                               !host::is_root(),
                               context.knowledge};
  if (request.domains.empty()) view.queue = host::read_queued_jobs(context.machine);
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus)
    if (gpu.uuid) view.index_by_uuid[*gpu.uuid.value] = gpu.index;
  return output.print(request.json ? report::quota_status_json(view)
                                   : report::quota_status_text(view, output.style()),
                      k_ok);
}

}  // namespace cufit::commands
