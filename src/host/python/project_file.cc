// SPDX-License-Identifier: Apache-2.0
#include "host/python/project_file.h"

#include <algorithm>

#include "base/format.h"
#include "formats/python/index_config.h"
#include "formats/toml_text.h"

namespace cufit::host {
namespace {

using formats::TomlValue;

constexpr size_t k_max_file = 4u << 20;

// "tool.uv.index"; null = not there
const TomlValue* at(const TomlValue& root, std::string_view path) {
  const TomlValue* value = &root;
  for (const std::string_view key : split(path, '.')) {
    if (value != nullptr) value = value->is_table() ? value->find(key) : nullptr;
  }
  return value;
}

std::string text_at(const TomlValue& root, std::string_view path) {
  const TomlValue* value = at(root, path);
  return value != nullptr && value->is_text() ? value->text : std::string();
}

// torch = { index = "pytorch-cu126" }, or a list of such.
bool binds_to(const TomlValue& source, const std::string& index) {
  if (source.is_table()) return text_at(source, "index") == index;
  return std::any_of(source.items.begin(), source.items.end(),
                     [&](const TomlValue& one) { return binds_to(one, index); });
}

void read_uv_indexes(const TomlValue& root, facts::PythonEnv& env) {
  const TomlValue* indexes = at(root, "tool.uv.index");
  if (indexes == nullptr) return;
  const TomlValue* sources = at(root, "tool.uv.sources");
  for (const TomlValue& one : indexes->items) {
    if (!one.is_table()) continue;
    facts::ProjectIndex made;
    made.name = text_at(one, "name");
    made.url = formats::without_credentials(text_at(one, "url"));
    const TomlValue* flag = one.find("explicit");
    made.is_explicit =
        flag != nullptr && flag->kind == TomlValue::Kind::boolean && flag->integer == 1;
    for (const char* package : {"torch", "torchaudio", "torchvision"}) {
      const TomlValue* source = sources == nullptr ? nullptr : sources->find(package);
      if (source != nullptr && !made.name.empty() && binds_to(*source, made.name))
        made.packages.emplace_back(package);
    }
    env.project_indexes.push_back(std::move(made));
  }
}

constexpr std::string_view k_of_torch[] = {"pytorch",     "pytorch-cpu", "pytorch-cuda",
                                           "pytorch-gpu", "torchaudio",  "torchvision",
                                           "cpuonly"};

// pixi: what the manifest itself asks of conda. A feature is most often named as its environment.
void read_pixi_manifest(const TomlValue& manifest, facts::PythonEnv& env) {
  const std::string name = env.path.substr(env.path.rfind('/') + 1);
  std::vector<const TomlValue*> tables{at(manifest, "dependencies")};
  const TomlValue* features = manifest.find("feature");
  const TomlValue* feature = features == nullptr ? nullptr : features->find(name);
  if (name != "default") tables = {feature == nullptr ? nullptr : at(*feature, "dependencies")};
  for (const TomlValue* table : tables) {
    if (table == nullptr) continue;
    for (const std::string_view package : k_of_torch)
      if (table->find(package) != nullptr) env.project_packages.emplace_back(package);
  }
}

}  // namespace

void read_project_file(const Host& host, facts::PythonEnv& env) {
  const bool pixi = env.installer == "pixi";
  if (pixi) {
    const std::string path = env.project + "/pixi.toml";
    if (const auto text = host.read_file(path, k_max_file)) {
      const auto manifest = formats::parse_toml(*text, path);
      if (manifest) read_pixi_manifest(manifest->root, env);
      return;
    }
  }
  const std::string path = env.project + "/pyproject.toml";
  const auto text = host.read_file(path, k_max_file);
  if (!text) return;
  const auto document = formats::parse_toml(*text, path);
  if (!document) return;
  if (pixi) {
    if (const TomlValue* manifest = at(document->root, "tool.pixi"))
      read_pixi_manifest(*manifest, env);
    return;
  }
  env.project_python = text_at(document->root, "project.requires-python");
  if (env.project_python.empty() && env.installer == "poetry")
    env.project_python = text_at(document->root, "tool.poetry.dependencies.python");
  if (env.installer == "uv") read_uv_indexes(document->root, env);
}

}  // namespace cufit::host
