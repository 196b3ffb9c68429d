// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/crash_report.h"
#include "report/explain.h"

namespace cufit::report {
namespace {

// Where the sequence that begins at `at` (an ESC) ends: ECMA-48 control sequences, strings up to
// BEL or ST, and two-byte ones.
size_t end_of_sequence(std::string_view text, size_t at) {
  size_t next = at + 1;
  if (next >= text.size()) return next;
  const char kind = text[next++];
  if (kind == '[') {
    while (next < text.size() && (text[next] < 0x40 || text[next] > 0x7e)) ++next;
    return std::min(next + 1, text.size());
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^') {
    while (next < text.size() && text[next] != '\a' && text[next] != '\x1b' && text[next] != '\n')
      ++next;
    if (next < text.size() && text[next] == '\x1b') ++next;
    return text[std::min(next, text.size() - 1)] == '\n' ? next : std::min(next + 1, text.size());
  }
  return next;
}

std::string plain_line(std::string_view line) {
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '\x1b') {
      at = end_of_sequence(line, at);
      continue;
    }
    ++at;
    if (c == '\r') {
      if (at < line.size()) out.clear();  // what follows is written over it
    } else if (c == '\t' || static_cast<unsigned char>(c) >= 0x20) {
      if (c != '\x7f') out += c;
    }
  }
  return out;
}

std::string memory_lines(const CrashReportView& view, std::string_view lang) {
  std::string out;
  if (!view.run.memory.empty()) {
    out += message(view.knowledge, "death.memory_before", lang,
                   {{"seconds", format("{:.1f}", view.run.memory_age_seconds)}}) +
           "\n";
    for (const facts::GpuMemory& gpu : view.run.memory)
      out += format("  {}: {}: {} / {}\n", gpu.index, gpu.name, format_bytes(gpu.used_bytes),
                    format_bytes(gpu.total_bytes));
  }
  bool titled = false;
  for (const facts::NvmlGpu& gpu : view.after.nvml.gpus) {
    if (!gpu.memory_used_bytes || !gpu.memory_total_bytes) continue;
    if (!titled) out += message(view.knowledge, "death.memory_after", lang) + "\n";
    titled = true;
    out += format("  {}: {}: {} / {}\n", gpu.index, gpu.name.value_or("?"),
                  format_bytes(*gpu.memory_used_bytes), format_bytes(*gpu.memory_total_bytes));
  }
  return out.empty() ? message(view.knowledge, "death.memory_not_told", lang) + "\n" : out;
}

}  // namespace

std::string plain_tail(std::string_view tail) {
  std::string out;
  while (!tail.empty()) {
    const size_t end = tail.find('\n');
    out += plain_line(tail.substr(0, end)) + "\n";
    if (end == std::string_view::npos) break;
    tail.remove_prefix(end + 1);
  }
  return out;
}

std::string end_text(const facts::Supervised& run, std::string_view lang,
                     const knowledge::Knowledge& knowledge) {
  const knowledge::ExitCodeRow* row = knowledge.find_exit_code(run.exit_code);
  const std::string code = std::to_string(run.exit_code);
  if (run.signal == 0) return message(knowledge, "death.exit_code", lang, {{"code", code}});
  const std::string name = row != nullptr && !row->signal.empty() ? std::string(row->signal)
                                                                  : std::to_string(run.signal);
  return message(knowledge, "death.signal", lang, {{"code", code}, {"signal", name}});
}

std::string crash_report_text(const CrashReportView& view, const Style& style) {
  std::vector<std::string> words;
  for (const std::string& word : view.command) words.push_back(shell_argument(word));
  const std::string_view lang = style.lang;
  std::string out = message(view.knowledge, "death.title", lang,
                            {{"time", view.time},
                             {"end", end_text(view.run, lang, view.knowledge)},
                             {"seconds", format("{:.1f}", view.run.seconds)},
                             {"version", CUFIT_VERSION}}) +
                    "\n\n";
  out += message(view.knowledge, "death.command", lang, {{"command", join(words, " ")}}) + "\n";
  if (!view.class_name.empty())  // without a lock there is none
    out += message(view.knowledge, "death.environment", lang,
                   {{"class", view.class_name}, {"torch", view.torch}, {"env", view.env}}) +
           "\n";
  out += "\n";
  out += memory_lines(view, lang) + "\n";
  const std::string quota = crash_report_quota(view, lang);
  if (!quota.empty()) out += quota + "\n\n";
  const std::string reason = crash_report_reason(view, lang);
  if (!reason.empty()) out += reason + "\n\n";
  if (shows_causes(view))
    out += explain_text({view.explanation, view.knowledge, false, false, true}, style) + "\n";
  out +=
      message(view.knowledge,
              view.run.tail.size() < view.run.output_bytes ? "death.tail_part" : "death.tail", lang,
              {{"size", format_bytes(view.run.tail.size())},
               {"all", format_bytes(view.run.output_bytes)}}) +
      "\n" + plain_tail(view.run.tail);
  return out;
}

}  // namespace cufit::report
