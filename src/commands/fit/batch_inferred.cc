// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/batch_inferred.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <utility>

#include "base/format.h"
#include "commands/fit/batch_in_files.h"
#include "commands/fit/shell_words.h"

namespace cufit::commands {
namespace {

// Parts of the names of other batches than those that a GPU trains on.
constexpr std::string_view k_others[] = {
    "eval",     "evaluation", "val",       "valid",      "validation", "dev",    "test",
    "pred",     "predict",    "infer",     "inference",  "sample",     "gen",    "generation",
    "cache",    "vae",        "encoder",   "tokenizer",  "preprocess", "global", "total",
    "effective"};

// "--trainBatch-size" is train, batch, size. Empty where it is no name.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> out(1);
  char before = '-';
  for (const char c : name) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!word && std::string_view("-_.+").find(c) == std::string_view::npos) return {};
    const bool hump = std::isupper(static_cast<unsigned char>(c)) != 0 &&
                      std::islower(static_cast<unsigned char>(before)) != 0;
    if ((hump || !word) && !out.back().empty()) out.emplace_back();
    if (word) out.back() += lower(std::string_view(&c, 1));
    before = c;
  }
  return out;
}

bool names_batch(const std::string& name) {
  if (name == "-b") return true;
  const std::vector<std::string> parts = parts_of(name);
  if (parts.empty()) return false;
  for (const std::string& part : parts)
    if (std::find(std::begin(k_others), std::end(k_others), part) != std::end(k_others)) return false;
  const std::string& last = parts.back();
  const std::string before = parts.size() > 1 ? parts[parts.size() - 2] : "";
  if (last == "size") return before == "batch";
  if (last == "batch") return before.empty() || before == "train";
  return last == "batchsize" || last == "bs";
}

// As the program gets them, and those of a shell's text.
std::vector<std::string> words_of(const std::vector<std::string>& command) {
  std::vector<std::string> out = command;
  const std::optional<size_t> script = shell_text(command);
  if (!script) return out;
  std::string text = std::exchange(out[*script], std::string());
  for (char& c : text)
    if (std::string_view(" \t\r\n;&|()<>'\"\\").find(c) != std::string_view::npos) c = ' ';
  for (const std::string_view word : split(text, ' '))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

std::vector<InferredBatch> in_command(const std::vector<std::string>& command) {
  std::set<std::string> names;
  for (const std::string& word : words_of(command)) {
    const size_t sign = word.find('=');
    const std::string name = word.substr(0, sign);
    if ((sign != std::string::npos || starts_with(word, "-")) && names_batch(name))
      names.insert(name);
  }
  std::vector<InferredBatch> out;
  for (const std::string& name : names) {
    InferredBatch one;
    one.argument.name = name;
    one.argument.joined = !starts_with(name, "-");
    one.batch = batch_in(command, one.argument).value_or(0);
    one.command = command;
    if (one.batch != 0) out.push_back(std::move(one));
  }
  return out;
}

// Programs that read a file of options take them in the command, too, and prefer those.
std::vector<InferredBatch> in_files(const host::Host& files,
                                    const std::vector<std::string>& command) {
  std::vector<InferredBatch> out;
  for (const NumberInFile& number : numbers_in_files(files, words_of(command))) {
    if (!names_batch(number.key)) continue;
    InferredBatch one;
    one.argument.name = "--" + number.key;
    one.batch = number.value;
    one.file = number.file;
    one.command = command;
    if (out.empty() || out[0].argument.name != one.argument.name || out[0].batch != one.batch)
      out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::optional<InferredBatch> inferred_batch(const host::Host& files,
                                            const std::vector<std::string>& command) {
  std::vector<InferredBatch> found = in_command(command);
  const std::optional<std::vector<std::string>> script =
      found.empty() ? script_as_text(files, command) : std::nullopt;
  if (script) {
    found = in_command(*script);
    const size_t text = *shell_text(*script);
    for (InferredBatch& one : found) one.file = (*script)[text + 1];
  }
  if (found.empty()) {
    found = in_files(files, script ? *script : command);
    for (InferredBatch& one : found) one.command = command;
    if (found.size() == 1 && !takes_appended(script ? *script : command, found[0].argument))
      return std::nullopt;
  }
  if (found.size() != 1) return std::nullopt;
  return std::move(found[0]);
}

}  // namespace cufit::commands
