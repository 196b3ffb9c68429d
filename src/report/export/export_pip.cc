// SPDX-License-Identifier: Apache-2.0
// requirements.<class>.txt: every package of the pylock file with its version and hashes.
#include <algorithm>

#include "base/format.h"
#include "formats/python/requirement.h"
#include "report/export/export_values.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

// A hash as pip writes it, or nothing: pip knows these three.
std::string pip_hash(const formats::PylockFile& file) {
  for (const char* algorithm : {"sha256", "sha512", "sha384"})
    for (const auto& [name, value] : file.hashes) {
      if (name != algorithm || value.empty() || value.size() > 128) continue;
      if (value.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
      return name + ":" + value;
    }
  return {};
}

struct Written {
  std::string text;
  bool built = false;  // from source: no wheel is there
};

Result<Written> written(const formats::PylockPackage& package, const ExportClass& one) {
  const auto wrong = [&](const std::string& why) {
    return fail(Code::unsupported,
                format("{}: package `{}`: {}", one.lock.file, printable(package.name), why));
  };
  const std::string name = formats::normalised_name(package.name);
  const Result<formats::Requirement> parsed = formats::parse_requirement(name);
  if (name != package.name || !parsed || parsed->name != name || parsed->text != name)
    return wrong("not a package's name");
  if (!package.vcs.empty())
    return wrong(
        "a repository has no hash, so pip cannot check it: lock without it, and install it by "
        "itself with `pip install --no-deps`");
  Written out;
  std::vector<std::string> hashes;
  std::vector<const formats::PylockFile*> files;
  for (const formats::PylockFile& wheel : package.wheels) files.push_back(&wheel);
  if (package.archive) files = {&*package.archive};
  if (files.empty() && package.sdist) {
    files = {&*package.sdist};
    out.built = true;
  }
  for (const formats::PylockFile* file : files) {
    const std::string hash = pip_hash(*file);
    if (hash.empty()) return wrong("a file without a hash that pip knows (sha256, sha384, sha512)");
    if (file->url.empty()) return wrong("a local file; pip takes it from no index");
    if (std::find(hashes.begin(), hashes.end(), hash) == hashes.end()) hashes.push_back(hash);
  }
  if (hashes.empty()) return wrong("no file to install");
  const auto version = formats::parse_python_version(package.version);
  constexpr std::string_view k_plain =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+!-_";
  if (!package.archive &&
      (!version || package.version.find_first_not_of(k_plain) != std::string::npos))
    return wrong(format("`{}` is no version", printable(package.version)));
  out.text = name + "==" + package.version;
  // By its address, so that no other index has to be asked.
  if (package.archive || is_local(package)) {
    const formats::PylockFile* file =
        package.archive ? &*package.archive : wheel_with_url(package, one);
    if (file == nullptr || !is_url_word(file->url))
      return wrong("it has no URL that can be written");
    out.text = name + " @ " + without_password(file->url);
    hashes = {pip_hash(*file)};
  }
  for (const std::string& hash : hashes) out.text += " \\\n    --hash=" + hash;
  return out;
}

}  // namespace

ExportFiles export_pip(const ExportView& view) {
  std::vector<ExportFile> out;
  for (const ExportClass& one : view.classes) {
    Scope scope = common_scope(view);
    scope.values.merge(class_scope(one, view).values);
    const std::string path = "requirements." + one.lock.name + ".txt";
    scope.values["file"] = path;
    const std::string machine = one.lock.wheel.platform.substr(6);  // after "linux_"
    if (Result<void> added = add_folders(view, scope); !added) return added.error();
    bool only_wheels = true, by_address = false;
    for (const formats::PylockPackage& package : one.pylock.packages) {
      if (!package.directory.empty()) continue;  // a folder has no hash: a step of its own
      if (!formats::applies(package, one.lock.python, machine)) continue;
      CUFIT_TRY(line, written(package, one));
      only_wheels = only_wheels && !line.built;
      by_address = by_address || is_local(package);
      scope.lists["package"].emplace_back();
      scope.lists["package"].back().values["text"] = std::move(line.text);
    }
    if (scope.lists["package"].empty())
      return fail(Code::unsupported, format("{}: no package for Python {} on {}", one.lock.file,
                                            one.lock.python, one.lock.wheel.platform));
    scope.values["only_binary"] = only_wheels ? "yes" : "";
    scope.values["by_address"] = by_address ? "yes" : "";
    out.push_back({path, filled("requirements.txt", scope, view)});
  }
  return out;
}

}  // namespace cufit::report
