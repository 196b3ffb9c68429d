// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_facts.h"

#include <algorithm>

#include "base/format.h"
#include "host/image/image_host.h"
#include "host/probe.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_sites = 64;

// Every environment of the image: several may lie where no variable points to, as those of a
// cufit.lock do, among which `cufit run` chooses when a container starts.
std::vector<std::string> environment_folders(const facts::ImageTree& tree) {
  std::vector<std::string> out;
  tree.each_file([&](const std::string& path, const facts::ImageTree::Node&) {
    for (const std::string_view mark : {"/pyvenv.cfg", "/conda-meta/history"})
      if (ends_with(path, mark)) out.push_back(path.substr(0, path.size() - mark.size()));
  });
  return out;
}

bool has_distribution(const facts::ImageTree& tree, std::string site) {
  const facts::ImageTree::Node* folder = tree.find(site);
  if (folder == nullptr) return false;
  return std::any_of(folder->children.begin(), folder->children.end(), [&](const auto& child) {
    return tree.node(child.second).exists && starts_with(child.first, "torch-") &&
           ends_with(child.first, ".dist-info");
  });
}

// Folders that torch is installed in: of a Python that PATH does not name (pyenv, `uv python
// install`, /opt/python), of a user, of `pip install --target`. Not what conda, pip and uv keep for
// the next installation.
std::vector<std::string> torch_sites(const facts::ImageTree& tree) {
  constexpr std::string_view k_mark = "/torch/version.py";
  std::vector<std::string> out;
  tree.each_file([&](const std::string& path, const facts::ImageTree::Node&) {
    if (!ends_with(path, k_mark) || out.size() >= k_most_sites) return;
    for (const char* cache : {"/pkgs/", "/.cache/", "/archive-v0/", "/cache/"})
      if (contains(path, cache)) return;
    const std::string site = path.substr(0, path.size() - k_mark.size());
    if (has_distribution(tree, site)) out.push_back(site);
  });
  return out;
}

bool is_known_env(const Host& host, const facts::Facts& facts, const std::string& folder) {
  const std::string real = host.real_path(folder).value_or(folder);
  return std::any_of(facts.envs.begin(), facts.envs.end(), [&](const facts::PythonEnv& env) {
    return host.real_path(env.path).value_or(env.path) == real;
  });
}

bool is_known_site(const Host& host, const facts::Facts& facts, const std::string& site) {
  const std::string real = host.real_path(site).value_or(site);
  for (const facts::PythonEnv& env : facts.envs)
    for (const std::string& one : env.site_packages) {
      const std::string path = starts_with(one, "/") ? one : env.path + "/" + one;
      if (host.real_path(path).value_or(path) == real) return true;
    }
  return false;
}

void read_more_envs(const Host& host, const ProbeOptions& others, facts::Facts& facts) {
  if (others.env_dirs.empty()) return;
  const size_t before = facts.envs.size();
  read_python_envs(host, others, facts);
  for (size_t i = before; i < facts.envs.size(); ++i) {
    facts.envs[i].active = false;
    facts.envs[i].found_by = "default";
  }
}

// Those that are found by themselves, then all others.
void read_all_envs(const Host& host, const facts::ImageTree& tree, facts::Facts& facts) {
  read_python_envs(host, {}, facts);
  ProbeOptions others, rest;
  for (const std::string& folder : environment_folders(tree))
    if (!is_known_env(host, facts, folder)) others.env_dirs.push_back(folder);
  read_more_envs(host, others, facts);
  for (const std::string& site : torch_sites(tree))
    if (!is_known_site(host, facts, site)) rest.env_dirs.push_back(site);
  read_more_envs(host, rest, facts);
}

// `cufit run` chooses when the container starts: before that no environment is the active one.
bool chooses_at_start(const formats::ImageConfig& config) {
  const std::vector<std::string>& words = config.entrypoint;
  return words.size() >= 2 && words[1] == "run" &&
         (words[0] == "cufit" || ends_with(words[0], "/cufit"));
}

}  // namespace

std::string architecture_of(const formats::ImageConfig& config) {
  if (config.architecture == "amd64") return "x86_64";
  if (config.architecture == "arm64") return "aarch64";
  return config.architecture;
}

facts::Facts read_image_facts(const facts::ImageTree& tree, const formats::ImageConfig& config) {
  const ImageHost host(tree, config.variables, architecture_of(config));
  facts::Facts facts;
  facts.cufit_version = CUFIT_VERSION;
  facts.origin = "image";
  facts::Facts all;
  read_system(host, all);
  facts.system.distribution = all.system.distribution;
  facts.system.distribution_id = all.system.distribution_id;
  facts.system.libc = all.system.libc;
  facts.system.glibc = all.system.glibc;
  facts.system.glibcxx = all.system.glibcxx;
  facts.system.architecture =
      known(architecture_of(config), SourceKind::file, "architecture of the image's configuration");
  if (config.architecture.empty())
    facts.system.architecture =
        missing<std::string>(WhyNot::not_present, SourceKind::file, "the image's configuration");
  read_variables(host, facts);
  read_driver_libraries(host, facts);
  read_toolkits(host, facts);
  read_all_envs(host, tree, facts);
  if (chooses_at_start(config))
    for (facts::PythonEnv& env : facts.envs) env.active = false;
  return facts;
}

}  // namespace cufit::host
