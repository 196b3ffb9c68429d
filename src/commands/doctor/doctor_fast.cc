// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor/doctor_fast.h"

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/result_file.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "host/install/ownership.h"
#include "host/probe.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

using report::ExitStyle;

constexpr const char* k_site_file = "/etc/cufit/cufit.toml";
constexpr uint64_t k_most_gpus = 1024;

int exit_code(const checks::HealthReport& report, ExitStyle style) {
  switch (report.usable) {
    case checks::Usable::yes:
      return style == ExitStyle::nagios && !report.findings.empty() ? 1 : 0;
    case checks::Usable::no:
      return style == ExitStyle::nagios ? 2 : 1;
    case checks::Usable::unknown:
      break;
  }
  return style == ExitStyle::nagios ? 3 : 2;
}

Result<void> goes_with_fast(const DoctorRequest& request) {
  const char* const given = request.deep            ? "--deep"
                            : request.fix           ? "--fix"
                            : request.html          ? "--html"
                            : request.driver        ? "--driver"
                            : !request.env.empty()  ? "--env"
                            : !request.gpus.empty() ? "--gpu"
                                                    : nullptr;
  if (given == nullptr) return {};
  return fail(Code::usage, format("`{}` cannot go with `--fast`", given));
}

Result<checks::HealthRules> rules_of_file(const Context& context, const std::string& path) {
  CUFIT_TRY(text, context.files.read_file(path, size_t{1} << 20));
  return checks::parse_health_rules(text, path, context.knowledge);
}

// `--policy`; else cufit.toml of this folder or one above, where it has [health]; else the site's.
Result<checks::HealthRules> found_rules(const Context& context, const DoctorRequest& request) {
  if (request.policy) {
    CUFIT_TRY(named, rules_of_file(context, *request.policy));
    if (named.file.empty())
      return fail(
          Code::malformed,
          format("`{}` has no `[health]` table: nothing in it would be asked", *request.policy));
    return named;
  }
  const std::string here = host::find_upwards(host::working_folder(), "cufit.toml");
  // Whoever may put a file into a folder above would say what counts as healthy.
  if (!here.empty() && !host::foreign_file(context.files, here)) {
    CUFIT_TRY(near, rules_of_file(context, here));
    if (!near.file.empty()) return near;
  }
  if (context.files.exists(k_site_file)) return rules_of_file(context, k_site_file);
  return checks::HealthRules();
}

Result<checks::HealthRules> read_rules(const Context& context, const DoctorRequest& request) {
  CUFIT_TRY(rules, found_rules(context, request));
  if (request.expect_gpus) {
    const auto count = parse_uint(*request.expect_gpus);
    if (!count || *count > k_most_gpus)
      return fail(Code::usage,
                  format("`--expect-gpus {}` is no number of GPUs", *request.expect_gpus));
    rules.gpus = static_cast<uint32_t>(*count);
  }
  return rules;
}

Result<facts::Facts> read_facts(const Context& context, const DoctorRequest& request) {
  if (request.from) return host::load_facts(context.files, *request.from);
  return host::collect_health(context.machine, {});
}

Result<int> judge(const Context& context, const DoctorRequest& request, ExitStyle style) {
  if (const Result<void> fits = goes_with_fast(request); !fits) return fits.error();
  CUFIT_TRY(rules, read_rules(context, request));
  if (const Result<void> other = not_the_input(request.record, request.from); !other)
    return other.error();
  CUFIT_TRY(facts, read_facts(context, request));
  std::vector<uint32_t> gpus;
  if (request.judged_gpus) {
    CUFIT_TRY(listed, checks::gpus_of_list(*request.judged_gpus, facts));
    gpus = std::move(listed);
  }
  if (request.record) {
    const facts::Facts redacted = facts::redact(facts, host::private_names(context.machine));
    if (const Result<void> saved = host::save_recording(*request.record, redacted); !saved)
      return saved.error();
  }
  const checks::HealthReport report = checks::judge_health(facts, context.knowledge, rules, gpus);
  const report::HealthView view{facts, report, context.knowledge};
  return context.output.print(
      request.json ? report::health_json(view)
                   : report::health_text(view, style, context.output.style(request.verbose)),
      exit_code(report, style));
}

}  // namespace

int run_doctor_fast(const Context& context, const DoctorRequest& request) {
  const ExitStyle style = request.exit_style.value_or(ExitStyle::node);
  const int unknown = style == ExitStyle::nagios ? 3 : 2;
  const Result<int> code = judge(context, request, style);
  if (!code) {
    // Nagios shows what stands on stdout.
    if (style == ExitStyle::nagios)
      (void)context.output.print("UNKNOWN - " + report::printable(code.error().text()) + "\n",
                                 unknown);
    context.output.exit_code_for(code.error());
    return unknown;
  }
  return *code == k_failed ? unknown : *code;  // stdout was closed or full
}

}  // namespace cufit::commands
