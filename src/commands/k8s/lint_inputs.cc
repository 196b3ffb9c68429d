// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/lint_inputs.h"

#include "base/format.h"
#include "base/path.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "host/files/text_stream.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_node_files = 5000;

Result<std::string> manifest_text(const std::string& path) {
  std::string text;
  const Result<void> read =
      host::read_stream(path, [&](std::string_view piece, uint64_t, uint64_t) {
        // One byte more than may be there is enough to be refused by its reader.
        if (text.size() <= formats::k_most_yaml_bytes)
          text += piece.substr(0, formats::k_most_yaml_bytes + 1 - text.size());
      });
  if (!read) return read.error();
  return text;
}

// A chart's template is no YAML yet.
bool is_template(std::string_view text) { return contains(text, "{{"); }

Result<formats::YamlText> read_yaml(const std::string& text, const std::string& path,
                                    std::vector<std::string>& problems) {
  CUFIT_TRY(yaml, formats::parse_yaml(text, path));
  for (const formats::YamlDamage& damage : yaml.damage)
    problems.push_back(format(
        "`{}`, line {}: {}{}", path, damage.line, damage.what,
        is_template(text) ? "; a template of a chart is read as `helm template` prints it" : ""));
  return yaml;
}

std::string node_name(const std::string& path) {
  const std::string name(file_name(path));
  if (name == "facts.json" && !parent_folder(path).empty())
    return std::string(file_name(parent_folder(path)));
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

Result<void> read_node_file(const Context& context, const std::string& path,
                            std::vector<std::string>& problems, bool& all_read,
                            std::vector<resolve::ClusterNode>& out) {
  CUFIT_TRY(text, context.files.read_file(path, formats::k_most_yaml_bytes));
  const bool recording = contains(text, "cufit.facts/1") || contains(text, "cufit.doctor/1");
  bool damaged = false;
  if (!recording) {
    std::vector<std::string> damage;
    const Result<formats::YamlText> yaml = read_yaml(text, path, damage);
    damaged = !yaml || !damage.empty();
    if (yaml) {
      const formats::ManifestObjects objects = formats::read_objects(*yaml);
      for (const formats::ManifestNode& node : objects.nodes)
        out.push_back(resolve::node_of_object(node, path));
      if (!objects.nodes.empty()) {
        problems.insert(problems.end(), damage.begin(), damage.end());
        all_read = all_read && damage.empty();
        return {};
      }
    }
  }
  Result<facts::Facts> facts = host::load_facts(context.files, path);
  if (!facts && !recording)
    return fail(damaged ? Code::malformed : Code::unsupported,
                format("`{}` holds neither a recording (`cufit doctor --record`) nor nodes as "
                       "`kubectl get nodes -o yaml` prints them",
                       path));
  if (!facts) return facts.error();
  out.push_back(resolve::node_of_recording(*facts, node_name(path), path, context.knowledge));
  return {};
}

std::vector<std::string> files_of(const host::Host& files, const std::string& folder) {
  std::vector<std::string> out;
  const Result<std::vector<std::string>> names = files.list(folder);
  if (!names) return out;
  for (const std::string& name : *names) {
    const std::string path = path_in(folder, name);
    if (ends_with(name, ".json") || ends_with(name, ".yaml") || ends_with(name, ".yml"))
      out.push_back(path);
    else if (host::is_file(path + "/facts.json"))
      out.push_back(path + "/facts.json");
    if (out.size() >= k_most_node_files) break;
  }
  return out;
}

}  // namespace

Result<std::vector<resolve::LintFile>> read_manifests(const std::vector<std::string>& paths,
                                                      std::vector<std::string>& problems) {
  std::vector<resolve::LintFile> out;
  bool read_any = false;
  for (const std::string& path : paths) {
    CUFIT_TRY(text, manifest_text(path));
    const std::string name = path == "-" ? "stdin" : path;
    CUFIT_TRY(yaml, read_yaml(text, name, problems));
    read_any = read_any || !yaml.documents.empty() || !yaml.damage.empty();
    out.push_back({name, formats::read_objects(yaml)});
  }
  // A chart that renders nothing and a command that failed look alike: neither was found good.
  if (!read_any && !out.empty())
    problems.push_back(format(
        "`{}`: nothing is in it; a command in front of a pipe may have failed", out.back().path));
  return out;
}

Result<std::vector<resolve::ClusterNode>> read_nodes(const Context& context,
                                                     const std::vector<std::string>& paths,
                                                     std::vector<std::string>& problems,
                                                     bool& all_read) {
  std::vector<resolve::ClusterNode> out;
  for (const std::string& path : paths) {
    if (!host::is_folder(path)) {
      if (Result<void> read = read_node_file(context, path, problems, all_read, out); !read)
        return read.error();
      continue;
    }
    const size_t before = out.size();
    // Of a folder one file that is something else costs itself alone.
    for (const std::string& file : files_of(context.files, path))
      if (Result<void> read = read_node_file(context, file, problems, all_read, out); !read) {
        all_read = all_read && read.error().code == Code::unsupported;
        problems.push_back(read.error().text());
      }
    if (out.size() == before)
      return fail(Code::usage,
                  format("`--nodes {}`: no recording and no nodes in this folder", path));
  }
  return resolve::merged_nodes(std::move(out));
}

}  // namespace cufit::commands
