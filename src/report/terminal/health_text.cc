// SPDX-License-Identifier: Apache-2.0
#include "report/health.h"

#include <algorithm>

#include "base/format.h"
#include "report/doctor_content.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using checks::HealthReport;
using checks::Usable;

constexpr int k_line_columns = 80;  // node-problem-detector's default cuts there

// At most `room` columns; what is cut off is marked.
std::string cut_to(const std::string& text, int room) {
  if (columns(text) <= room) return text;
  std::string out;
  int used = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const std::string letter = text.substr(at, point.length);
    const int wide = columns(letter);
    if (used + wide > room - 3) break;
    out += letter;
    used += wide;
    at += point.length;
  }
  return out + "...";
}

class HealthWords {
 public:
  HealthWords(const HealthView& view, const Style& style) : view_(view), style_(style) {}

  std::string say(const std::string& key,
                  const std::map<std::string, std::string>& args = {}) const {
    return label(view_.knowledge, style_.lang, "health." + key, args);
  }

  // "Xid 79: the GPU fell off the bus" where there are such words; else the title.
  std::string short_text(const checks::Finding& finding) const {
    const std::string key = "report.health.short." + finding.id;
    const std::string_view text = view_.knowledge.message(key, style_.lang);
    const std::string words = text.empty()
                                  ? finding_text(finding, "title", style_.lang, view_.knowledge)
                                  : format_message(text, args_of(finding));
    const bool of_gpu = starts_with(finding.subject, "GPU ");
    return of_gpu ? finding.subject + style_colon() + words : words;
  }

  std::map<std::string, std::string> args_of(const checks::Finding& finding) const {
    std::map<std::string, std::string> args = finding.args;
    if (const auto meaning = args.find("meaning"); style_.lang == "zh" && meaning != args.end())
      if (const std::string_view zh = view_.knowledge.meaning_zh(meaning->second); !zh.empty())
        meaning->second = std::string(zh);
    return args;
  }

  std::string style_colon() const { return label(view_.knowledge, style_.lang, "colon", {}); }

  std::string what_is_here() const {
    const HealthReport& report = view_.report;
    const std::map<std::string, std::string> args = {{"gpus", std::to_string(report.gpus)},
                                                     {"name", report.gpu_name},
                                                     {"driver", report.driver}};
    std::string out = report.gpus == 0          ? say("no_gpu")
                      : report.gpu_name.empty() ? say("gpus", args)
                                                : say("equal_gpus", args);
    if (!report.driver.empty())
      out += label(view_.knowledge, style_.lang, "list", {}) + say("driver", args);
    return out;
  }

  std::string text() const {
    const HealthReport& report = view_.report;
    if (report.usable == Usable::unknown)
      return translated_error(report.unknown_because, style_.lang, view_.knowledge);
    if (report.usable == Usable::no) return short_text(report.findings.front());
    if (report.findings.empty()) return what_is_here();
    return what_is_here() + label(view_.knowledge, style_.lang, "semicolon", {}) +
           short_text(report.findings.front());
  }

 private:
  const HealthView& view_;
  const Style& style_;
};

class HealthPainter : private TerminalWriter {
 public:
  HealthPainter(const HealthView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), words_(view, style) {}

  std::string paint(const std::string& line) {
    out_ = line + "\n";
    checks::Report report;
    report.findings = view_.report.findings;
    const Page page = make_page({view_.facts, report, view_.knowledge}, style_.lang, false);
    for (const FindingBlock& block : page.findings) finding(block);
    missing();
    if (style_.verbose) rules();
    return finish();
  }

 private:
  void missing() {
    if (view_.report.missing.empty()) return;
    heading(words_.say("missing"));
    for (const HealthReport::Missing& one : view_.report.missing)
      flow(printable(one.what + words_.style_colon() +
                     translated_error(one.why, style_.lang, knowledge_)),
           "  - ", "    ");
  }

  void rules() {
    heading(words_.say("rules"));
    for (const HealthReport::Rule& rule : view_.report.rules) {
      const knowledge::HealthRule* row = nullptr;
      for (const knowledge::HealthRule& one : knowledge_.health_rules)
        if (one.id == rule.id) row = &one;
      const bool off = rule.level == checks::HealthLevel::off;
      const std::string state =
          words_.say(off ? "off" : std::string("state.") + checks::to_string(rule.state));
      const std::string left = "  " + pad(state, 10) + pad(rule.id, 16);
      const std::string_view meaning = row == nullptr        ? std::string_view()
                                       : style_.lang == "zh" ? row->zh
                                                             : row->meaning;
      flow(std::string(meaning), left, blanks(columns(left)));
      flow(rule.source, blanks(columns(left)), blanks(columns(left)), "2");
    }
  }

  const HealthView& view_;
  HealthWords words_;
};

}  // namespace

std::string health_line(const HealthView& view, ExitStyle exit_style, const Style& style) {
  const HealthWords words(view, style);
  const HealthReport& report = view.report;
  const std::map<std::string, std::string> args = {
      {"action", words.say("action." + report.action)}};
  std::string key = report.usable == Usable::yes       ? "usable"
                    : report.usable == Usable::unknown ? "unknown"
                                                       : "not_usable";
  if (exit_style == ExitStyle::nagios && report.usable == Usable::yes && !report.findings.empty())
    key = "warns";
  const std::string head =
      words.say((exit_style == ExitStyle::nagios ? "nagios." : "node.") + key, args);
  // One line, whatever a driver puts into its messages.
  std::string text = printable(words.text());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return head + cut_to(text, k_line_columns - columns(head));
}

std::string health_text(const HealthView& view, ExitStyle exit_style, const Style& style) {
  return HealthPainter(view, style).paint(health_line(view, exit_style, style));
}

}  // namespace cufit::report
