// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/node_questions.h"

#include <map>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/progress.h"

namespace cufit::commands {

std::string last_line(std::string_view text) {
  std::string out;
  for (const std::string_view line : split_lines(text))
    if (!trim(line).empty()) out = std::string(trim(line));
  return out;
}

// The shell's words that start cufit on a node: where it was said to be, in PATH, or in ~/.local.
std::string remote_command(const FleetSource& source, const std::string& own) {
  const std::string named = source.program.value_or(own);
  // A folder is "executable", too: ~/cufit may be the clone.
  return format(
      "p={}; [ -f \"$p\" ] && [ -x \"$p\" ] || p=$(command -v cufit || echo "
      "\"$HOME/.local/bin/cufit\"); "
      "exec \"$p\" doctor --fast --json",
      shell_word(named));
}

std::string why_none(const host::FanOutAnswer& answer, double seconds) {
  if (!answer.start_error.empty()) return answer.start_error;
  if (answer.timed_out) return format("no answer within {:g} s", seconds);
  if (answer.too_long) return "it said more than 8 MiB";
  const std::string said = last_line(answer.err);
  return said.empty() ? format("it ended with code {} and said nothing", answer.code) : said;
}

NodeText text_of(host::FanOutAnswer answer, double seconds) {
  NodeText out;
  out.name = std::move(answer.name);
  const std::string_view said = trim(answer.out);
  const bool cut = answer.too_long || (answer.timed_out && !ends_with(said, "}"));
  if (cut || !contains(said, "{"))
    out.why = why_none(answer, seconds);
  else
    out.text = std::move(answer.out);
  return out;
}

std::vector<NodeText> one_of_each(std::vector<NodeText> texts) {
  std::vector<NodeText> out;
  std::map<std::string, size_t> place;
  for (NodeText& text : texts) {
    const auto [known, fresh] = place.emplace(text.name, out.size());
    if (fresh)
      out.push_back(std::move(text));
    else if (!out[known->second].why.empty() && text.why.empty())
      out[known->second] = std::move(text);
  }
  return out;
}

Result<std::vector<host::FanOutAnswer>> run_all(const std::vector<host::FanOutTask>& tasks,
                                                double seconds, size_t most_bytes,
                                                const char* what) {
  host::Interrupts interrupts;
  Progress progress(what);
  host::FanOutOptions options;
  options.seconds = seconds;
  options.most_bytes = most_bytes;
  options.progress = [&](size_t done) { progress.show_count(done, tasks.size()); };
  return host::fan_out(tasks, options, interrupts);
}

}  // namespace cufit::commands
