// SPDX-License-Identifier: Apache-2.0
#include "commands/image/image_audit.h"

#include "commands/progress.h"
#include "commands/resolve/targets.h"
#include "base/format.h"
#include "host/image/image_facts.h"
#include "host/image/image_setup.h"
#include "host/image/image_store.h"
#include "report/image.h"

namespace cufit::commands {
namespace {

constexpr Option k_image_audit_options[] = {
    option<&ImageAuditRequest::image>("IMAGE").needed(),
    option<&ImageAuditRequest::targets>("--for", "GPU,DRIVER"),
    option<&ImageAuditRequest::check>("--check"),
    option<&ImageAuditRequest::json>("--json"),
    option<&ImageAuditRequest::verbose>("-v,--verbose"),
};

Result<std::vector<resolve::Target>> targets_of(const Context& context,
                                                const std::vector<std::string>& asked) {
  std::vector<resolve::Target> out;
  for (const std::string& text : asked) {
    CUFIT_TRY(one, read_target(context, text));
    out.push_back(std::move(one.target));
  }
  return out;
}

Result<facts::OpenedImage> open_with_progress(const host::Host& files, const std::string& path) {
  Progress progress(path);
  host::ImageOptions options;
  options.progress = [&progress](const std::string&, uint64_t done, uint64_t total) {
    progress.show(done, total);
  };
  return host::open_image(files, path, options);
}

}  // namespace

std::span<const Option> image_audit_options() { return k_image_audit_options; }

int run_image_audit(const Context& context, const ImageAuditRequest& request) {
  const Output& output = context.output;
  if (request.image.empty()) {
    output.print_error(
        "`cufit image audit` needs an image: an archive of `docker save`, or a folder in OCI "
        "layout");
    return k_usage;
  }
  Result<std::vector<resolve::Target>> targets = targets_of(context, request.targets);
  if (!targets) return output.exit_code_for(targets.error());
  Result<facts::OpenedImage> image = open_with_progress(context.files, request.image);
  if (!image) return output.exit_code_for(image.error());
  const facts::ImageTree tree(image->layers);
  for (const std::string& problem : tree.problems()) image->problems.push_back(problem);
  const facts::Facts facts = host::read_image_facts(tree, image->config);
  resolve::ImageAudit audit =
      resolve::audit_image(*image, tree, facts, std::move(*targets), context.knowledge);
  if (request.check) {
    const facts::ImageSetup setup = host::read_image_setup(*image, tree);
    resolve::add_rules(resolve::judge_image_rules(*image, setup), audit);
    for (const std::string& path : setup.unread)
      image->problems.push_back(format("`{}`: not read", path));
  }
  const report::ImageView view{*image, facts, audit, context.knowledge};
  // A rule that could not be judged was not found kept.
  const int code = audit.has_defects()                     ? k_findings
                   : request.check && !audit.keeps_rules() ? k_failed
                                                           : k_ok;
  return output.print(request.json ? report::image_json(view)
                                   : report::image_text(view, output.style(request.verbose)),
                      code);
}

}  // namespace cufit::commands
