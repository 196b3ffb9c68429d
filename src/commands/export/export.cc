// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/export/export_cluster.h"
#include "commands/export/export_inputs.h"
#include "commands/export/export_places.h"
#include "commands/image/image_audit.h"
#include "host/files/paths.h"
#include "report/export.h"
#include "report/export_monitoring.h"

namespace cufit::commands {
namespace {

constexpr Option k_export_options[] = {
    option<&ExportRequest::to>("--to", "FORMAT", report::k_export_formats),
    option<&ExportRequest::lock>("--lock", "DIR"),
    option<&ExportRequest::classes>("--class", "NAME"),
    option<&ExportRequest::class_list>("--classes", "NAMES"),
    option<&ExportRequest::with>("--with", "SERVICES"),
    option<&ExportRequest::output>("-o,--output", "PATH"),
    option<&ExportRequest::base>("--base", "IMAGE"),
    option<&ExportRequest::gpus>("--gpus", "N"),
    option<&ExportRequest::check>("--check", "IMAGE"),
    option<&ExportRequest::image>("--image", "IMAGE"),
    option<&ExportRequest::space>("--namespace", "NAME"),
    option<&ExportRequest::nodes>("--nodes", "N"),
    option<&ExportRequest::shared>("--shared", "N"),
    option<&ExportRequest::mig>("--mig", "PROFILE=N"),
    option<&ExportRequest::force>("--force"),
    option<&ExportRequest::json>("--json"),
};

// An option that a format has no place for is a misunderstanding, not a detail.
Result<void> check_options(const ExportRequest& request) {
  if (request.to.empty())
    return fail(Code::usage,
                format("`cufit export` needs `--to FORMAT`: {}", report::k_export_formats));
  struct Place {
    const char* option;
    bool given;
    std::vector<std::string> formats;
  };
  std::vector<std::string> of_locks;
  for (const std::string_view word : split(report::k_lock_formats, ' '))
    of_locks.emplace_back(word);
  const Place places[] = {
      {"lock", request.lock.has_value(), of_locks},
      {"class", !request.classes.empty(), of_locks},
      {"classes", !request.class_list.empty(), of_locks},
      {"with", !request.with.empty(), {"dockerfile"}},
      {"check", !request.check.empty(), {"dockerfile"}},
      {"base", request.base.has_value(), {"dockerfile", "apptainer"}},
      {"gpus", request.gpus.has_value(), {"compose", "devcontainer", "k8s", "slurm", "k8s-quota"}},
      {"image", request.image.has_value(), {"k8s-daemonset", "k8s-job", "k8s-quota"}},
      {"namespace", request.space.has_value(), {"k8s-daemonset", "k8s-job", "k8s-quota"}},
      {"nodes", request.nodes.has_value(), {"k8s-job"}},
      {"shared", request.shared.has_value(), {"k8s-quota"}},
      {"mig", !request.mig.empty(), {"k8s-quota"}}};
  for (const Place& place : places) {
    const bool fits =
        std::find(place.formats.begin(), place.formats.end(), request.to) != place.formats.end();
    if (place.given && !fits)
      return fail(Code::usage, format("`--{}` is for {}", place.option, join(place.formats, ", ")));
  }
  return {};
}

// The lock and its pylock files are what was exported from: never what is written over.
Result<void> spare_lock(const std::vector<std::string>& paths, const report::ExportView& view) {
  const std::string folder = parent_folder(view.lock.path);
  std::vector<std::string> sources{view.lock.path};
  for (const resolve::LockClass& one : view.lock.classes)
    sources.push_back(path_in(folder, one.file));
  for (const std::string& path : paths)
    for (const std::string& source : sources)
      if (host::path_exists(path) && host::same_entry(path, source))
        return fail(Code::usage,
                    format("`{}` belongs to the lock that is exported; nothing was written", path));
  return {};
}

// What the build of an image copies lies in the lock's folder, perhaps not beside the file written.
void tell_where_sources_are(const Output& output, const report::ExportView& view,
                            const std::string& written) {
  if (view.to != "dockerfile" && view.to != "apptainer") return;
  const auto folder_or_here = [](const std::string& path) {
    const std::string folder = parent_folder(path);
    return folder.empty() ? std::string(".") : folder;
  };
  const std::string from = folder_or_here(view.lock.path), to = folder_or_here(written);
  if (host::same_entry(from, to)) return;
  std::string command = "cp";
  if (view.classes.size() == view.lock.classes.size()) command += " " + shell_word(view.lock.path);
  for (const report::ExportClass& one : view.classes)
    command += " " + shell_word(path_in(from, one.lock.file));
  output.print_error(format("the image is built from files of the lock's folder: `{} {}`", command,
                            shell_word(to)));
}

int export_lock(const Context& context, const ExportRequest& request) {
  const Output& output = context.output;
  const Result<report::ExportView> view = read_export_view(context, request);
  if (!view) return output.exit_code_for(view.error());
  const Result<std::vector<report::ExportFile>> files = report::export_files(*view);
  if (!files) return output.exit_code_for(files.error());
  if (request.output.empty() && request.json)
    return output.print(report::export_json(*view, *files), k_ok);
  if (request.output.empty() && files->size() == 1) return output.print(files->front().text, k_ok);
  const Result<std::vector<std::string>> paths = chosen_places(request, *files);
  if (!paths) return output.exit_code_for(paths.error());
  if (Result<void> spared = spare_lock(*paths, *view); !spared)
    return output.exit_code_for(spared.error());
  if (Result<void> written = write_files(*files, *paths, request.force); !written)
    return output.exit_code_for(written.error());
  tell_where_sources_are(output, *view, paths->front());
  return output.print(request.json ? report::export_json(*view, *files) : join(*paths, "\n") + "\n",
                      k_ok);
}

// What needs no lock: one file to stdout, several into a folder.
int put_files(const Context& context, const ExportRequest& request,
              const std::vector<report::ExportFile>& files, const std::string& json) {
  const Output& output = context.output;
  if (request.output.empty() && (request.json || files.size() == 1))
    return output.print(request.json ? json : files.front().text, k_ok);
  const Result<std::vector<std::string>> paths = chosen_places(request, files);
  if (!paths) return output.exit_code_for(paths.error());
  if (Result<void> written = write_files(files, *paths, request.force); !written)
    return output.exit_code_for(written.error());
  return output.print(request.json ? json : join(*paths, "\n") + "\n", k_ok);
}

// An image needs no lock, and nothing is written: options that are about these are a mistake.
int check_image(const Context& context, const ExportRequest& request) {
  const std::pair<const char*, bool> others[] = {{"with", !request.with.empty()},
                                                 {"lock", request.lock.has_value()},
                                                 {"class", !request.classes.empty()},
                                                 {"classes", !request.class_list.empty()},
                                                 {"base", request.base.has_value()},
                                                 {"output", !request.output.empty()},
                                                 {"force", request.force}};
  for (const auto& [name, given] : others)
    if (given)
      return context.output.exit_code_for(
          fail(Code::usage, format("`--check` reads an image; it does not go with `--{}`", name)));
  ImageAuditRequest audit;
  audit.image = request.check;
  audit.check = true;
  audit.json = request.json;
  return run_image_audit(context, audit);
}

// Rules, boards and what starts them are the same for every machine.
int export_rules(const Context& context, const ExportRequest& request) {
  const report::MonitoringView view{request.to, context.language(), context.knowledge};
  const std::vector<report::ExportFile> files = report::export_monitoring(view);
  return put_files(context, request, files, report::monitoring_json(view, files));
}

int export_for_cluster(const Context& context, const ExportRequest& request) {
  const Result<report::ClusterView> view = cluster_view(
      context, request.to,
      {request.image, request.space, request.nodes, request.gpus, request.shared, request.mig});
  if (!view) return context.output.exit_code_for(view.error());
  const std::vector<report::ExportFile> files = report::export_cluster(*view);
  return put_files(context, request, files, report::cluster_json(*view, files));
}

}  // namespace

std::span<const Option> export_options() { return k_export_options; }

int run_export(const Context& context, const ExportRequest& request) {
  if (Result<void> good = check_options(request); !good)
    return context.output.exit_code_for(good.error());
  if (!request.check.empty()) return check_image(context, request);
  if (report::is_cluster_format(request.to)) return export_for_cluster(context, request);
  return report::is_monitoring_format(request.to) ? export_rules(context, request)
                                                  : export_lock(context, request);
}

}  // namespace cufit::commands
