// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export.h"

#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "commands/export/export_cluster.h"
#include "commands/image/image_audit.h"
#include "commands/run/run_choice.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/install/lock_folder.h"
#include "report/export.h"
#include "report/export_monitoring.h"

namespace cufit::commands {
namespace {

constexpr const char* k_export_lock_name = "cufit.lock";
constexpr size_t k_most_lock = size_t{4} << 20, k_most_pylock = size_t{64} << 20;
constexpr uint32_t k_most_gpus = 1024;

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

// --lock (a folder or the file), else CUFIT_LOCK, else the working directory and those above.
Result<std::string> lock_path(const host::Host& files, const ExportRequest& request) {
  std::string path = request.lock.value_or("");
  if (path.empty()) path = files.variable("CUFIT_LOCK").value_or("");
  if (!path.empty()) return host::is_folder(path) ? path + "/" + k_export_lock_name : path;
  const std::string here = host::working_folder();
  path = host::find_upwards(here, k_export_lock_name);
  if (path.empty())
    return fail(Code::usage,
                "no cufit.lock here or in a folder above; name its folder: `--lock DIR`");
  const std::string shorter = host::relative_path(path, here);
  return shorter.empty() ? path : shorter;
}

Result<std::vector<resolve::LockClass>> exported_classes(const resolve::LockFile& lock,
                                                         const std::vector<std::string>& asked) {
  if (asked.empty()) return lock.classes;
  std::vector<std::string> names;
  for (const resolve::LockClass& one : lock.classes) names.push_back(one.name);
  for (const std::string& name : asked) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::vector<std::string> close = nearest(name, names, 1);
    return fail(Code::usage, format("`--class {}`: {} has {}{}", name, lock.path, join(names, ", "),
                                    close.empty() ? "" : format("; did you mean `{}`?", close[0])));
  }
  std::vector<resolve::LockClass> out;
  for (const resolve::LockClass& one : lock.classes)
    if (std::find(asked.begin(), asked.end(), one.name) != asked.end()) out.push_back(one);
  return out;
}

// "cu126,cpu" of an option as its words, without blanks around them.
std::vector<std::string> comma_words(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view word : split(text, ','))
    if (!trim(word).empty()) out.emplace_back(trim(word));
  return out;
}

std::vector<std::string> asked_classes(const ExportRequest& request) {
  std::vector<std::string> out = request.classes;
  for (std::string& name : comma_words(request.class_list)) out.push_back(std::move(name));
  return out;
}

// In the order of k_export_services, each once.
Result<std::vector<std::string>> asked_services(const std::string& asked) {
  std::vector<std::string> known, out;
  for (const std::string_view word : split(report::k_export_services, ' '))
    known.emplace_back(word);
  const std::vector<std::string> words = comma_words(asked);
  for (const std::string& word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      return fail(Code::usage, format("`--with {}`: {}", word, join(known, ", ")));
  for (const std::string& name : known)
    if (std::find(words.begin(), words.end(), name) != words.end()) out.push_back(name);
  return out;
}

// A pylock file that is not the one of the lock must not travel on under its name.
Result<report::ExportClass> read_class(const host::Host& files, const std::string& folder,
                                       const resolve::LockClass& one) {
  const std::string path = folder.empty() ? one.file : folder + "/" + one.file;
  CUFIT_TRY(text, host::read_locked(files, folder, {one.file, one.sha256}, k_most_pylock));
  if (sha256(text) != one.sha256)
    return fail(Code::malformed, format("{}: not the file that the lock was made with (its SHA-256 "
                                        "differs); `cufit lock --check` says what changed",
                                        path));
  CUFIT_TRY(pylock, formats::parse_pylock(text, path));
  return report::ExportClass{one, std::move(pylock)};
}

// "python:3.12-slim@sha256:<64 hex>", or a tag alone, which may be another image tomorrow.
Result<std::string> base_image(const std::optional<std::string>& asked) {
  if (!asked) return std::string();
  const std::string& base = *asked;
  constexpr std::string_view k_mark = "@sha256:";
  constexpr std::string_view k_name =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:";
  const size_t at = base.find('@');
  const std::string name = base.substr(0, at);
  const std::string digest = base.substr(std::min(at, base.size()));
  const bool digest_good =
      digest.empty() ||
      (starts_with(digest, k_mark) && digest.size() == k_mark.size() + 64 &&
       digest.find_first_not_of("0123456789abcdef", k_mark.size()) == std::string::npos);
  if (name.empty() || name[0] == '-' || name.find_first_not_of(k_name) != std::string::npos ||
      !digest_good)
    return fail(
        Code::usage,
        format("`--base {}`: an image is expected, IMAGE:TAG or IMAGE@sha256:<64 digits>", base));
  return base;
}

Result<uint32_t> gpu_number(const std::optional<std::string>& asked) {
  if (!asked) return 0u;
  const std::string& text = *asked;
  const bool digits = !text.empty() && text.size() <= 4 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long number = digits ? std::stoul(text) : 0;
  if (number < 1 || number > k_most_gpus)
    return fail(Code::usage, format("`--gpus {}`: a number from 1 to {}", text, k_most_gpus));
  return static_cast<uint32_t>(number);
}

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

Result<report::ExportView> read_view(const Context& context, const ExportRequest& request) {
  CUFIT_TRY(base, base_image(request.base));
  CUFIT_TRY(gpus, gpu_number(request.gpus));
  CUFIT_TRY(with, asked_services(request.with));
  CUFIT_TRY(path, lock_path(context.files, request));
  CUFIT_TRY(text, context.files.read_file(path, k_most_lock));
  CUFIT_TRY(lock, resolve::parse_lock(text, path));
  const std::string home = parent_folder(path_in(host::working_folder(), path));
  if (Result<void> same = verify_lock_checksum(lock, path, home); !same) return same.error();
  warn_missing_checksum(context, lock, path, home);
  CUFIT_TRY(classes, exported_classes(lock, asked_classes(request)));
  report::ExportView view{request.to,         std::move(lock),   {},   base,        gpus,
                          context.language(), context.knowledge, with, sha256(text)};
  for (const resolve::LockClass& one : classes) {
    CUFIT_TRY(read, read_class(context.files, parent_folder(path), one));
    view.classes.push_back(std::move(read));
  }
  return view;
}

// Where each file goes: one file to -o itself, unless that is a folder; several into the folder.
std::vector<std::string> places(const std::string& output,
                                const std::vector<report::ExportFile>& files) {
  const bool folder = files.size() > 1 || output.back() == '/' || host::is_folder(output);
  std::vector<std::string> out;
  for (const report::ExportFile& file : files)
    out.push_back(folder ? path_in(output, file.path) : output);
  return out;
}

Result<void> write_files(const std::vector<report::ExportFile>& files,
                         const std::vector<std::string>& paths, bool force) {
  for (const std::string& path : paths)
    if (!force && host::entry_exists(path))
      return fail(Code::usage,
                  format("`{}` exists; `--force` replaces it; nothing was written", path));
  for (size_t i = 0; i < files.size(); ++i) {
    if (const std::string folder = parent_folder(paths[i]); !folder.empty())
      if (Result<void> made = host::create_folders(folder); !made) return made;
    if (Result<void> written = host::write_whole_file(paths[i], files[i].text); !written)
      return written;
    if (files[i].executable) (void)host::let_run(paths[i]);
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

// Several files need a folder, and `-o Dockerfile` would be a folder of that name.
bool can_hold(const std::string& path, const std::vector<report::ExportFile>& files) {
  if (path.empty()) return false;
  if (files.size() < 2 || host::is_folder(path)) return true;
  return !host::path_exists(path) && file_name(path) != file_name(files.front().path);
}

Result<std::vector<std::string>> chosen_places(const ExportRequest& request,
                                               const std::vector<report::ExportFile>& files) {
  if (!can_hold(request.output, files))
    return fail(Code::usage, format("`--to {}` makes {} files: name a folder, `-o DIR`, or "
                                    "take them as `--json`",
                                    request.to, files.size()));
  return places(request.output, files);
}

int export_lock(const Context& context, const ExportRequest& request) {
  const Output& output = context.output;
  const Result<report::ExportView> view = read_view(context, request);
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
