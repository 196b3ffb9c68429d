// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export.h"
#include "commands/run/run_choice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/files/atomic_write.h"
#include "host/files/host.h"
#include "host/process/this_process.h"
#include "report/export.h"

namespace cufit::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_export_lock_name = "cufit.lock";
constexpr size_t k_most_lock = size_t{4} << 20, k_most_pylock = size_t{64} << 20;
constexpr uint32_t k_most_gpus = 1024;

constexpr Option k_export_options[] = {
    {"--to", "FORMAT", "", false, report::k_export_formats},
    {"--lock", "DIR", "", false, ""},
    {"--class", "NAME", "", true, ""},
    {"-o,--output", "PATH", "", false, ""},
    {"--base", "IMAGE@DIGEST", "", false, ""},
    {"--gpus", "N", "", false, ""},
    {"--force", "", "", false, ""},
    {"--json", "", "", false, ""},
};

// --lock (a folder or the file), else CUFIT_LOCK, else the working directory and those above.
Result<std::string> lock_path(const Arguments& arguments) {
  std::string path = arguments.get("lock");
  if (path.empty()) path = host::process_variable("CUFIT_LOCK");
  if (!path.empty()) {
    std::error_code ignored;
    return fs::is_directory(path, ignored) ? path + "/" + k_export_lock_name : path;
  }
  path = host::find_upwards(host::working_folder(), k_export_lock_name);
  if (path.empty())
    return fail(Code::usage,
                "no cufit.lock here or in a folder above; name its folder: `--lock DIR`");
  std::error_code failed;
  const fs::path shorter = fs::relative(path, failed);
  return failed ? path : shorter.string();
}

Result<std::vector<resolve::LockClass>> exported_classes(const resolve::LockFile& lock,
                                                         const Arguments& arguments) {
  const std::vector<std::string> asked = arguments.all("class");
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

// A pylock file that is not the one of the lock must not travel on under its name.
Result<report::ExportClass> read_class(const host::Host& machine, const std::string& folder,
                                       const resolve::LockClass& one) {
  const std::string path = folder.empty() ? one.file : folder + "/" + one.file;
  CUFIT_TRY(text, machine.read_file(path, k_most_pylock));
  if (sha256(text) != one.sha256)
    return fail(Code::malformed, format("{}: not the file that the lock was made with (its SHA-256 "
                                        "differs); `cufit lock --check` says what changed",
                                        path));
  CUFIT_TRY(pylock, formats::parse_pylock(text, path));
  return report::ExportClass{one, std::move(pylock)};
}

// "python:3.12-slim@sha256:<64 hex>": a tag alone may be another image tomorrow.
Result<std::string> base_image(const Arguments& arguments) {
  const std::string base = arguments.get("base");
  if (!arguments.has("base")) return base;
  constexpr std::string_view k_mark = "@sha256:";
  constexpr std::string_view k_name =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:";
  const size_t at = base.find(k_mark);
  const std::string name = base.substr(0, at);
  const std::string digest = at == std::string::npos ? "" : base.substr(at + k_mark.size());
  if (name.empty() || name[0] == '-' || name.find_first_not_of(k_name) != std::string::npos ||
      digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    return fail(
        Code::usage,
        format("`--base {}`: an image by digest is expected, IMAGE@sha256:<64 digits>", base));
  return base;
}

Result<uint32_t> gpu_number(const Arguments& arguments) {
  if (!arguments.has("gpus")) return 0u;
  const std::string text = arguments.get("gpus");
  const bool digits = !text.empty() && text.size() <= 4 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const unsigned long number = digits ? std::stoul(text) : 0;
  if (number < 1 || number > k_most_gpus)
    return fail(Code::usage, format("`--gpus {}`: a number from 1 to {}", text, k_most_gpus));
  return static_cast<uint32_t>(number);
}

// An option that a format has no place for is a misunderstanding, not a detail.
Result<void> check_options(const Arguments& arguments) {
  const std::string to = arguments.get("to");
  if (to.empty())
    return tl::unexpected(fail(
        Code::usage, format("`cufit export` needs `--to FORMAT`: {}", report::k_export_formats)));
  struct Place {
    const char* option;
    std::vector<std::string> formats;
  };
  const Place places[] = {{"base", {"dockerfile", "apptainer"}},
                          {"gpus", {"compose", "devcontainer", "k8s", "slurm"}}};
  for (const Place& place : places) {
    const bool fits =
        std::find(place.formats.begin(), place.formats.end(), to) != place.formats.end();
    if (arguments.has(place.option) && !fits)
      return tl::unexpected(
          fail(Code::usage, format("`--{}` is for {}", place.option, join(place.formats, ", "))));
  }
  return {};
}

Result<report::ExportView> read_view(const Arguments& arguments) {
  if (Result<void> good = check_options(arguments); !good) return good.error();
  CUFIT_TRY(base, base_image(arguments));
  CUFIT_TRY(gpus, gpu_number(arguments));
  CUFIT_TRY(path, lock_path(arguments));
  const host::RealHost machine;
  CUFIT_TRY(text, machine.read_file(path, k_most_lock));
  CUFIT_TRY(lock, resolve::parse_lock(text, path));
  const std::string home = fs::absolute(path).parent_path().string();
  if (Result<void> same = verify_lock_checksum(lock, path, home); !same) return same.error();
  warn_missing_checksum(legacy_context(), lock, path, home);
  CUFIT_TRY(classes, exported_classes(lock, arguments));
  report::ExportView view{arguments.get("to"),
                          std::move(lock),
                          {},
                          base,
                          gpus,
                          language(arguments),
                          knowledge::Knowledge::builtin()};
  const std::string folder = fs::path(path).parent_path().string();
  for (const resolve::LockClass& one : classes) {
    CUFIT_TRY(read, read_class(machine, folder, one));
    view.classes.push_back(std::move(read));
  }
  return view;
}

// Where each file goes: one file to -o itself, unless that is a folder; several into the folder.
std::vector<std::string> places(const std::string& output,
                                const std::vector<report::ExportFile>& files) {
  std::error_code ignored;
  const bool folder = files.size() > 1 || output.back() == '/' || fs::is_directory(output, ignored);
  std::vector<std::string> out;
  for (const report::ExportFile& file : files)
    out.push_back(folder ? (fs::path(output) / file.path).string() : output);
  return out;
}

Result<void> write_files(const std::vector<report::ExportFile>& files,
                         const std::vector<std::string>& paths, bool force) {
  std::error_code failed;
  for (const std::string& path : paths)
    if (!force && fs::exists(fs::symlink_status(path, failed)))
      return tl::unexpected(fail(
          Code::usage, format("`{}` exists; `--force` replaces it; nothing was written", path)));
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path folder = fs::path(paths[i]).parent_path();
    if (!folder.empty() && !fs::create_directories(folder, failed) && failed)
      return tl::unexpected(fail(Code::io, format("`{}`: {}", folder.string(), failed.message())));
    if (Result<void> written = host::write_whole_file(paths[i], files[i].text); !written)
      return written;
    if (files[i].executable)
      fs::permissions(paths[i],
                      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                      fs::perm_options::add, failed);
  }
  return {};
}

// The lock and its pylock files are what was exported from: never what is written over.
Result<void> spare_lock(const std::vector<std::string>& paths, const report::ExportView& view) {
  std::error_code failed;
  const fs::path folder = fs::path(view.lock.path).parent_path();
  std::vector<fs::path> sources{view.lock.path};
  for (const resolve::LockClass& one : view.lock.classes) sources.push_back(folder / one.file);
  for (const std::string& path : paths)
    for (const fs::path& source : sources)
      if (fs::exists(path, failed) && fs::equivalent(path, source, failed))
        return tl::unexpected(
            fail(Code::usage, format("`{}` belongs to the lock that is exported; nothing was "
                                     "written",
                                     path)));
  return {};
}

// What the build of an image copies lies in the lock's folder, perhaps not beside the file written.
void tell_where_sources_are(const report::ExportView& view, const std::string& written) {
  if (view.to != "dockerfile" && view.to != "apptainer") return;
  const auto folder_of = [](const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    return folder.empty() ? fs::path(".") : folder;
  };
  const fs::path from = folder_of(view.lock.path), to = folder_of(written);
  std::error_code failed;
  if (fs::equivalent(from, to, failed)) return;
  std::string command = "cp";
  if (view.classes.size() == view.lock.classes.size()) command += " " + shell_word(view.lock.path);
  for (const report::ExportClass& one : view.classes)
    command += " " + shell_word((from / one.lock.file).string());
  print_error(format("the image is built from files of the lock's folder: `{} {}`", command,
                     shell_word(to.string())));
}

}  // namespace

std::span<const Option> export_options() { return k_export_options; }

int run_export(const Arguments& arguments) {
  const Result<report::ExportView> view = read_view(arguments);
  if (!view) return exit_code_for(view.error());
  const Result<std::vector<report::ExportFile>> files = report::export_files(*view);
  if (!files) return exit_code_for(files.error());
  const std::string output = arguments.get("output");
  const bool json = arguments.has("json");
  if (output.empty() && json) return print(report::export_json(*view, *files), k_ok);
  if (output.empty() && files->size() == 1) return print(files->front().text, k_ok);
  std::error_code ignored;
  const bool is_file = fs::exists(output, ignored) && !fs::is_directory(output, ignored);
  // `-o Dockerfile` for two files would be a folder of that name.
  const bool is_name = files->size() > 1 && !fs::is_directory(output, ignored) &&
                       fs::path(output).filename() == fs::path(files->front().path).filename();
  if (output.empty() || is_name || (files->size() > 1 && is_file))
    return exit_code_for(
        fail(Code::usage, format("`--to {}` makes {} files: name a folder, `-o DIR`, or "
                                 "take them as `--json`",
                                 view->to, files->size())));
  const std::vector<std::string> paths = places(output, *files);
  if (Result<void> spared = spare_lock(paths, *view); !spared) return exit_code_for(spared.error());
  if (Result<void> written = write_files(*files, paths, arguments.has("force")); !written)
    return exit_code_for(written.error());
  tell_where_sources_are(*view, paths.front());
  return print(json ? report::export_json(*view, *files) : join(paths, "\n") + "\n", k_ok);
}

}  // namespace cufit::commands
