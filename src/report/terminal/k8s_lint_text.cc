// SPDX-License-Identifier: Apache-2.0
// k8s lint's answer on a terminal: each finding with the lines that mend it, and what could not be
// judged.
#include <algorithm>

#include "base/format.h"
#include "report/error_translation.h"
#include "report/k8s.h"
#include "report/terminal/state_symbols.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

// A name of a manifest must not begin a line of its own in the report.
std::string lint_line(std::string_view text) {
  std::string out = printable(text);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

class LintPainter : private TerminalWriter {
 public:
  LintPainter(const LintView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    headline();
    for (const resolve::LintFinding& one : view_.lint.findings) finding(one);
    if (style_.verbose) nodes();
    unjudged();
    problems();
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say("k8s." + key, args);
  }

  size_t count(Severity severity) const {
    return static_cast<size_t>(std::count_if(
        view_.lint.findings.begin(), view_.lint.findings.end(),
        [&](const resolve::LintFinding& one) { return one.finding.severity == severity; }));
  }

  void headline() {
    const size_t errors = count(Severity::error), warnings = count(Severity::warning),
                 notes = count(Severity::note);
    const bool none = view_.lint.pods == 0;
    const LinkState state = errors > 0                        ? LinkState::broken
                            : warnings > 0                    ? LinkState::limited
                            : none || !view_.problems.empty() ? LinkState::unknown
                                                              : LinkState::ok;
    const std::string code = std::string("1;") + colour_of(state);
    const std::map<std::string, std::string> args = {{"errors", std::to_string(errors)},
                                                     {"warnings", std::to_string(warnings)},
                                                     {"notes", std::to_string(notes)},
                                                     {"pods", std::to_string(view_.lint.pods)},
                                                     {"gpu", std::to_string(view_.lint.gpu_pods)}};
    const bool clean = errors + warnings + notes == 0;
    const char* key = none                      ? "head.no_pod"
                      : !clean                  ? "head.findings"
                      : !view_.problems.empty() ? "head.partly"
                                                : "head.good";
    flow_at(words(key, args), coloured(std::string(mark(state)) + " ", code), 2, "  ",
            code.c_str());
  }

  void finding(const resolve::LintFinding& one) {
    const checks::Finding finding = with_reason(one, style_.lang, knowledge_);
    const auto text = [&](const char* part, std::string_view lang) {
      return printable(finding_text(finding, part, lang, knowledge_));
    };
    const std::string code =
        finding.severity == Severity::note ? "34" : colour_of(state_of(finding.severity));
    const std::string left = std::string(mark(finding.severity)) + " " +
                             say(std::string("severity.") + to_string(finding.severity)) +
                             say("colon");
    out_ += "\n";
    flow_at(text("title", style_.lang), coloured(left, "1;" + code), columns(left), "  ", "1");
    out_ += "  " + coloured("[" + lint_line(finding.subject) + "]", "2") + "\n";
    flow(text("why", style_.lang), "  ", "  ");
    for (const checks::Evidence& item : finding.evidence)
      flow(evidence_text(item, style_.lang, knowledge_), "  - ", "    ", "2");
    const checks::Finding english = with_reason(one, "en", knowledge_);
    const checks::Finding chinese = with_reason(one, "zh", knowledge_);
    next(next_pieces(text("next", style_.lang), finding_text(english, "next", "en", knowledge_),
                     finding_text(chinese, "next", "zh", knowledge_)));
    if (one.yaml.empty()) return;
    flow(words("lines", {{"place", lint_line(one.place)}}), "  ", "  ");
    for (const std::string_view line : split_lines(one.yaml))
      if (!line.empty()) out_ += "      " + printable(line) + "\n";
  }

  void nodes() {
    if (view_.input.nodes.empty()) return;
    heading(words("heading.nodes"));
    for (const resolve::ClusterNode& node : view_.input.nodes) {
      std::string text = "`" + lint_line(node.name) + "`" + say("colon");
      std::vector<std::string> parts;
      if (node.target && !resolve::gpus_text(*node.target).empty())
        parts.push_back(lint_line(resolve::gpus_text(*node.target)));
      for (const auto& [name, number] : node.resources)
        parts.push_back(lint_line(name) + " " + std::to_string(number));
      flow(text + (parts.empty() ? words("no_gpu") : join(parts, say("comma"))), "  ", "    ");
    }
  }

  // What no manifest alone tells is one line: it stands behind nearly each report.
  void unjudged() {
    std::vector<std::string> usual, special;
    for (const resolve::Unjudged& one : view_.lint.unjudged) {
      const bool short_one =
          !style_.verbose && (one.id == "runtime_class" || one.id == "nodes" || one.id == "image");
      if (short_one)
        usual.push_back(words("unjudged_short." + one.id));
      else
        special.push_back(words("unjudged." + one.id, one.args));
    }
    if (!special.empty()) heading(words("heading.unjudged"));
    for (const std::string& text : special) flow(printable(text), "  - ", "    ", "2");
    if (usual.empty()) return;
    out_ += "\n";
    flow(printable(words("unjudged_short.all", {{"parts", join(usual, say("comma"))}})), "", "  ",
         "2");
  }

  void problems() {
    if (view_.problems.empty()) return;
    heading(words("heading.problems"));
    for (const std::string& one : view_.problems)
      flow(lint_line(translated_error(one, style_.lang, knowledge_)), "  - ", "    ");
  }

  const LintView& view_;
};

}  // namespace

std::string lint_text(const LintView& view, const Style& style) {
  return LintPainter(view, style).paint();
}

}  // namespace cufit::report
