// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_start.h"

#include <algorithm>

#include "base/format.h"
#include "host/image/setup_names.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_scripts = 16;
constexpr int k_most_script_depth = 4;
constexpr uint64_t k_most_script_bytes = 64u << 10;
// Of the kernel's and Docker's default.
constexpr const char* k_default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// "#!/bin/bash", "#!/usr/bin/env -S bash -e"; Python is read by nobody here.
bool names_shell(std::string_view line) {
  if (!starts_with(line, "#!")) return false;
  for (const std::string_view word : split(line.substr(2), ' ')) {
    const std::string_view name = formats::program_name(trim(word));
    if (name == "sh" || name == "bash" || name == "dash" || name == "ash" || name == "zsh")
      return true;
  }
  return false;
}

class StartReader {
 public:
  StartReader(const facts::OpenedImage& image, const facts::ImageTree& tree,
              const LayerText& text_of)
      : image_(image), tree_(tree), text_of_(text_of) {
    path_ = k_default_path;
    for (const auto& [name, value] : image.config.variables)
      if (name == "PATH") path_ = value;
  }

  std::vector<StartScript> read() {
    std::vector<std::string> words = image_.config.entrypoint;
    words.insert(words.end(), image_.config.command.begin(), image_.config.command.end());
    StartScript own{{k_own_command, 0, false}, false, formats::read_commands(words)};
    out_.push_back(own);
    // Every word may be what an entry point hands over to (`tini -- start.sh`).
    for (const formats::ShellCommand& command : own.commands)
      for (const std::string& word : command.words) follow(word, true, 1);
    return std::move(out_);
  }

 private:
  void follow(const std::string& word, bool by_path, int depth) {
    if (word.empty() || word.size() > 4096 || out_.size() > k_most_scripts) return;
    if (contains(word, "/")) {
      add(starts_with(word, "/") ? word : image_.config.folder + "/" + word, depth);
      return;
    }
    if (is_script_name(word) && add(image_.config.folder + "/" + word, depth)) return;
    if (!by_path || word[0] == '-') return;
    for (const std::string_view folder : split(path_, ':'))
      if (starts_with(folder, "/") && add(std::string(folder) + "/" + word, depth)) return;
  }

  // Whether there is such a file.
  bool add(std::string path, int depth) {
    const facts::ImageTree::Node* node = tree_.find(path);
    if (node == nullptr || node->type != formats::TarType::file) return false;
    const bool known = std::any_of(out_.begin(), out_.end(),
                                   [&](const StartScript& one) { return one.place.path == path; });
    if (known || depth > k_most_script_depth || out_.size() > k_most_scripts ||
        node->file.size_bytes > k_most_script_bytes || !is_script(node->file))
      return true;
    const std::optional<std::string> text = text_of_(node->file);
    if (!text || (!names_shell(text->substr(0, text->find('\n'))) && starts_with(*text, "#!")))
      return true;
    out_.push_back({{path, node->layer, false}, true, formats::read_shell_script(*text)});
    const std::vector<formats::ShellCommand> commands = out_.back().commands;
    for (const formats::ShellCommand& command : commands) {
      if (formats::starts_nothing(command.words)) continue;
      const size_t program = formats::program_at(command.words);
      for (size_t i = program; i < command.words.size(); ++i)
        follow(command.words[i], i == program, depth + 1);
    }
    return true;
  }

  // A program is no script; what was not kept of a compressed layer is told by who reads it.
  static bool is_script(const facts::LayerFile& file) {
    if (file.content == nullptr || ends_with(file.path, ".sh")) return is_script_name(file.path);
    const Result<std::string> head = file.content->read_exact(0, 2, 2);
    return head && *head == "#!";
  }

  const facts::OpenedImage& image_;
  const facts::ImageTree& tree_;
  const LayerText& text_of_;
  std::string path_;
  std::vector<StartScript> out_;
};

}  // namespace

std::vector<StartScript> start_scripts(const facts::OpenedImage& image,
                                       const facts::ImageTree& tree, const LayerText& text_of) {
  return StartReader(image, tree, text_of).read();
}

}  // namespace cufit::host
