// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export_inputs.h"

#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/sha256.h"
#include "commands/run/run_choice.h"
#include "host/files/paths.h"
#include "host/install/lock_folder.h"

namespace cufit::commands {
namespace {

constexpr const char* k_export_lock_name = "cufit.lock";
constexpr size_t k_most_lock = size_t{4} << 20, k_most_pylock = size_t{64} << 20;
constexpr uint32_t k_most_gpus = 1024;

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

}  // namespace

Result<report::ExportView> read_export_view(const Context& context, const ExportRequest& request) {
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

}  // namespace cufit::commands
