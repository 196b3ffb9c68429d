// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/resolve.h"

#include "base/format.h"
#include "base/nearest.h"
#include "commands/resolve/index_variants.h"
#include "commands/resolve/newer_torch.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/install/index_client.h"
#include "host/install/installer.h"
#include "formats/bench/bench_file.h"
#include "report/resolve.h"
#include "resolve/bench/measured_rank.h"
#include "resolve/wheel/obstacle.h"

namespace cufit::commands {
namespace {

constexpr Option k_resolve_options[] = {
    option<&ResolveRequest::requirements>("REQUIREMENT"),
    option<&ResolveRequest::targets>("--for", "HERE|FILE|GPU,DRIVER"),
    option<&ResolveRequest::python>("--python", "VERSION"),
    option<&ResolveRequest::policy>("--policy", "FILE"),
    option<&ResolveRequest::default_index_only>("--default-index-only"),
    option<&ResolveRequest::indexes>("--index", "URL"),
    option<&ResolveRequest::offline>("--offline"),
    option<&ResolveRequest::measured>("--measured", "FILE"),
    option<&ResolveRequest::json>("--json"),
    option<&ResolveRequest::verbose>("-v,--verbose"),
};

// The pages of all `--index` as one: what any of them has can be installed.
Result<std::optional<formats::IndexPage>> read_index(const Context& context,
                                                     const ResolveRequest& request,
                                                     std::vector<HeardPage>& pages) {
  std::optional<formats::IndexPage> all;
  if (request.indexes.empty()) return all;
  host::Interrupts interrupts;
  for (const std::string& word : request.indexes) {
    host::IndexOptions options;
    options.offline = request.offline;
    const formats::IndexUrl index = formats::parse_index_word(word, "--index");
    CUFIT_TRY(answer, host::ask_index(context.files, index.url, "torch", options, interrupts));
    if (answer.how == host::IndexAnswer::How::stale)
      context.output.print_error("using what the index said earlier: " + answer.problem);
    if (!all) all.emplace();
    pages.push_back({answer.url, answer.page});
    for (formats::IndexFile& file : answer.page.files) all->files.push_back(std::move(file));
  }
  return all;
}

// What keeps torch from a GPU there, as doctor names it; empty: nothing that is known.
std::string obstacle_title(const AskedTarget& asked, const knowledge::Knowledge& knowledge,
                           const std::string& lang) {
  const std::optional<checks::Finding> found =
      resolve::obstacle_of(asked.facts, asked.target, knowledge);
  return found ? report::finding_text(*found, "title", lang, knowledge) : std::string();
}

// All that is asked, but for the machines.
Result<resolve::Request> wheels_asked(const Context& context, const ResolveRequest& asked,
                                      std::vector<HeardPage>& pages) {
  CUFIT_TRY(request, read_request(asked.requirements, asked.python));
  request.default_index_only = asked.default_index_only;
  CUFIT_TRY(policy, read_policy(context, asked.policy, host::working_folder()));
  request.policy = std::move(policy);
  CUFIT_TRY(mirror, read_index_setting(context, host::working_folder()));
  request.mirror = std::move(mirror);
  CUFIT_TRY(index, read_index(context, asked, pages));
  request.index = std::move(index);
  request.asked_indexes = asked.indexes;
  return request;
}

// What `cufit bench` measured; nothing where it is not asked for.
Result<std::optional<formats::BenchFile>> read_measured(const Context& context,
                                                        const ResolveRequest& request) {
  std::optional<formats::BenchFile> out;
  if (!request.measured) return out;
  CUFIT_TRY(text, context.files.read_file(*request.measured, formats::k_most_bench_file));
  CUFIT_TRY(file, formats::parse_bench_file(text, *request.measured));
  return std::optional(std::move(file));
}

void name_ignored(report::ResolveView& view) {
  static const std::vector<std::string> k_known = {
      "torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn", "bitsandbytes"};
  for (const formats::Requirement& one : view.request.requirements) {
    if (resolve::is_judged(one)) continue;
    view.ignored.push_back(one.text);
    const std::vector<std::string> close = nearest(one.name, k_known, 1);
    if (!close.empty() && view.ignored_near.empty()) view.ignored_near = close[0];
  }
}

// Without them the answer stands: a table that cannot be read is said and no more.
std::optional<IndexVariants> variants_of_index(const Output& output,
                                               const std::vector<HeardPage>& pages,
                                               const resolve::Request& request,
                                               host::Interrupts& interrupts) {
  auto read = read_index_variants(pages, request.requirements, interrupts);
  if (read) return std::move(*read);
  output.print_error(read.error().text());
  return std::nullopt;
}

void put_variants(const std::optional<IndexVariants>& variants, report::ResolveView& view) {
  if (!variants) return;
  view.variants_torch = variants->torch;
  view.variants_url = variants->url;
  for (const resolve::Answer& answer : view.answers)
    view.variants.push_back(resolve::choose_variant(variants->table, answer.target));
}

}  // namespace

std::span<const Option> resolve_options() { return k_resolve_options; }

int run_resolve(const Context& here, const ResolveRequest& request) {
  const Output& output = here.output;
  std::vector<HeardPage> pages;
  const Result<resolve::Request> wheels = wheels_asked(here, request, pages);
  if (!wheels) return output.exit_code_for(wheels.error());
  std::unique_ptr<NewerTorch> newer;
  std::optional<IndexVariants> variants;
  if (!pages.empty() && !request.offline) {
    host::Interrupts interrupts;
    variants = variants_of_index(output, pages, *wheels, interrupts);
    newer = read_newer_torch(here, pages, wheels->requirements, interrupts);
    if (interrupts.caught() != 0) return interrupted_exit(interrupts.caught());
  }
  const Context context{here.files, here.machine, newer ? newer->knowledge() : here.knowledge,
                        here.now, here.output};
  const Result<std::vector<AskedTarget>> targets = read_targets(context, request.targets);
  if (!targets) return output.exit_code_for(targets.error());
  const auto measured = read_measured(context, request);
  if (!measured) return output.exit_code_for(measured.error());
  std::vector<resolve::Answer> answers;
  bool used = false;
  bool all = true;
  for (const AskedTarget& asked : *targets) {
    resolve::Request own = *wheels;
    own.installed = resolve::installed_wheels(asked.facts, context.knowledge);
    answers.push_back(resolve::resolve(asked.target, own, context.knowledge));
    all = all && resolve::served(answers.back());
    if (*measured) used = resolve::rank_by(**measured, *request.measured, answers.back()) || used;
  }
  report::ResolveView view{answers, *wheels, context.knowledge};
  const std::string lang = request.json ? "en" : context.language();
  for (const AskedTarget& asked : *targets)
    view.obstacles.push_back(obstacle_title(asked, context.knowledge, lang));
  if (*measured && !used) view.unused_measured = {*request.measured, (*measured)->gpu};
  if (*measured && used && (*measured)->doubtful) view.doubtful_measured = *request.measured;
  name_ignored(view);
  put_variants(variants, view);
  for (const AskedTarget& asked : *targets)
    view.machines.push_back(asked.facts.envs.empty() ? nullptr : &asked.facts);
  view.no_uv = !host::may_have_uv(context.files);
  return output.print(request.json ? report::resolve_json(view)
                                   : report::resolve_text(view, output.style(request.verbose)),
                      all ? k_ok : k_findings);
}

}  // namespace cufit::commands
