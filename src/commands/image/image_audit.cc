// SPDX-License-Identifier: Apache-2.0
#include "commands/image/image_audit.h"

#include "commands/progress.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "host/image/image_facts.h"
#include "host/image/image_store.h"
#include "report/image.h"

namespace cufit::commands {
namespace {

constexpr Option k_image_audit_options[] = {
    {"IMAGE", "", "", false, "", true},
    {"--for", "GPU,DRIVER", "", true, ""},
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

Result<std::vector<resolve::Target>> targets_of(const Arguments& arguments) {
  std::vector<resolve::Target> out;
  for (const std::string& text : arguments.all("for")) {
    CUFIT_TRY(asked, read_target(legacy_context(), text));
    out.push_back(std::move(asked.target));
  }
  return out;
}

}  // namespace

std::span<const Option> image_audit_options() { return k_image_audit_options; }

int run_image_audit(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  const std::string path = arguments.get("IMAGE");
  if (path.empty()) {
    print_error(
        "`cufit image audit` needs an image: an archive of `docker save`, or a folder in OCI "
        "layout");
    return k_usage;
  }
  Result<std::vector<resolve::Target>> targets = targets_of(arguments);
  if (!targets) return exit_code_for(targets.error());
  const host::RealHost machine;
  host::ImageOptions options;
  Result<facts::OpenedImage> image = [&] {
    Progress progress(path);
    options.progress = [&progress](const std::string&, uint64_t done, uint64_t total) {
      progress.show(done, total);
    };
    return host::open_image(machine, path, options);
  }();
  if (!image) return exit_code_for(image.error());
  const facts::ImageTree tree(image->layers);
  for (const std::string& problem : tree.problems()) image->problems.push_back(problem);
  const facts::Facts facts = host::read_image_facts(tree, image->config);
  const resolve::ImageAudit audit =
      resolve::audit_image(*image, tree, facts, std::move(*targets), knowledge);
  const report::ImageView view{*image, facts, audit, knowledge};
  const int code = audit.has_defects() ? k_findings : k_ok;
  if (arguments.has("json")) return print(report::image_json(view), code);
  return print(report::image_text(view, style_for(arguments)), code);
}

}  // namespace cufit::commands
