// SPDX-License-Identifier: Apache-2.0
// environment.<class>.yml and pixi.toml: the same requests, solved by conda-forge's own builds.
#include <algorithm>
#include <cctype>
#include <iterator>

#include "base/format.h"
#include "formats/python/requirement.h"
#include "formats/toml_text.h"
#include "report/export/export_values.h"

namespace cufit::report {
namespace {

struct CondaRequests {
  std::vector<std::pair<std::string, std::string>> packages;  // name, ">=1.26,<3" or "*"
  std::vector<std::string> skipped;
};

// conda reads the clauses of PEP 440 but "===", and knows neither extras nor markers nor URLs.
CondaRequests requests_of(const ExportView& view) {
  CondaRequests out;
  // conda-forge's package of that name would be a stranger's.
  const auto is_folder = [&](const std::string& name) {
    return std::any_of(view.classes.begin(), view.classes.end(), [&](const ExportClass& one) {
      const formats::PylockPackage* found = formats::find_package(one.pylock, name);
      return found != nullptr && !found->directory.empty();
    });
  };
  for (const std::string& text : view.lock.requirements) {
    const Result<formats::Requirement> requirement = formats::parse_requirement(text);
    if (!requirement) {
      out.skipped.push_back(text);
      continue;
    }
    if (requirement->name == "torch" || is_folder(requirement->name)) continue;
    bool plain =
        requirement->extras.empty() && requirement->url.empty() && requirement->marker.empty();
    std::string clauses;
    for (const formats::VersionClause& clause : requirement->clauses) {
      plain = plain && clause.op != "===" && clause.version.find('+') == std::string::npos;
      clauses += (clauses.empty() ? "" : ",") + clause.op + clause.version;
    }
    constexpr std::string_view k_plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.*<>=!~,_-";
    plain = plain && (requirement->name + clauses).find_first_not_of(k_plain) == std::string::npos;
    if (!plain) {
      out.skipped.push_back(text);
      continue;
    }
    out.packages.emplace_back(requirement->name, clauses.empty() ? "*" : clauses);
  }
  return out;
}

// The same in YAML and in TOML: nothing in it has to be escaped.
std::string quoted(const std::string& text) { return formats::toml_quoted(text); }

Result<void> no_free_threads(const ExportView& view) {
  for (const ExportClass& one : view.classes)
    if (one.lock.python.back() == 't')
      return tl::unexpected(
          fail(Code::unsupported,
               format("class `{}` is for Python {}: its builds cannot be asked for here",
                      one.lock.name, one.lock.python)));
  return {};
}

// What pixi's manifest takes for a platform of the workspace: the name is also that of a [target].
Result<void> platform_names(const ExportView& view) {
  constexpr std::string_view k_families[] = {"linux", "macos", "osx", "unix", "win"};
  for (const ExportClass& one : view.classes) {
    const std::string& name = one.lock.name;
    const bool letters = std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                         name.back() != '-' && name.find('_') == std::string::npos;
    if (letters &&
        std::find(std::begin(k_families), std::end(k_families), name) == std::end(k_families))
      continue;
    return tl::unexpected(
        fail(Code::unsupported,
             format("class `{}` cannot be the name of a pixi platform: that begins with a letter, "
                    "goes on with letters, digits and `-`, and is no family (linux, macos, osx, "
                    "unix, win)",
                    name)));
  }
  return {};
}

}  // namespace

ExportFiles export_conda(const ExportView& view) {
  if (Result<void> usual = no_free_threads(view); !usual) return usual.error();
  const CondaRequests requests = requests_of(view);
  std::vector<ExportFile> out;
  for (const ExportClass& one : view.classes) {
    Scope scope = common_scope(view);
    scope.values.merge(class_scope(one, view).values);
    scope.values["skipped"] = join(requests.skipped, "; ");
    if (Result<void> added = add_folders(view, scope); !added) return added.error();
    scope.lists["dependency"] = {};
    for (const auto& [name, clauses] : requests.packages) {
      scope.lists["dependency"].emplace_back();
      scope.lists["dependency"].back().values["text"] =
          quoted(clauses == "*" ? name : name + clauses);
    }
    out.push_back(
        {"environment." + one.lock.name + ".yml", filled("environment.yml", scope, view)});
  }
  return out;
}

ExportFiles export_pixi(const ExportView& view) {
  if (Result<void> usual = no_free_threads(view); !usual) return usual.error();
  if (Result<void> names = platform_names(view); !names) return names.error();
  const CondaRequests requests = requests_of(view);
  // The row without CUDA fits every machine: it goes last.
  ExportView ordered = view;
  std::stable_partition(ordered.classes.begin(), ordered.classes.end(),
                        [](const ExportClass& one) { return one.lock.wheel.cuda.has_value(); });
  Scope scope = common_scope(ordered);
  scope.values["skipped"] = join(requests.skipped, "; ");
  if (Result<void> added = add_folders(view, scope); !added) return added.error();
  scope.lists["dependency"] = {};
  for (const auto& [name, clauses] : requests.packages) {
    scope.lists["dependency"].emplace_back();
    scope.lists["dependency"].back().values["text"] = quoted(name) + " = " + quoted(clauses);
  }
  for (size_t i = 0; i < ordered.classes.size(); ++i) {
    const resolve::Wheel& wheel = ordered.classes[i].lock.wheel;
    const char* subdir = wheel.platform == "linux_aarch64" ? "linux-aarch64" : "linux-64";
    std::string cuda;
    if (wheel.cuda) {
      const Coverage coverage = coverage_of(wheel, view.knowledge);
      const std::string floor = family_floor_text(*wheel.cuda);
      cuda = coverage.by_code.empty() ? format(", cuda = \"{}\"", floor)
                                      : format(", cuda = {{ driver = \"{}\", arch = \"{}\" }}",
                                               floor, coverage.by_code.front().text());
    }
    scope.lists["class"][i].values["platform_row"] = format(
        "{{ name = \"{}\", platform = \"{}\"{} }}", ordered.classes[i].lock.name, subdir, cuda);
  }
  return std::vector<ExportFile>{{"pixi.toml", filled("pixi.toml", scope, ordered)}};
}

}  // namespace cufit::report
