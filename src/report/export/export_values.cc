// SPDX-License-Identifier: Apache-2.0
#include "report/export/export_values.h"

#include <algorithm>

#include "base/format.h"
#include "checks/code_match.h"
#include "formats/python/requirement.h"
#include "formats/python/wheel_name.h"
#include "report/report.h"
#include "report/terminal/width.h"
#include "resolve/wheel/target.h"

namespace cufit::report {
namespace {

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool made_of(const std::string& text, std::string_view others) {
  return !text.empty() && text.size() <= 200 && letter_or_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return letter_or_digit(c) || others.find(c) != std::string_view::npos;
         });
}

// "3.12", "3.14t"
bool is_python(const std::string& text) {
  const auto version = parse_version(text);
  if (!version || version->parts.size() != 2) return false;
  return text == version->text() || text == version->text() + "t";
}

// What makes the image of just these classes; with a lock of its own there are two files.
std::string dockerfile_command(const ExportView& view) {
  std::string out = "cufit export --to dockerfile";
  if (all_classes(view)) return out + " -o Dockerfile";
  for (const ExportClass& one : view.classes) out += " --class " + one.lock.name;
  return out + " -o .";
}

std::string variant_text(const resolve::LockClass& one, const ExportView& view) {
  if (!one.wheel.cuda) return message(view.knowledge, "export.variant_cpu", view.lang);
  const std::optional<Version> floor = driver_floor(one.wheel, view.knowledge);
  std::map<std::string, std::string> args{{"cuda", one.wheel.cuda->text()}};
  if (!floor) return message(view.knowledge, "export.variant_cuda_any", view.lang, args);
  args["driver"] = resolve::driver_text(*floor);
  return message(view.knowledge, "export.variant_cuda", view.lang, args);
}

}  // namespace

Result<void> check_plain(const ExportView& view) {
  for (const ExportClass& one : view.classes) {
    const resolve::LockClass& lock = one.lock;
    const auto wrong = [&](const char* key, const std::string& value) {
      return tl::unexpected(
          fail(Code::malformed, format("{}: class `{}`: `{}` cannot be `{}`", view.lock.path,
                                       printable(lock.name), key, printable(value))));
    };
    if (!made_of(lock.name, "-_")) return wrong("name", lock.name);
    if (!made_of(lock.file, "-_.")) return wrong("file", lock.file);
    if (!made_of(lock.wheel.tag, "-_.")) return wrong("tag", lock.wheel.tag);
    if (!made_of(lock.wheel.torch, ".+!-_") || !formats::parse_python_version(lock.wheel.torch))
      return wrong("torch", lock.wheel.torch);
    if (!is_python(lock.python)) return wrong("python", lock.python);
    if (lock.wheel.platform != "linux_x86_64" && lock.wheel.platform != "linux_aarch64")
      return wrong("platform", lock.wheel.platform);
  }
  return {};
}

bool all_classes(const ExportView& view) { return view.classes.size() == view.lock.classes.size(); }

bool has_cpu(const ExportView& view) {
  return std::any_of(view.classes.begin(), view.classes.end(),
                     [](const ExportClass& one) { return !one.lock.wheel.cuda; });
}

bool has_gpu(const ExportView& view) {
  return std::any_of(view.classes.begin(), view.classes.end(),
                     [](const ExportClass& one) { return one.lock.wheel.cuda.has_value(); });
}

Scope class_scope(const ExportClass& one, const ExportView& view) {
  const resolve::LockClass& lock = one.lock;
  Scope scope;
  scope.values = {
      {"name", lock.name},
      {"file", lock.file},
      {"tag", lock.wheel.tag},
      {"torch", lock.wheel.torch},
      {"python", lock.python},
      {"variant", variant_text(lock, view)},
      {"serves", lock.serves.empty() ? message(view.knowledge, "export.serves_none", view.lang)
                                     : join(lock.serves, "; ")},
      {"cuda", lock.wheel.cuda ? lock.wheel.cuda->text() : ""},
      {"is_cpu", lock.wheel.cuda ? "" : "yes"}};
  if (lock.wheel.cuda) {
    const uint32_t major = lock.wheel.cuda->part(0);
    scope.values["cuda_floor"] = family_floor_text(*lock.wheel.cuda);
    scope.values["cuda_range"] = format(">={},<{}", major, major + 1);
  }
  return scope;
}

Scope common_scope(const ExportView& view) {
  Scope scope;
  std::vector<std::string> names;
  for (const ExportClass& one : view.classes) {
    names.push_back(one.lock.name);
    scope.lists["class"].push_back(class_scope(one, view));
  }
  scope.values["version"] = CUFIT_VERSION;
  scope.values["classes"] = join(names, ", ");
  scope.values["dockerfile_command"] = dockerfile_command(view);
  scope.values["gpu"] = has_gpu(view) ? "yes" : "";
  scope.values["no_gpu"] = has_gpu(view) ? "" : "yes";
  scope.values["cpu"] = has_cpu(view) ? "yes" : "";
  scope.values["no_cpu"] = has_cpu(view) ? "" : "yes";
  return scope;
}

Result<void> add_folders(const ExportView& view, Scope& scope) {
  std::vector<Scope>& rows = scope.lists["folder"];
  for (const ExportClass& one : view.classes)
    for (const formats::PylockPackage& package : one.pylock.packages) {
      if (package.directory.empty()) continue;
      std::string path = package.directory;
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      if (starts_with(path, "./")) path = path.substr(2);
      const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
        return letter_or_digit(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == '+';
      });
      if (!plain || path.empty() || path[0] == '-' || !made_of(package.name, "-"))
        return tl::unexpected(
            fail(Code::unsupported,
                 format("{}: package `{}`: its folder `{}` cannot be written", one.lock.file,
                        printable(package.name), printable(package.directory))));
      if (std::any_of(rows.begin(), rows.end(),
                      [&](const Scope& row) { return row.values.at("package") == package.name; }))
        continue;
      const bool bare = path[0] != '.' && path[0] != '/';
      rows.emplace_back();
      rows.back().values = {
          {"package", package.name},
          {"path", path},
          {"argument", (package.editable ? "-e " : "") + std::string(bare ? "./" : "") + path}};
    }
  scope.values["folders"] = rows.empty() ? "" : "yes";
  return {};
}

Result<void> folders_are_inside(const Scope& scope, const ExportView& view) {
  for (const Scope& row : scope.lists.at("folder")) {
    const std::string& path = row.values.at("path");
    if (path[0] != '/' && path != ".." && !contains("/" + path + "/", "/../")) continue;
    return tl::unexpected(
        fail(Code::unsupported,
             format("{}: package `{}`: its folder `{}` lies outside of the lock's, and an image is "
                    "built from what is inside: move it there, then lock again",
                    view.lock.path, row.values.at("package"), path)));
  }
  return {};
}

std::string filled(const char* name, const Scope& scope, const ExportView& view) {
  const std::string_view text = export_template(name);
  CUFIT_CHECK(!text.empty(), "no such template");
  return fill_template(text, scope, view.lang, view.knowledge);
}

std::string family_floor_text(const Version& cuda) { return format("{}.0", cuda.part(0)); }

std::string required_cuda(const ExportView& view) {
  std::optional<Version> lowest;
  for (const ExportClass& one : view.classes) {
    if (!one.lock.wheel.cuda) return {};
    if (!lowest || *one.lock.wheel.cuda < *lowest) lowest = one.lock.wheel.cuda;
  }
  return lowest ? "cuda>=" + family_floor_text(*lowest) : std::string();
}

std::optional<Version> driver_floor(const resolve::Wheel& wheel,
                                    const knowledge::Knowledge& knowledge) {
  if (wheel.driver_min) return wheel.driver_min;
  return wheel.cuda ? knowledge.family_floor(wheel.cuda->part(0)) : std::nullopt;
}

std::vector<ComputeCapability> known_capabilities(std::string_view platform,
                                                  const knowledge::Knowledge& knowledge) {
  std::vector<ComputeCapability> out;
  for (const knowledge::Gpu& gpu : knowledge.gpus) {
    // Boards with the GPU on the processor's chip are never in an x86 machine.
    if (gpu.segment == "embedded" && platform == "linux_x86_64") continue;
    const auto cc = parse_compute_capability(gpu.cc);
    if (cc && std::find(out.begin(), out.end(), *cc) == out.end()) out.push_back(*cc);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Coverage coverage_of(const resolve::Wheel& wheel, const knowledge::Knowledge& knowledge) {
  Coverage out;
  for (const ComputeCapability& cc : known_capabilities(wheel.platform, knowledge)) {
    const checks::Match match = checks::match_code(wheel.code, cc, std::nullopt, knowledge).match;
    if (match == checks::Match::cubin) out.by_code.push_back(cc);
    if (match == checks::Match::ptx || match == checks::Match::ptx_unknown)
      out.by_ptx.push_back(cc);
  }
  return out;
}

std::string without_password(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const size_t begin = scheme + 3;
  const size_t path = url.find_first_of("/?#", begin);
  const size_t at = url.rfind('@', path == std::string::npos ? path : path - 1);
  if (at == std::string::npos || at < begin) return url;
  return url.substr(0, begin) + url.substr(at + 1);
}

bool is_url_word(const std::string& url) {
  constexpr std::string_view k_forbidden = "\\\"'`${}<>#";
  return contains(url, "://") && url.size() <= 4096 && letter_or_digit(url[0]) &&
         std::all_of(url.begin(), url.end(), [&](unsigned char c) {
           return c > ' ' && c < 0x7f &&
                  k_forbidden.find(static_cast<char>(c)) == std::string::npos;
         });
}

const formats::PylockFile* wheel_with_url(const formats::PylockPackage& package,
                                          const ExportClass& one) {
  const Version any_glibc{{99, 0}};  // the lock was made for its platform; nothing to judge here
  for (const formats::PylockFile& file : package.wheels) {
    const auto name = formats::parse_wheel_name(file.name);
    if (name && is_url_word(file.url) &&
        formats::fits(*name, one.lock.python, one.lock.wheel.platform.substr(6), any_glibc))
      return &file;
  }
  return nullptr;
}

bool is_local(const formats::PylockPackage& package) {
  return package.version.find('+') != std::string::npos;
}

Result<void> one_platform(const ExportView& view) {
  const resolve::LockClass& first = view.classes.front().lock;
  for (const ExportClass& one : view.classes)
    if (one.lock.wheel.platform != first.wheel.platform)
      return tl::unexpected(fail(
          Code::unsupported,
          format("class `{}` is for {} and `{}` for {}: one image holds one of them; choose with "
                 "`--class`",
                 first.name, first.wheel.platform, one.lock.name, one.lock.wheel.platform)));
  return {};
}

bool one_python(const ExportView& view) {
  const std::string& python = view.classes.front().lock.python;
  return python.back() != 't' &&
         std::all_of(view.classes.begin(), view.classes.end(),
                     [&](const ExportClass& one) { return one.lock.python == python; });
}

std::string base_image(const ExportView& view) {
  if (!view.base.empty()) return view.base;
  std::string python = view.classes.front().lock.python;
  if (python.back() == 't') python.pop_back();
  return format("python:{}-slim", python);
}

}  // namespace cufit::report
