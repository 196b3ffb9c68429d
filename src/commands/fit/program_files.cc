// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/program_files.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "host/files/paths.h"
#include "host/files/prediction_cache.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_word_bytes = 4096, k_most_walked_folders = 512, k_most_depth = 4;

void add_file(const std::string& path, std::set<std::string>& out) {
  if (path.size() <= k_most_word_bytes && host::is_file(path)) out.insert(path);
}

// Of each script its folder; of `-m package.module` the working folder.
std::vector<std::string> script_folders(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  for (const std::string& word : command) {
    if (word == "-m") out.emplace_back();
    if (ends_with(word, ".py")) out.push_back(parent_folder(word));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string in_folder(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : path_in(folder, name);
}

// What describes a model in its folder.
void add_folder(const std::string& folder, std::set<std::string>& out) {
  if (folder.size() > k_most_word_bytes || !host::is_folder(folder)) return;
  for (const char* name : {"config.json", "model_index.json", "adapter_config.json"})
    add_file(in_folder(folder, name), out);
}

// Imports, and what programs read by a name of their own (conf/config.yaml).
bool is_of_program(const std::string& name) {
  constexpr std::string_view k_ends[] = {".py", ".yaml", ".yml", ".toml"};
  const bool by_end = std::any_of(std::begin(k_ends), std::end(k_ends),
                                  [&](std::string_view end) { return ends_with(name, end); });
  return by_end || (ends_with(name, ".json") && contains(name, "config"));
}

// Hidden ones, environments, and what tools write at each run.
bool is_left_out(const std::string& path, const std::string& name) {
  constexpr std::string_view k_names[] = {"__pycache__", "site-packages", "node_modules",
                                          "wandb",       "mlruns",        "lightning_logs"};
  return name.empty() || name[0] == '.' ||
         std::find(std::begin(k_names), std::end(k_names), name) != std::end(k_names) ||
         host::path_exists(path + "/pyvenv.cfg") || host::is_link(path);
}

// The folders' files and those below. False: too many to look at each time.
class Walk {
 public:
  Walk(const host::Host& machine, std::set<std::string>& out) : machine_(machine), out_(out) {}

  bool into(const std::string& folder, size_t depth) {
    if (++folders_ > k_most_walked_folders) return false;
    const Result<std::vector<std::string>> names = machine_.list(folder.empty() ? "." : folder);
    if (!names) return true;
    for (const std::string& name : *names) {
      const std::string path = in_folder(folder, name);
      if (is_of_program(name)) {
        add_file(path, out_);
        if (out_.size() > k_most_program_files) return false;
      } else if (depth < k_most_depth && host::is_folder(path) && !is_left_out(path, name) &&
                 !into(path, depth + 1)) {
        return false;
      }
    }
    return true;
  }

 private:
  const host::Host& machine_;
  std::set<std::string>& out_;
  size_t folders_ = 0;
};

}  // namespace

std::vector<std::string> files_beside(const host::Host& machine,
                                      const std::vector<std::string>& command) {
  std::set<std::string> out;
  for (const std::string& folder : script_folders(command)) {
    const Result<std::vector<std::string>> names = machine.list(folder.empty() ? "." : folder);
    if (!names) continue;
    for (const std::string& name : *names)
      if (ends_with(name, ".py")) add_file(in_folder(folder, name), out);
  }
  return {out.begin(), out.end()};
}

FilesBefore files_before(const host::Host& machine, const std::vector<std::string>& command) {
  FilesBefore out;
  out.began = host::time_of_files();
  std::set<std::string> files;
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i == 0 && !ends_with(word, ".py")) continue;  // the Python itself
    const size_t equals = word.find('=');
    for (const std::string& path :
         {word, equals == std::string::npos ? std::string() : word.substr(equals + 1)}) {
      add_file(path, files);
      add_folder(path, files);
    }
  }
  for (const std::string& path : files_beside(machine, command)) files.insert(path);
  std::set<std::string> below = files;
  Walk walk(machine, below);
  const std::vector<std::string> folders = script_folders(command);
  if (std::all_of(folders.begin(), folders.end(),
                  [&](const std::string& folder) { return walk.into(folder, 0); }))
    files = std::move(below);
  for (const std::string& path : files) out.marks[path] = host::file_mark(path);
  return out;
}

FileMarks files_of_trace(const FilesBefore& before, const fit::Traces& traces) {
  for (const auto& [path, mark] : before.marks)
    if (mark.empty() || host::file_mark(path) != mark) return {};
  std::set<std::string> named;
  // "models/net.py:12": lines of the user's own files.
  for (const formats::TraceEvents& trace : traces.plain)
    for (const formats::TraceSite& site : trace.sites) {
      const std::string& source = trace.texts[site.source];
      if (const size_t colon = source.rfind(':'); colon != std::string::npos)
        add_file(source.substr(0, colon), named);
    }
  FileMarks out = before.marks;
  for (const std::string& path : named) {
    if (out.count(path) != 0) continue;
    if (host::is_changed_since(path, before.began)) return {};
    out[path] = host::file_mark(path);
    if (out[path].empty()) return {};
  }
  return out.size() > k_most_program_files ? FileMarks() : out;
}

}  // namespace cufit::commands
