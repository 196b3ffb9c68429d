// SPDX-License-Identifier: Apache-2.0
// explain's answer on a terminal, one screen: the first cause and how sure it is, what in the text
// says so, why, the one next step, the question that would decide; then what else fits and what is
// ruled out. -v shows everything.
#include <algorithm>

#include "base/format.h"
#include "report/explain.h"
#include "report/terminal/state_symbols.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using explain::Cause;
using explain::Confidence;
using explain::EvidenceLine;

constexpr size_t k_explain_text_evidence_shown = 3, k_others_shown = 4, k_ignored_shown = 3;
constexpr int k_place_columns = 28;    // a longer place has a line of its own
constexpr size_t k_lines_of_text = 3;  // of one line of evidence

// How sure an answer is, as mark and colour: proven, pointed to, one of several.
LinkState state_of_confidence(Confidence confidence) {
  return confidence == Confidence::certain  ? LinkState::broken
         : confidence == Confidence::likely ? LinkState::limited
                                            : LinkState::unknown;
}

// Wrapped, and words that are wider than the line cut: this is quoted to be seen, not copied, and a
// symbol of 300 letters would push what matters off the screen.
std::vector<std::string> cut_to(std::string_view text, int width) {
  std::vector<std::string> out;
  for (const std::string& line : wrap(text, width)) {
    std::string piece;
    int used = 0;
    for (size_t at = 0; at < line.size();) {
      const size_t length = decode(line, at).length;
      const std::string character = line.substr(at, length);
      const int wide = columns(character);
      if (used + wide > width) {
        out.push_back(std::move(piece));
        piece.clear();
        used = 0;
      }
      piece += character;
      used += wide;
      at += length;
    }
    out.push_back(std::move(piece));
  }
  return out;
}

class ExplainPainter : private TerminalWriter {
 public:
  ExplainPainter(const ExplainView& view, const Style& style)
      : TerminalWriter(view.knowledge, style),
        explanation_(view.explanation),
        hint_(view.hint),
        here_(view.here),
        all_(view.all || style.verbose),
        more_(std::string("part.") + view.more) {}

  std::string paint() {
    const std::vector<Cause>& causes = explanation_.causes;
    if (causes.empty()) {
      nothing();
    } else {
      head(causes[0]);
      body(causes[0]);
      others();
    }
    ignored();
    conflicts();
    if (style_.verbose) {
      oom();
      all_facts();
      out_ += '\n';
      tables();
    } else if (!causes.empty() && hint_) {
      out_ += '\n';
      flow(words(here_ ? "hint_here" : "hint"), "", "", "2");
    }
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return message(knowledge_, "explain." + key, style_.lang, args);
  }
  std::string text_of(const Cause& cause, const char* part, std::string_view lang) const {
    return cause_text(cause, part, lang, knowledge_);
  }
  std::string text_of(const Cause& cause, const char* part) const {
    return printable(text_of(cause, part, style_.lang));
  }

  // "118 lines read", "1 line read"
  std::string how_much() const {
    const std::string count = std::to_string(explanation_.lines);
    std::string out =
        explanation_.lines == 1 ? words("read.one") : words("read.many", {{"count", count}});
    if (explanation_.files > 1)
      out = words("read.files", {{"count", count}, {"files", std::to_string(explanation_.files)}});
    if (explanation_.thinned && style_.verbose) out += say("semicolon") + words("read.thinned");
    return out;
  }

  // "✗ Certain: The driver is too old for torch's CUDA runtime"
  void title(const Cause& cause) {
    const LinkState state = state_of_confidence(cause.confidence);
    const std::string left = std::string(mark(state)) + " " +
                             words(std::string("confidence.") + to_string(cause.confidence)) +
                             say("colon");
    flow_at(text_of(cause, "title"), coloured(left, std::string("1;") + colour_of(state)),
            columns(left), "  ", "1");
  }

  void head(const Cause& cause) {
    title(cause);
    flow(words(std::string("meaning.") + to_string(cause.confidence)) + say("semicolon") +
             how_much(),
         "  ", "  ", "2");
  }

  void body(const Cause& cause) {
    evidence(cause);
    part("why", text_of(cause, "why"));
    part("rule", text_of(cause, "rule"));
    next(next_pieces(text_of(cause, "next", style_.lang), text_of(cause, "next", "en"),
                     text_of(cause, "next", "zh")));
    if (cause.would_decide && cause.first != explain::Cause::First::decide) decide(cause);
  }

  void decide(const Cause& cause) {
    const std::string text = text_of(cause, "decide");
    if (!text.empty()) labelled(words("decide") + say("colon"), text);
  }

  std::string place(const EvidenceLine& line) const {
    return format("{}:{}", printable(line.file), line.line);
  }

  // What stands beside the text, as doctor words it; the kind of a source is with the finding.
  std::string beside(const Cause& cause, const EvidenceLine& line) const {
    checks::Evidence item{"file", line.text, line.fact};
    for (const checks::Evidence& own : cause.finding.evidence) {
      if (own.detail == line.text && own.value == line.fact) item.kind = own.kind;
    }
    return evidence_text(item, style_.lang, knowledge_);
  }

  // A line as it stands; of a black box, which is no text of anybody's, in the reader's language.
  std::string line_text(const std::string& text) const {
    return starts_with(text, "cufit ring: ")
               ? reworded(text, "explain.ring.", style_.lang, knowledge_)
               : text;
  }

  // "- train.log:12  RuntimeError: ..." and what it says, where that is more than the line.
  void evidence(const Cause& cause) {
    const size_t shown = all_ ? cause.evidence.size()
                              : std::min(cause.evidence.size(), k_explain_text_evidence_shown);
    std::vector<EvidenceLine> lines = cause.evidence;  // the text first, then what stands beside it
    std::stable_partition(lines.begin(), lines.end(),
                          [](const EvidenceLine& line) { return line.line != 0; });
    for (size_t i = 0; i < shown; ++i) {
      const EvidenceLine& line = lines[i];
      if (line.line == 0) {
        flow(beside(cause, line), "  - ", "    ");
        continue;
      }
      quoted(place(line), line.text.empty() ? fact_text(line.fact, style_.lang, knowledge_)
                                            : line_text(line.text));
      if (!line.fact.empty() && !line.text.empty())
        flow(printable(fact_text(line.fact, style_.lang, knowledge_)), "      = ", "        ");
    }
    if (shown < cause.evidence.size()) {
      flow(say(more_, {{"count", std::to_string(cause.evidence.size() - shown)}}), "  - ", "    ",
           "2");
    }
  }

  void quoted(const std::string& place, const std::string& text) {
    const std::string left = "  - " + coloured(place, "2") + "  ";
    const int left_columns = 6 + columns(place);
    const bool beside = left_columns <= k_place_columns && left_columns + 30 <= width_;
    const int indent = beside ? std::min(left_columns, 8) : 6;
    if (!beside) out_ += "  - " + coloured(place, "2") + "\n";
    const int room = std::max(width_ - (beside ? left_columns : indent), 16);
    std::vector<std::string> lines = cut_to(printable(text), room);
    if (lines.size() > k_lines_of_text && !style_.verbose) {
      lines.resize(k_lines_of_text);
      lines.back() += " ...";
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == 0 && beside) {
        out_ += left + lines[i] + "\n";
      } else {
        out_ += blanks(beside ? left_columns : indent) + lines[i] + "\n";
      }
    }
  }

  void conflicts() {
    if (!explanation_.conflicts.empty()) out_ += '\n';
    for (const explain::Conflict& one : explanation_.conflicts) {
      flow(words("conflict." + one.what,
                 {{"text", printable(one.text)}, {"beside", printable(one.beside)}}),
           "  - ", "    ");
    }
    if (!explanation_.conflicts.empty()) flow(words("conflict.apart"), "  ", "  ", "2");
  }

  void others() {
    const std::vector<Cause>& causes = explanation_.causes;
    if (causes.size() < 2) return;
    if (!style_.verbose) heading(words("heading.others"));
    const size_t end = all_ ? causes.size() : std::min(causes.size(), k_others_shown + 1);
    for (size_t i = 1; i < end; ++i) {
      if (style_.verbose) {
        out_ += "\n";
        title(causes[i]);
        body(causes[i]);
      } else {
        other(causes[i]);
      }
    }
    if (end < causes.size())
      flow(say(more_, {{"count", std::to_string(causes.size() - end)}}), "  ", "  ", "2");
  }

  // "  ! likely: title (train.log:12, train.log:40)"
  void other(const Cause& cause) {
    const LinkState state = state_of_confidence(cause.confidence);
    const std::string left = std::string("  ") + mark(state) + " " +
                             words(std::string("confidence.") + to_string(cause.confidence)) +
                             say("colon");
    std::vector<std::string> places;
    for (const EvidenceLine& line : cause.evidence) {
      if (line.line != 0 && places.size() < 2) places.push_back(place(line));
    }
    std::string text = text_of(cause, "title");
    if (!places.empty()) text += words("in_brackets", {{"text", join(places, say("list"))}});
    flow_at(text, coloured(left, colour_of(state)), columns(left), "    ");
  }

  std::string title_of(const std::string& id) const {
    checks::Finding finding;
    finding.id = id;
    return finding_text(finding, "title", style_.lang, knowledge_);
  }

  void ignored() {
    if (explanation_.ignored.empty()) return;
    heading(words("heading.ignored"));
    const size_t all = explanation_.ignored.size();
    const size_t shown = all_ ? all : std::min(all, k_ignored_shown);
    for (size_t i = 0; i < shown; ++i) {
      const explain::Ignored& one = explanation_.ignored[i];
      std::string why = clue_text(one.clue, style_.lang, knowledge_);
      if (one.contradiction.line != 0)
        why += words("in_brackets", {{"text", place(one.contradiction)}});
      flow(printable(title_of(one.id) + say("colon") + why), "  - ", "    ");
      if (style_.verbose && !one.contradiction.text.empty())
        flow(printable(one.contradiction.text), "      ", "      ", "2");
    }
    if (shown < all)
      flow(say(more_, {{"count", std::to_string(all - shown)}}), "  - ", "    ", "2");
  }

  void oom() {
    if (!explanation_.oom) return;
    const formats::OomMessage& oom = *explanation_.oom;
    std::vector<std::pair<std::string, std::string>> rows;
    auto add = [&](const char* key, const std::optional<uint64_t>& bytes) {
      if (!bytes) return;
      rows.emplace_back(words(std::string("oom.") + key), *bytes >= (uint64_t{1} << 60)
                                                              ? words("oom.not_available")
                                                              : format_bytes(*bytes));
    };
    add("tried", oom.tried);
    add("total", oom.total);
    add("free", oom.free);
    add("own", oom.own);
    add("allocated", oom.allocated);
    add("reserved", oom.reserved);
    if (oom.reserved && oom.allocated && *oom.reserved >= *oom.allocated)
      add("unused", *oom.reserved - *oom.allocated);
    add("pools", oom.pools);
    add("allowed", oom.allowed);
    for (const formats::OomProcess& other : oom.others) {
      rows.emplace_back(words("oom.other", {{"pid", std::to_string(other.pid)}}),
                        format_bytes(other.bytes));
    }
    if (rows.empty()) return;
    heading(words("heading.oom"));
    int name_columns = 0;
    for (const auto& row : rows) name_columns = std::max(name_columns, columns(row.first));
    for (const auto& [name, value] : rows)
      out_ += "  " + pad(name, name_columns) + "  " + value + "\n";
  }

  void all_facts() {
    std::vector<FactLine> lines;
    for (FactLine& line : fact_lines(explanation_.facts)) {
      line.value = printable(line.value);
      line.source = printable(line.source);
      line.note = printable(translated_error(line.note, style_.lang, knowledge_));
      if (line.missing == "not_asked") continue;  // the text does not say it: no news in a text
      // These describe the list, not a machine.
      if (line.path != "schema" && line.path != "origin" && line.path != "cufit_version")
        lines.push_back(std::move(line));
    }
    if (!lines.empty()) facts(lines);
  }

  // A black box is an answer also where no cause is in it.
  void ring() {
    const std::vector<EvidenceLine>& lines = explanation_.ring;
    const auto says = [&](std::string_view part) {
      return std::any_of(lines.begin(), lines.end(),
                         [&](const EvidenceLine& line) { return contains(line.text, part); });
    };
    const char* const key = !says("cufit ring: asked at the last refusal") ? "ring_never"
                            : says("the program survived")                 ? "ring_survived"
                                                                           : "ring_refused";
    const std::string left = std::string(mark(LinkState::unknown)) + " ";
    flow_at(words(std::string("nothing.") + key),
            coloured(left, std::string("1;") + colour_of(LinkState::unknown)), 2, "  ", "1");
    flow(how_much(), "  ", "  ", "2");
    for (const EvidenceLine& line : lines)
      if (style_.verbose || !contains(line.text, "cufit ring: of "))
        quoted(place(line), line_text(line.text));
    const auto step = [&](std::string_view lang) {
      return message(knowledge_, "explain.nothing.ring_log", lang, {});
    };
    next(next_pieces(step(style_.lang), step("en"), step("zh")));
  }

  void nothing() {
    if (!explanation_.ring.empty()) {
      ring();
      if (explanation_.ring.size() >= explanation_.lines) return;
      out_ += '\n';
    }
    const std::string left = std::string(mark(LinkState::unknown)) + " ";
    const bool empty = explanation_.lines == 0;
    flow_at(words(empty ? "nothing.empty" : "nothing.title"),
            coloured(left, std::string("1;") + colour_of(LinkState::unknown)), 2, "  ", "1");
    if (!empty) flow(how_much(), "  ", "  ", "2");
    out_ += "\n";
    flow(words("nothing.help"), "  ", "  ");
    for (const char* key : {"traceback", "smi", "packages", "here"})
      flow(words(std::string("nothing.") + key), "  - ", "    ");
  }

  const explain::Explanation& explanation_;
  const bool hint_, here_, all_;
  const std::string more_;
};

}  // namespace

std::string explain_text(const ExplainView& view, const Style& style) {
  return ExplainPainter(view, style).paint();
}

}  // namespace cufit::report
