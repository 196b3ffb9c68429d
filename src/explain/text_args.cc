// SPDX-License-Identifier: Apache-2.0
#include "explain/text_args.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr std::string_view k_shadowed[] = {
    "torch",       "torchvision", "torchaudio", "triton",       "numpy",   "transformers",
    "diffusers",   "accelerate",  "deepspeed",  "datasets",     "vllm",    "xformers",
    "random",      "queue",       "types",      "logging",      "copy",    "inspect",
    "typing",      "platform",    "signal",     "tokenize",     "profile", "dataclasses",
    "onnxruntime", "tensorflow",  "cv2",        "bitsandbytes", "peft",    "trl"};

struct OwnModule {
  std::string path;
  uint64_t line = 0;
};

std::string_view last_part(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == path.npos ? path : path.substr(slash + 1);
}

// A file of the user's own: not of an installation, not of a checkout of the package itself.
bool is_own(const std::string& path) {
  for (const char* part : {"site-packages", "dist-packages", "lib/python", "lib64/python", "/usr/",
                           "\\Lib\\", "/lib/", "conda/pkgs", "<frozen"})
    if (contains(path, part)) return false;
  std::string_view name = last_part(path);
  if (ends_with(name, ".py")) name.remove_suffix(3);
  return std::find(std::begin(k_shadowed), std::end(k_shadowed), name) != std::end(k_shadowed);
}

// Asked before a pattern is compiled.
bool may_name_shadowed(std::string_view text) {
  for (size_t at = text.find(".py"); at != text.npos; at = text.find(".py", at + 1)) {
    if (std::any_of(std::begin(k_shadowed), std::end(k_shadowed),
                    [&](std::string_view name) { return ends_with(text.substr(0, at), name); }))
      return true;
  }
  return false;
}

std::optional<std::string> own_module(const std::string& line) {
  static const RE2 file(R"re((?:File "|consider renaming '|\(|from ')([^"'()<>]{1,200}?\.py)\b)re");
  re2::StringPiece rest(line);
  std::string path;
  while (RE2::FindAndConsume(&rest, file, &path)) {
    if (is_own(path)) return path;
  }
  return std::nullopt;
}

std::optional<OwnModule> find_own_module(std::span<const formats::TextLine> lines) {
  for (const formats::TextLine& line : lines) {
    if (!may_name_shadowed(line.text)) continue;
    if (const std::optional<std::string> path = own_module(line.text))
      return OwnModule{*path, line.number};
  }
  return std::nullopt;
}

bool is_safe(std::string_view word, std::string_view more) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != more.npos;
  });
}

// What is left of the arguments of an installer in a new environment, quoted; empty: something is
// not understood.
std::string wanted_of(std::string_view arguments) {
  std::string out;
  for (std::string_view word : split(arguments, ' ')) {
    while (!word.empty() && (word.front() == '\'' || word.front() == '"')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == '\'' || word.back() == '"' || word.back() == '`'))
      word.remove_suffix(1);
    if (word.empty() || word == "--break-system-packages" || word == "--user" ||
        word == "--system" || word == "--no-cache-dir" || word == "-y")
      continue;
    const bool last = word.back() == ':' || word.back() == ',' || word.back() == ';';
    if (last) word.remove_suffix(1);
    if (word == "&&" || word == ";" || word == "|" || word == "\\") break;
    if (!is_safe(word, "._+-=<>~!,[]:/@")) break;
    const bool plain = is_safe(word, "._+-=:/@");
    out += (out.empty() ? "" : " ") + (plain ? std::string(word) : "'" + std::string(word) + "'");
    if (last) break;
  }
  return out;
}

std::string find_wanted(std::span<const formats::TextLine> lines) {
  // Of a line that is the command: prose around it would be taken for names of packages.
  static const RE2 command(
      R"(^(?:\([\w.-]+\) ?)?(?:[\w.-]+@[\w.-]+[^$#]{0,60})?[\s$#>%`]*(?:Step \d+/\d+ : |#\d+ \[[^\]\n]{1,40}\] )?(?:RUN )?(?:sudo )?(?:\S*python[\d.]* -m )?(?:pip[\d.]*|uv pip) install ((?:\S+ ?){1,16}))");
  std::string out;
  for (const formats::TextLine& line : lines) {
    std::string arguments;
    // pip's own advice ("python3 -m venv path/to/venv", "apt install python3-xyz") is none.
    if (contains(line.text, "xyz") || !RE2::PartialMatch(line.text, command, &arguments)) continue;
    const std::string wanted = wanted_of(arguments);
    if (!wanted.empty() && is_safe(wanted.substr(0, 1), "-'.")) out = wanted;
  }
  return out;
}

}  // namespace

std::optional<ComputedClue> own_module_file(std::span<const formats::TextLine> lines) {
  const std::optional<OwnModule> found = find_own_module(lines);
  if (!found) return std::nullopt;
  return ComputedClue{"own_module_file", found->line, {}};
}

void add_text_args(std::map<std::string, std::string>& args,
                   std::span<const formats::TextLine> lines) {
  if (const std::string wanted = find_wanted(lines); !wanted.empty())
    args.emplace("wanted_words", wanted);
  const std::optional<OwnModule> own = find_own_module(lines);
  if (!own || !is_safe(own->path, "._/~-")) return;
  const std::string_view name = last_part(own->path);
  const std::string folder = own->path.substr(0, own->path.size() - name.size());
  args.emplace("shadow_path", own->path);
  args.emplace("shadow_new", folder + "my_" + std::string(name));
  args.emplace("shadow_dir", folder);
}

}  // namespace cufit::explain
