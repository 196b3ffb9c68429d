// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_inputs.h"

#include <set>

#include "base/format.h"
#include "base/path.h"
#include "formats/python/marker.h"
#include "formats/toml_text.h"

namespace cufit::commands {
namespace {

constexpr size_t k_lock_inputs_most_bytes = 4u << 20;
constexpr int k_deepest = 16;  // requirements files that name each other

bool is_project(const std::string& path) {
  return ends_with(path, ".toml") && file_name(path) != ".toml";
}

class Inputs {
 public:
  // Which machine a marker is about differs from target to target: resolve() judges that.
  Inputs(const host::Host& host, const std::string& python, LockInputs& out)
      : host_(host), out_(out), environment_{python, ""} {}

  Result<void> add_file(const std::string& path, bool constraints, int depth) {
    if (depth > k_deepest) return fail(Code::malformed, format("{}: nested too deeply", path));
    if (!seen_.insert(normal_path(path)).second) return {};
    Result<std::string> text = host_.read_file(path, k_lock_inputs_most_bytes);
    if (!text)
      return fail(text.error().code == Code::not_found ? Code::usage : text.error().code,
                  text.error().what);
    if (is_project(path)) return add_project(*text, path);
    CUFIT_TRY(file, formats::parse_requirements_file(*text, path));
    for (formats::Requirement& one : file.requirements) add(std::move(one), !constraints);
    for (const std::string& option : file.options) {
      const auto [name, value] = option_of(option);
      const bool nested = name == "-r" || name == "--requirement";
      const bool limits = name == "-c" || name == "--constraint";
      if ((!nested && !limits) || value.empty() || contains(value, "://")) continue;
      const std::string inner = path_in(parent_folder(path), value);
      if (Result<void> done = add_file(inner, constraints || limits, depth + 1); !done) return done;
    }
    return {};
  }

  void add(formats::Requirement one, bool direct) {
    if (direct) out_.texts.push_back(one.text);
    if (!one.marker.empty() &&
        !formats::requirement_that_applies(one.name + "; " + one.marker, environment_))
      return;
    out_.requirements.push_back(std::move(one));
  }

 private:
  // "-r x", "-rx", "--requirement=x"
  static std::pair<std::string, std::string> option_of(std::string_view line) {
    const size_t end = line.find_first_of(" =\t");
    if (end == std::string_view::npos && line.size() > 2 && line[1] != '-')
      return {std::string(line.substr(0, 2)), std::string(trim(line.substr(2)))};
    if (end == std::string_view::npos) return {std::string(line), ""};
    std::string_view value = trim(line.substr(end + 1));
    if (const size_t comment = value.find(" #"); comment != std::string_view::npos)
      value = trim(value.substr(0, comment));
    return {std::string(line.substr(0, end)), std::string(value)};
  }

  Result<void> add_list(const formats::TomlDocument& document, const formats::TomlValue* list) {
    if (list == nullptr) return {};
    if (!list->is_texts()) return document.wrong(*list, "requirements are a list of texts");
    for (const formats::TomlValue& item : list->items) {
      Result<formats::Requirement> one = formats::parse_requirement(item.text);
      if (!one) return document.wrong(item, one.error().what);
      add(std::move(*one), true);
    }
    return {};
  }

  Result<void> add_project(const std::string& text, const std::string& path) {
    CUFIT_TRY(document, formats::parse_toml(text, path));
    const formats::TomlValue* project = document.find("project");
    if (project == nullptr)
      return fail(Code::usage, format("{}: no [project] with dependencies", path));
    if (const formats::TomlValue* python = project->find("requires-python")) {
      if (!python->is_text()) return document.wrong(*python, "`requires-python` must be a text");
      Result<std::vector<formats::VersionClause>> clauses = formats::parse_clauses(python->text);
      if (!clauses) return document.wrong(*python, clauses.error().what);
      out_.pythons.push_back({path, std::string(trim(python->text)), std::move(*clauses)});
    }
    if (Result<void> done = add_list(document, project->find("dependencies")); !done) return done;
    const formats::TomlValue* optional = project->find("optional-dependencies");
    for (const std::string& extra : out_.extras) {
      const formats::TomlValue* list = optional == nullptr ? nullptr : optional->find(extra);
      if (list == nullptr)
        return fail(Code::usage,
                    format("{}: no extra `{}` in [project.optional-dependencies]", path, extra));
      if (Result<void> done = add_list(document, list); !done) return done;
    }
    return {};
  }

  const host::Host& host_;
  LockInputs& out_;
  formats::MarkerEnvironment environment_;
  std::set<std::string> seen_;
};

}  // namespace

Result<LockInputs> read_lock_inputs(const host::Host& host, const std::vector<std::string>& files,
                                    const std::vector<std::string>& extras,
                                    const std::vector<std::string>& asked,
                                    const std::string& python) {
  LockInputs out;
  out.files = files;
  out.extras = extras;
  out.asked = asked;
  Inputs inputs(host, python, out);
  for (const std::string& file : files)
    if (Result<void> done = inputs.add_file(file, false, 0); !done) return done.error();
  for (const std::string& text : asked) {
    Result<formats::Requirement> one = formats::parse_requirement(text);
    if (!one) return fail(Code::usage, one.error().what);
    inputs.add(std::move(*one), true);
  }
  return out;
}

}  // namespace cufit::commands
