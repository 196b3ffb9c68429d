// SPDX-License-Identifier: Apache-2.0
// The whole picture of `cufit top`: its head, the parts of top_gpus.cc and top_processes.cc, what could not be read.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "report/error_translation.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/top_lines.h"

namespace cufit::report {

std::string cut(std::string_view utf8, int width) {
  int used = 0;
  size_t at = 0;
  while (at < utf8.size()) {
    const CodePoint point = decode(utf8, at);
    const int wide = columns(utf8.substr(at, point.length));
    if (used + wide > width) break;
    used += wide;
    at += point.length;
  }
  return std::string(utf8.substr(0, at));
}

namespace {

const char* ansi(Look look) {
  switch (look) {
    case Look::bold:
      return "1";
    case Look::dim:
      return "2";
    case Look::good:
      return "32";
    case Look::warn:
      return "33";
    case Look::bad:
      return "31";
    case Look::selected:
      return "7";
    default:
      return "";
  }
}

// "2026-11-29 02:45:10", of the offset that the picture has.
std::string clock_text(double time, int64_t offset) {
  const auto seconds = static_cast<int64_t>(std::floor(time)) + offset;
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) --days, rest += 86400;
  // Days since 1970-03-01 to a date of the Gregorian calendar: years of 365, fourth years, centuries.
  const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
  const int64_t day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
  return format("{}-{:02}-{:02} {:02}:{:02}:{:02}", yoe + era * 400 + (month <= 2 ? 1 : 0), month,
                day, rest / 3600, rest / 60 % 60, rest % 60);
}

void head(const TopWords& words, TopLines& out) {
  const watch::WatchedMachine& machine = words.machine;
  LineMaker line(words.width);
  line.add("cufit top", Look::bold);
  if (machine.time > 0) line.add("  " + clock_text(machine.time, words.picture.utc_offset_s));
  if (!machine.driver_version.empty())
    line.add("  " + words.say("top.driver", {{"version", printable(machine.driver_version)}}));
  out.head.push_back(line.done());
  if (!machine.stalled_seconds) return;
  LineMaker stale(words.width);
  const bool first = machine.gpus.empty();
  const char* const key = machine.stalled_end.empty() ? first ? "top.stalled_first" : "top.stalled"
                          : first                     ? "top.ended_first"
                                                      : "top.ended";
  stale.add(
      words.say(key,
                {{"seconds", format("{:.0f}", *machine.stalled_seconds)},
                 {"call", machine.stalled_call.empty() ? "NVML" : printable(machine.stalled_call)},
                 {"end", translated_error(machine.stalled_end, words.lang, words.knowledge)}}),
      Look::bad);
  out.head.push_back(stale.done());
}

// What NVML as a whole refused, and what a look as root would add; values that a card has not are no news.
void notes(const TopWords& words, TopLines& out) {
  const auto note = [&](const std::string& text, Look look) {
    for (const std::string& part : wrap(text, std::max(20, words.width))) {
      LineMaker line(words.width);
      line.add(part, look);
      out.notes.push_back(line.done());
    }
  };
  for (const facts::MissingValue& missing : words.machine.missing)
    if (missing.what == "NVML" || missing.what == "GPUs")
      note(words.say("top.no_nvml", {{"why", printable(missing.why)}}), Look::bad);
  size_t hidden = 0;
  for (const watch::WatchedProcess& process : words.machine.processes)
    hidden += process.now.owner.visible ? 0 : 1;
  if (hidden > 0)
    note(words.say("top.hidden_note", {{"count", std::to_string(hidden)}}), Look::dim);
}

void append(const std::vector<StyledLine>& lines, bool colour, std::string& out) {
  for (const StyledLine& line : lines) {
    std::string text;
    for (const StyledLine::Part& part : line.parts) {
      const std::string code = ansi(part.look);
      text += colour && !code.empty() ? "\x1b[" + code + "m" + part.text + "\x1b[0m" : part.text;
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  }
}

}  // namespace

int screen_columns(std::string_view utf8) { return columns(utf8); }
std::string screen_cut(std::string_view utf8, int width) { return cut(utf8, width); }

TopLines top_lines(const watch::WatchedMachine& machine, const TopPicture& picture,
                   const knowledge::Knowledge& knowledge, const Style& style) {
  const TopWords words{machine,    picture,
                       knowledge,  Labels(knowledge, style.lang),
                       style.lang, std::max(style.width, 40)};
  TopLines out;
  head(words, out);
  if (!machine.gpus.empty()) {
    out.gpus = top_gpu_lines(words);
    top_process_lines(words, out);
  }
  notes(words, out);
  return out;
}

std::string top_text(const watch::WatchedMachine& machine, const TopPicture& picture,
                     const knowledge::Knowledge& knowledge, const Style& style) {
  const TopLines lines = top_lines(machine, picture, knowledge, style);
  std::string out;
  append(lines.head, style.colour, out);
  for (const auto* part : {&lines.gpus, &lines.process_head})
    if (!part->empty()) {
      out += "\n";
      append(*part, style.colour, out);
    }
  append(lines.processes, style.colour, out);
  if (!lines.notes.empty()) out += "\n";
  append(lines.notes, style.colour, out);
  return out;
}

}  // namespace cufit::report
