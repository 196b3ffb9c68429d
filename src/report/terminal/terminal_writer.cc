// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/terminal_writer.h"

#include <algorithm>

#include "base/format.h"
#include "report/terminal/state_symbols.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_text_evidence_shown = 4;
constexpr int k_narrowest = 40, k_widest = 100;  // longer lines are harder to read

}  // namespace

const char* colour_of(LinkState state) {
  switch (state) {
    case LinkState::ok:
      return "32";
    case LinkState::limited:
      return "33";
    case LinkState::broken:
      return "31";
    case LinkState::unknown:
      return "36";
  }
  return "36";
}

TerminalWriter::TerminalWriter(const knowledge::Knowledge& knowledge, const Style& style)
    : knowledge_(knowledge),
      style_(style),
      width_(std::clamp(style.width, k_narrowest, k_widest)) {}

std::string TerminalWriter::say(const std::string& key,
                                const std::map<std::string, std::string>& args) const {
  return label(knowledge_, style_.lang, key, args);
}

std::string TerminalWriter::coloured(const std::string& text, const std::string& code) const {
  if (!style_.colour || code.empty() || text.empty()) return text;
  return "\x1b[" + code + "m" + text + "\x1b[0m";
}

void TerminalWriter::flow(const std::string& text, const std::string& first,
                          const std::string& rest, const char* code) {
  flow_at(text, first, columns(first), rest, code);
}

void TerminalWriter::flow_at(const std::string& text, const std::string& first, int first_columns,
                             const std::string& rest, const char* code) {
  int room = std::max(width_ - std::max(first_columns, columns(rest)), 16);
  bool at_first = true;
  for (const std::string& line : wrap(text, room)) {
    out_ += at_first ? first : rest;
    out_ += coloured(line, code) + "\n";
    at_first = false;
  }
}

std::string TerminalWriter::blanks(int count) {
  return std::string(static_cast<size_t>(std::max(count, 0)), ' ');
}

void TerminalWriter::heading(const std::string& text) {
  out_ += "\n";
  flow(text, "", "", "1");
}

void TerminalWriter::labelled(const std::string& name, const std::string& text) {
  std::string shown(trim(name));
  bool first = true;
  for (const std::string& line : wrap(name + text, width_ - 4)) {
    bool labelled = first && starts_with(line, shown);
    out_ += first ? "  " : "    ";
    out_ += (labelled ? coloured(shown, "1") + line.substr(shown.size()) : line) + "\n";
    first = false;
  }
}

void TerminalWriter::part(const char* key, const std::string& text) {
  if (!text.empty()) labelled(say(std::string("part.") + key) + say("colon"), text);
}

void TerminalWriter::next(const std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  std::string name = say("part.next") + say("colon");
  bool first = true;
  for (const Piece& piece : pieces) {
    if (piece.command) {
      if (first) out_ += "  " + coloured(std::string(trim(name)), "1") + "\n";
      // Never wrapped: it is there to be copied. A block of several lines stands under its first.
      for (std::string_view line : split(piece.text, '\n'))
        out_ += "      " + coloured(std::string(line), "1") + "\n";
    } else if (first) {
      labelled(name, piece.text);
    } else {
      flow(piece.text, "    ", "    ");
    }
    first = false;
  }
}

void TerminalWriter::facts(const std::vector<FactLine>& facts) {
  heading(say("heading.facts"));
  for (const FactLine& fact : facts) {
    std::string line = fact.path + ": ";
    line += fact.missing.empty() ? fact.value : say("missing." + fact.missing);
    if (!fact.note.empty()) line += " (" + fact.note + ")";
    if (!fact.source.empty()) line += "  [" + fact.source_kind + " " + fact.source + "]";
    std::replace(line.begin(), line.end(), '\n', ' ');
    out_ += "  " + line + "\n";  // one fact, one line: these are searched, not read
  }
}

void TerminalWriter::tables() { flow(tables_line(style_.lang, knowledge_), "", "  ", "2"); }

std::string TerminalWriter::finish() {
  while (ends_with(out_, "\n\n")) out_.pop_back();
  return std::move(out_);
}

void TerminalWriter::finding(const FindingBlock& finding) {
  out_ += "\n";
  std::string code =
      finding.severity == Severity::note ? "34" : colour_of(state_of(finding.severity));
  std::string left = std::string(mark(finding.severity)) + " " +
                     say(std::string("severity.") + to_string(finding.severity)) + say("colon");
  std::string head = finding.title;
  std::string subject = finding.subject.empty() ? "" : "[" + finding.subject + "]";
  bool fits = columns(left) + columns(head) + 2 + columns(subject) <= width_;
  if (!subject.empty() && fits) head += "  " + subject;
  flow_at(head, coloured(left, "1;" + code), columns(left), "  ", "1");
  if (!subject.empty() && !fits) out_ += "  " + coloured(subject, "2") + "\n";
  if (!finding.why.empty()) flow(finding.why, "  ", "  ");
  part("unknown_because", finding.unknown_because);
  size_t shown = style_.verbose ? finding.evidence.size()
                                : std::min(finding.evidence.size(), k_text_evidence_shown);
  for (size_t i = 0; i < shown; ++i) flow(finding.evidence[i], "  - ", "    ", "2");
  if (shown < finding.evidence.size()) {
    flow(say("part.more", {{"count", std::to_string(finding.evidence.size() - shown)}}), "  - ",
         "    ", "2");
  }
  part("follows", finding.follows);
  part("rule", finding.rule);
  next(finding.next);
}

}  // namespace cufit::report
