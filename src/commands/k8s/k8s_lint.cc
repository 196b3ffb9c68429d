// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/k8s_lint.h"

#include "commands/k8s/lint_inputs.h"
#include "commands/progress.h"
#include "host/image/image_facts.h"
#include "host/image/image_store.h"
#include "report/k8s.h"

namespace cufit::commands {
namespace {

constexpr Option k_k8s_lint_options[] = {
    option<&K8sLintRequest::files>("FILE").needed(),
    option<&K8sLintRequest::image>("--image", "IMAGE.tar"),
    option<&K8sLintRequest::nodes>("--nodes", "FILE|DIR"),
    option<&K8sLintRequest::fail_on>("--fail-on", "LEVEL", "note unknown warning error never"),
    option<&K8sLintRequest::json>("--json"),
    option<&K8sLintRequest::verbose>("-v,--verbose"),
};

Result<facts::OpenedImage> open_pod_image(const host::Host& files, const std::string& path) {
  Progress progress(path);
  host::ImageOptions options;
  options.progress = [&progress](const std::string&, uint64_t done, uint64_t total) {
    progress.show(done, total);
  };
  return host::open_image(files, path, options);
}

int lint_exit(const resolve::Lint& lint, FailOn fail_on) {
  if (fail_on == FailOn::never) return k_ok;
  const int level = static_cast<int>(fail_on) + 1;  // as checks::seriousness counts
  for (const resolve::LintFinding& one : lint.findings)
    if (seriousness(one.finding.severity) >= level) return k_findings;
  return k_ok;
}

int report_lint(const Context& context, const K8sLintRequest& request,
                const resolve::LintInput& input, std::vector<std::string> problems, bool all_read) {
  const resolve::Lint lint = resolve::lint_manifests(input, context.knowledge);
  // A manifest that could not be read was not found good.
  const int code = all_read ? lint_exit(lint, request.fail_on) : k_failed;
  const report::LintView view{input, lint, std::move(problems), context.knowledge};
  const Output& output = context.output;
  return output.print(request.json ? report::lint_json(view)
                                   : report::lint_text(view, output.style(request.verbose)),
                      code);
}

}  // namespace

std::span<const Option> k8s_lint_options() { return k_k8s_lint_options; }

int run_k8s_lint(const Context& context, const K8sLintRequest& request) {
  const Output& output = context.output;
  if (request.files.empty()) {
    output.print_error("`cufit k8s lint` needs a manifest: a file, or - for standard input");
    return k_usage;
  }
  std::vector<std::string> problems;
  resolve::LintInput input;
  Result<std::vector<resolve::LintFile>> files = read_manifests(request.files, problems);
  if (!files) return output.exit_code_for(files.error());
  bool all_read = problems.empty();
  Result<std::vector<resolve::ClusterNode>> nodes =
      read_nodes(context, request.nodes, problems, all_read);
  if (!nodes) return output.exit_code_for(nodes.error());
  input.files = std::move(*files);
  input.nodes = std::move(*nodes);
  if (!request.image) return report_lint(context, request, input, std::move(problems), all_read);
  Result<facts::OpenedImage> image = open_pod_image(context.files, *request.image);
  if (!image) return output.exit_code_for(image.error());
  const facts::ImageTree tree(image->layers);
  for (const std::string& problem : tree.problems()) problems.push_back(problem);
  const facts::Facts facts = host::read_image_facts(tree, image->config);
  const resolve::LintImage opened{*image, tree, facts};
  input.image = &opened;
  return report_lint(context, request, input, std::move(problems), all_read);
}

}  // namespace cufit::commands
