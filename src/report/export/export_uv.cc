// SPDX-License-Identifier: Apache-2.0
// pyproject.toml for `uv sync`: one dependency group per class, its own index where torch comes
// from one.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "formats/python/requirement.h"
#include "formats/toml_text.h"
#include "report/export/export_values.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using formats::toml_quoted;

struct Pin {
  std::string package, text;  // "torch", "torch==2.14.1+cu126"
  std::string index, url;     // where it comes from, if not from the default index
};

bool has_pin(const std::vector<Pin>& pins, const std::string& package) {
  return std::any_of(pins.begin(), pins.end(),
                     [&](const Pin& pin) { return pin.package == package; });
}

// The index or, where the pylock file gives the wheel's address alone, "scheme://host" of it; empty
// = not told.
std::string origin_of(const formats::PylockPackage& package, const ExportClass& one) {
  if (!package.index.empty()) return without_password(package.index);
  const formats::PylockFile* file = wheel_with_url(package, one);
  if (file == nullptr) return {};
  const std::string url = without_password(file->url);
  return url.substr(0, url.find('/', url.find("://") + 3));
}

// Where most packages without a local version come from: in all likelihood a default index.
std::string common_origin(const ExportClass& one) {
  std::map<std::string, size_t> counts;
  for (const formats::PylockPackage& package : one.pylock.packages)
    if (!is_local(package)) ++counts[origin_of(package, one)];
  counts.erase("");
  std::string most;
  for (const auto& [origin, count] : counts)
    if (most.empty() || count > counts[most]) most = origin;
  return most;
}

// A package of another place than the default index must be bound to it: the default index may have
// a stranger's package of that name. A named index is bound in any case.
bool needs_source(const formats::PylockPackage& package, const ExportClass& one) {
  if (is_local(package) || !package.index.empty()) return true;
  const std::string origin = origin_of(package, one);
  return !origin.empty() && origin != common_origin(one);
}

// Whom nobody asked for by name, and who would be looked up on the default index.
bool comes_from_elsewhere(const formats::PylockPackage& package, const ExportClass& one) {
  if (is_local(package)) return true;
  const formats::PylockPackage* torch = formats::find_package(one.pylock, "torch");
  const std::string origin = origin_of(package, one);
  return !origin.empty() && origin != common_origin(one) &&
         (torch == nullptr || origin != origin_of(*torch, one));
}

Result<void> add_pin(const ExportClass& one, const std::string& package, const std::string& extras,
                     std::vector<Pin>& pins) {
  const formats::PylockPackage* found = formats::find_package(one.pylock, package);
  if (found == nullptr || found->version.empty() || has_pin(pins, package)) return {};
  Pin pin{package, package + extras + "==" + found->version, "", ""};
  if (needs_source(*found, one)) {
    const formats::PylockFile* file = wheel_with_url(*found, one);
    pin.index = without_password(found->index);
    if (pin.index.empty() && file != nullptr) pin.url = without_password(file->url);
    if (pin.index.empty() && pin.url.empty())
      return tl::unexpected(fail(
          Code::unsupported,
          format("{}: package `{}`: neither its index nor a URL is told", one.lock.file, package)));
  }
  pins.push_back(std::move(pin));
  return {};
}

// What was asked for, at the versions of the lock; torch first, and all that comes from its index.
Result<std::vector<Pin>> pins_of(const ExportClass& one, const resolve::LockFile& lock) {
  std::vector<Pin> pins;
  std::vector<std::pair<std::string, std::string>> wanted{{"torch", ""}};
  for (const std::string& text : lock.requirements) {
    const Result<formats::Requirement> requirement = formats::parse_requirement(text);
    if (!requirement || !requirement->url.empty()) continue;
    wanted.emplace_back(requirement->name, requirement->extras.empty()
                                               ? ""
                                               : format("[{}]", join(requirement->extras, ",")));
  }
  for (const formats::PylockPackage& package : one.pylock.packages)
    if (comes_from_elsewhere(package, one)) wanted.emplace_back(package.name, "");
  for (const auto& [package, extras] : wanted) {
    if (Result<void> added = add_pin(one, package, extras, pins); !added) return added.error();
  }
  return pins;
}

// ">=3.10,<3.13" of the classes' 3.10 and 3.12.
std::string python_range(const ExportView& view) {
  std::optional<Version> least, most;
  for (const ExportClass& one : view.classes) {
    const std::optional<Version> python = parse_version(one.lock.python);
    if (!least || *python < *least) least = python;
    if (!most || *most < *python) most = python;
  }
  return format(">={},<{}.{}", least->text(), most->part(0), most->part(1) + 1);
}

std::string environments(const ExportView& view) {
  std::vector<std::string> out;
  for (const ExportClass& one : view.classes) {
    const std::string text = toml_quoted(format(
        "sys_platform == 'linux' and platform_machine == '{}'", one.lock.wheel.platform.substr(6)));
    if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(text);
  }
  return join(out, ", ");
}

using Sources = std::vector<std::pair<std::string, std::string>>;  // package, its inline tables

void add_source(const Pin& pin, const std::string& index, const std::string& group,
                Sources& sources) {
  const std::string where = pin.index.empty() ? format("url = {}", toml_quoted(pin.url))
                                              : format("index = {}", toml_quoted(index));
  const std::string row = format("{{ {}, group = {} }}", where, toml_quoted(group));
  for (auto& [package, list] : sources)
    if (package == toml_quoted(pin.package)) {
      list += ",\n  " + row;
      return;
    }
  sources.emplace_back(toml_quoted(pin.package), row);
}

// "torch-cu126" for the index that torch comes from, else "index2-cu126". `indexes` gets it.
std::string index_name(const Pin& pin, const std::vector<Pin>& pins, const ExportClass& one,
                       std::vector<std::string>& indexes) {
  if (pin.index.empty()) return {};
  auto at = std::find(indexes.begin(), indexes.end(), pin.index);
  if (at == indexes.end()) at = indexes.insert(indexes.end(), pin.index);
  if (pin.index == pins.front().index) return "torch-" + one.lock.name;
  return format("index{}-{}", static_cast<size_t>(at - indexes.begin()) + 1, one.lock.name);
}

}  // namespace

ExportFiles export_uv(const ExportView& view) {
  Scope scope = common_scope(view);
  Sources sources;
  std::string conflicts;
  scope.lists["index"] = {};
  if (Result<void> added = add_folders(view, scope); !added) return added.error();
  for (size_t i = 0; i < view.classes.size(); ++i) {
    const ExportClass& one = view.classes[i];
    Scope& row = scope.lists["class"][i];
    std::vector<std::string> indexes;  // of this class
    CUFIT_TRY(pins, pins_of(one, view.lock));
    if (pins.empty() || pins[0].package != "torch")
      return fail(Code::unsupported, format("{}: torch is not among its packages", one.lock.file));
    row.lists["pin"] = {};
    for (const Pin& pin : pins) {
      row.lists["pin"].emplace_back();
      row.lists["pin"].back().values["text"] = toml_quoted(pin.text);
      if (!pin.index.empty() || !pin.url.empty())
        add_source(pin, index_name(pin, pins, one, indexes), one.lock.name, sources);
    }
    for (const std::string& index : indexes) {
      Pin of_index;
      of_index.index = index;
      scope.lists["index"].emplace_back();
      scope.lists["index"].back().values = {{"name", index_name(of_index, pins, one, indexes)},
                                            {"url", toml_quoted(index)}};
    }
    conflicts += format("{}{{ group = {} }}", i == 0 ? "" : ", ", toml_quoted(one.lock.name));
  }
  scope.lists["source"] = {};
  for (const auto& [package, list] : sources) {
    scope.lists["source"].emplace_back();
    scope.lists["source"].back().values = {{"package", package}, {"rows", list}};
  }
  scope.values["conflicts"] = view.classes.size() > 1 ? conflicts : "";
  scope.values["requires_python"] = python_range(view);
  scope.values["environments"] = environments(view);
  return std::vector<ExportFile>{{"pyproject.toml", filled("pyproject.toml", scope, view)}};
}

}  // namespace cufit::report
