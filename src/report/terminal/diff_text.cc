// SPDX-License-Identifier: Apache-2.0
// diff's answer on a terminal: which side fails, what only that side is told and the facts it rests
// on, then what else differs, the likeliest to decide first.
#include <algorithm>

#include "base/format.h"
#include "checks/torch_env.h"
#include "report/diff.h"
#include "report/terminal/state_symbols.h"
#include "report/doctor_content.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_packages_shown = 12;
constexpr size_t k_diff_text_evidence_shown = 4;
constexpr int k_value_columns = 120;  // NVIDIA_REQUIRE_CUDA has a thousand
using Where = resolve::FindingChange::Where;
using Worse = resolve::MachineDifference::Worse;

class DiffPainter : private TerminalWriter {
 public:
  DiffPainter(const DiffView& view, const Style& style)
      : TerminalWriter(view.knowledge, style),
        view_(view),
        diff_(view.difference),
        page_a_(make_page({view.a.machine.facts, view.a.machine.report, view.knowledge}, style.lang,
                          false)),
        page_b_(make_page({view.b.machine.facts, view.b.machine.report, view.knowledge}, style.lang,
                          false)) {}

  std::string paint() {
    headline();
    side("A", view_.a, page_a_);
    side("B", view_.b, page_b_);
    for (const resolve::FindingChange& change : diff_.findings)
      if (!is_note(change) || style_.verbose) finding(change);
    notes();
    facts();
    packages();
    one_sided();
    shared();
    ending();
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say("diff." + key, args);
  }

  static bool is_note(const resolve::FindingChange& change) {
    return (change.a == nullptr || change.a->severity == Severity::note) &&
           (change.b == nullptr || change.b->severity == Severity::note);
  }

  void headline() {
    const size_t told = static_cast<size_t>(
        std::count_if(diff_.findings.begin(), diff_.findings.end(),
                      [](const resolve::FindingChange& change) { return !is_note(change); }));
    std::string key = diff_.worse == Worse::a           ? "a_worse"
                      : diff_.worse == Worse::b         ? "b_worse"
                      : diff_.unranked && diff_.differs ? "unranked"
                      : told > 0                        ? "findings"
                      : diff_.differs                   ? "facts"
                                                        : "same";
    if (diff_.worse != Worse::neither && told == 0) key += "_unexplained";
    const LinkState state = diff_.worse == Worse::a   ? page_a_.verdict
                            : diff_.worse == Worse::b ? page_b_.verdict
                            : diff_.differs           ? LinkState::limited
                                                      : LinkState::ok;
    const std::string code = std::string("1;") + colour_of(state);
    flow_at(words("head." + key), coloured(std::string(mark(state)) + " ", code), 2, "  ",
            code.c_str());
  }

  static const char* verdict(const Page& page) {
    return page.verdict == LinkState::ok ? "works" : to_string(page.verdict);
  }

  void side(const char* letter, const DiffSide& side, const Page& page) {
    std::string text = words("side." + side.kind, {{"name", printable(side.name)}}) + say("colon") +
                       words(std::string("verdict.") + verdict(page));
    const std::string gpus = resolve::gpus_summary(side.machine.facts);
    std::vector<std::string> parts;
    if (!page.machine.empty()) parts.push_back(page.machine);
    if (!gpus.empty()) parts.push_back(printable(gpus));
    if (const facts::PythonEnv* env = side.machine.env()) {
      if (env->python) parts.push_back("Python " + printable(*env->python));
      if (env->torch.version) parts.push_back("torch " + printable(*env->torch.version));
      if (side.kind != "environment")
        parts.push_back(words("env_at", {{"path", printable(env->path)}}));
    }
    flow(text, std::string("  ") + letter + "  ", "     ");
    if (!parts.empty()) flow(join(parts, say("comma")), "     ", "     ", "2");
  }

  // Blocks of the page stand in the order of the report's findings.
  static const FindingBlock& block_of(const Page& page, const checks::Report& report,
                                      const checks::Finding* finding) {
    return page.findings[static_cast<size_t>(finding - report.findings.data())];
  }

  void finding(const resolve::FindingChange& change) {
    const bool of_b = change.b != nullptr && (change.a == nullptr || diff_.worse != Worse::a);
    const FindingBlock& block = of_b ? block_of(page_b_, view_.b.machine.report, change.b)
                                     : block_of(page_a_, view_.a.machine.report, change.a);
    std::string where = change.where == Where::only_a   ? words("only", {{"side", "A"}})
                        : change.where == Where::only_b ? words("only", {{"side", "B"}})
                                                        : words("both", severities(change));
    const Severity severity = block.severity;
    const std::string code = severity == Severity::note ? "34" : colour_of(state_of(severity));
    const std::string left = std::string(mark(severity)) + " " + where + say("colon");
    out_ += "\n";
    flow_at(block.title, coloured(left, "1;" + code), columns(left), "  ", "1");
    if (!block.subject.empty()) out_ += "  " + coloured("[" + block.subject + "]", "2") + "\n";
    if (!block.why.empty()) flow(block.why, "  ", "  ");
    part("unknown_because", block.unknown_because);
    if (!change.facts.empty() || !change.packages.empty()) {
      labelled(words("rests_on") + say("colon"), "");
      const size_t shown = style_.verbose
                               ? change.facts.size()
                               : std::min(change.facts.size(), k_diff_text_evidence_shown);
      for (size_t i = 0; i < shown; ++i) row(diff_.facts.changes[change.facts[i]], "    ");
      if (shown < change.facts.size())
        flow(say("part.more", {{"count", std::to_string(change.facts.size() - shown)}}), "    ",
             "    ", "2");
      for (const size_t i : change.packages) package(diff_.packages[i], "    ");
    }
    const size_t shown = style_.verbose
                             ? block.evidence.size()
                             : std::min(block.evidence.size(), k_diff_text_evidence_shown);
    for (size_t i = 0; i < shown; ++i) flow(block.evidence[i], "  - ", "    ", "2");
    part("follows", block.follows);
    next(block.next);
  }

  std::map<std::string, std::string> severities(const resolve::FindingChange& change) const {
    return {{"a", say(std::string("severity.") + to_string(change.a->severity))},
            {"b", say(std::string("severity.") + to_string(change.b->severity))}};
  }

  void notes() {
    if (style_.verbose) return;
    std::vector<std::string> titles;
    for (const resolve::FindingChange& change : diff_.findings) {
      if (!is_note(change)) continue;
      const bool of_b = change.b != nullptr;
      const FindingBlock& block = of_b ? block_of(page_b_, view_.b.machine.report, change.b)
                                       : block_of(page_a_, view_.a.machine.report, change.a);
      titles.push_back(std::string(of_b ? "B" : "A") + say("colon") + block.title);
    }
    if (titles.empty()) return;
    heading(words("heading.notes"));
    for (const std::string& title : titles) flow(title, "  - ", "    ");
  }

  std::string cut(const std::string& text) const {
    const std::string safe = printable(text);
    if (style_.verbose || columns(safe) <= k_value_columns) return safe;
    std::string out;
    for (size_t at = 0; at < safe.size() && columns(out) < k_value_columns - 4;) {
      const CodePoint point = decode(safe, at);
      out += safe.substr(at, point.length);
      at += point.length;
    }
    return out + " ...";
  }

  // "driver" of "kernel.version"; the field itself, which `doctor -v` shows too, without a label.
  std::string name_of(const std::string& field) const {
    std::string key;
    for (const char c : field)
      if (c != '[' && c != ']') key += c;
    const std::string label_key = "diff.fact." + key;
    return knowledge_.message("report." + label_key, style_.lang).empty() ? "`" + field + "`"
                                                                          : say(label_key);
  }

  std::string name_of(const resolve::FactChange& change) const {
    std::string name = name_of(change.field);
    if (change.keys.empty()) return name;
    std::vector<std::string> keys;
    for (const std::string& key : change.keys) keys.push_back(printable(key));
    if (!style_.verbose && keys.size() > 8) {
      const std::string more = say("part.more", {{"count", std::to_string(keys.size() - 7)}});
      keys.resize(7);
      keys.push_back(more);
    }
    return name + " " + join(keys, say("list"));
  }

  void values(const std::string& name, const std::string& a, const std::string& b,
              const std::string& indent) {
    const std::string line = name + say("colon") + a + " -> " + b;
    if (columns(indent) + columns(line) <= width_) {
      out_ += indent + line + "\n";
      return;
    }
    flow(name + say("colon"), indent, indent + "  ");
    flow(a, indent + "  A  ", indent + "     ");
    flow(b, indent + "  B  ", indent + "     ");
  }

  void row(const resolve::FactChange& change, const std::string& indent) {
    const std::string none = words("not_there");
    values(name_of(change), change.a ? cut(in_words(*change.a)) : none,
           change.b ? cut(in_words(*change.b)) : none, indent);
  }

  std::string in_words(const std::string& value) const {
    return translated_error(value, style_.lang, knowledge_);
  }

  bool listed(const resolve::FactChange& change) const {
    return style_.verbose || change.weight == resolve::Weight::matters;
  }

  void facts() {
    std::vector<bool> said(diff_.facts.changes.size());
    for (const resolve::FindingChange& finding : diff_.findings)
      for (const size_t i : finding.facts)
        if (!is_note(finding) || style_.verbose) said[i] = true;
    bool any = false;
    const char* topic = "";
    for (const bool expected : {false, true}) {
      for (size_t i = 0; i < said.size(); ++i) {
        const resolve::FactChange& change = diff_.facts.changes[i];
        if (said[i] || !listed(change) || (change.weight == resolve::Weight::expected) != expected)
          continue;
        if (!any && !expected)
          heading(words(diff_.findings.empty() ? "heading.facts" : "heading.more_facts"));
        const char* name = expected ? "expected" : to_string(change.topic);
        if (std::string_view(name) != topic)
          out_ += "  " + coloured(words(std::string("topic.") + name), "1") + "\n";
        topic = name;
        any = true;
        row(change, "    ");
      }
    }
  }

  void package(const resolve::PackageChange& change, const std::string& indent) {
    const std::string none = words("not_there");
    values(printable(change.name), change.a.empty() ? none : printable(change.a),
           change.b.empty() ? none : printable(change.b), indent);
  }

  void packages() {
    const auto& all = diff_.packages;
    if (all.empty()) return;
    size_t added = 0, removed = 0;
    for (const resolve::PackageChange& change : all) {
      added += change.a.empty();
      removed += change.b.empty();
    }
    heading(words("heading.packages", {{"changed", std::to_string(all.size() - added - removed)},
                                       {"only_a", std::to_string(removed)},
                                       {"only_b", std::to_string(added)}}));
    const size_t shown = style_.verbose ? all.size() : std::min(all.size(), k_packages_shown);
    for (size_t i = 0; i < shown; ++i) package(all[i], "  ");
    if (shown < all.size())
      flow(say("part.more", {{"count", std::to_string(all.size() - shown)}}), "  ", "  ", "2");
  }

  // What one side could not read stays open; only fields that can decide are named.
  void one_sided() {
    std::vector<const resolve::OneSided*> open;
    for (const resolve::OneSided& one : diff_.facts.one_sided)
      if (style_.verbose || (one.decides && one.why != WhyNot::not_asked)) open.push_back(&one);
    if (open.empty()) return;
    heading(words("heading.one_sided"));
    for (const resolve::OneSided* one : open) {
      std::string name = name_of(one->field);
      if (!one->key.empty()) name += " " + printable(one->key);
      const std::string why = one->note.empty() ? say(std::string("missing.") + to_string(one->why))
                                                : printable(in_words(one->note));
      flow(words("one_sided", {{"name", name},
                               {"side", one->in_a ? "A" : "B"},
                               {"other", one->in_a ? "B" : "A"},
                               {"value", cut(in_words(one->value))},
                               {"why", why}}),
           "  ", "    ");
    }
  }

  void shared() {
    std::vector<std::string> titles;
    for (const resolve::FindingChange& change : diff_.shared)
      if (style_.verbose || !is_note(change))
        titles.push_back(change.b != nullptr
                             ? block_of(page_b_, view_.b.machine.report, change.b).title
                             : block_of(page_a_, view_.a.machine.report, change.a).title);
    if (titles.empty()) return;
    heading(words("heading.shared"));
    for (const std::string& title : titles) flow(title, "  - ", "    ");
  }

  void ending() {
    size_t hidden = 0;
    for (const resolve::FactChange& change : diff_.facts.changes) hidden += !listed(change);
    std::vector<std::string> lines;
    for (const DiffSide* side : {&view_.a, &view_.b})
      if (side->kind == "text")
        lines.push_back(words("from_text", {{"name", printable(side->name)}}));
    if (!diff_.env_compared &&
        (!view_.a.machine.facts.envs.empty() || !view_.b.machine.facts.envs.empty()))
      lines.push_back(words("no_env"));
    if (hidden == 1) lines.push_back(words("hidden_one"));
    if (hidden > 1) lines.push_back(words("hidden", {{"count", std::to_string(hidden)}}));
    if (!lines.empty()) out_ += "\n";
    for (const std::string& line : lines) flow(line, "", "", "2");
  }

  const DiffView& view_;
  const resolve::MachineDifference& diff_;
  const Page page_a_, page_b_;
};

}  // namespace

std::string diff_text(const DiffView& view, const Style& style) {
  return DiffPainter(view, style).paint();
}

}  // namespace cufit::report
