// SPDX-License-Identifier: Apache-2.0
// LD_LIBRARY_PATH of a container: the image's value that it loses, stubs that it brings.
#include "base/format.h"
#include "resolve/kubernetes/lint_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

// A word in double quotes of YAML; nullopt: it holds what no command of one line has.
std::optional<std::string> yaml_word(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// The command of the container behind a shell that knows the image's value; empty where the image
// says what is started, or the value is no list of folders.
std::string shell_lines(const formats::ManifestContainer& container, std::string value) {
  constexpr size_t k_most_lines = 4000;  // bytes
  for (const std::string_view name :
       {"$(LD_LIBRARY_PATH)", "${LD_LIBRARY_PATH}", "$LD_LIBRARY_PATH"})
    for (size_t at = value.find(name); at != std::string::npos; at = value.find(name))
      value.replace(at, name.size(), "\1");
  std::string script;
  for (const char c : value) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '\1' && !contains("/._-+:@", std::string_view(&c, 1))) return {};
    script += c == '\1' ? std::string("${LD_LIBRARY_PATH}") : std::string(1, c);
  }
  if (container.command.empty()) return {};
  std::string out =
      "command:\n- sh\n- -c\n- 'export LD_LIBRARY_PATH=\"" + script + "\"; exec \"$0\" \"$@\"'\n";
  for (const std::string& word : container.command) {
    const std::optional<std::string> quoted = yaml_word(word);
    if (!quoted || out.size() + quoted->size() > k_most_lines) return {};
    out += "- " + *quoted + "\n";
  }
  return out;
}

}  // namespace

// Kubernetes replaces $(NAME) alone, and that of variables of the manifest, not of the image.
void lint_library_path(const ContainerView& view, const LintInput& input, const ImageFits& image,
                       LintOut& out) {
  const formats::ManifestContainer& container = view.container;
  const formats::PodVariable* one = find_variable(container, "LD_LIBRARY_PATH");
  if (one == nullptr || (!view.gpus.any() && view.start.needs_gpu.empty())) return;
  const std::string& value = *one->value;
  for (const std::string_view folder : split(value, ':'))
    if (ends_with(folder, "/stubs") || contains(folder, "/stubs/")) {
      LintFinding& made =
          out.add("libcuda_shadowed", Severity::error, one->line, variable_seen(*one), &container);
      made.finding.variant = "manifest";
      made.finding.args["path"] = std::string(folder);
      return;
    }
  bool defined_before = container.variables_from;
  for (const formats::PodVariable& other : container.variables) {
    if (&other == one) break;
    defined_before = defined_before || other.name == "LD_LIBRARY_PATH";
  }
  const bool shell = contains(value, "${LD_LIBRARY_PATH") || contains(value, "$LD_LIBRARY_PATH");
  if (shell || (contains(value, "$(LD_LIBRARY_PATH)") && !defined_before)) {
    LintFinding& made = out.add("k8s_ld_library_path", Severity::warning, one->line,
                                variable_seen(*one), &container);
    made.finding.args["value"] = value;
    made.yaml = shell_lines(container, value);
    if (!made.yaml.empty()) made.finding.variant = "shell";
    return;
  }
  if (input.image == nullptr || !image.is_of(container)) return;
  for (const auto& [name, before] : input.image->image.config.variables) {
    if (name != "LD_LIBRARY_PATH" || before.empty() || contains(value, before)) continue;
    LintFinding& made =
        out.add("k8s_ld_library_path", Severity::note, one->line, variable_seen(*one), &container);
    made.finding.variant = "replaced";
    made.finding.args = {{"value", value}, {"before", before}};
  }
}

}  // namespace cufit::resolve
