// SPDX-License-Identifier: Apache-2.0
// doctor's report as one page: no script, no font or picture from elsewhere (a
// Content-Security-Policy says so too), light and dark by the reader's setting, readable on a
// telephone and on paper. Everything from outside is escaped.
#include "report/report.h"

#include <algorithm>

#include "base/format.h"
#include "report/html/html_text.h"
#include "report/terminal/state_symbols.h"
#include "report/doctor_content.h"

namespace cufit::report {
namespace {

class HtmlWriter {
 public:
  HtmlWriter(const Page& page, const DoctorView& view, const std::string& lang)
      : page_(page), view_(view), lang_(lang) {}

  std::string write() {
    head();
    answer();
    if (!page_.findings.empty()) {
      section("findings");
      for (const FindingBlock& finding : page_.findings) this->finding(finding);
      out_ += "</section>\n";
    }
    chains();
    abilities();
    if (!page_.host_limits.empty()) {
      section("host_limits");
      out_ += "<div class=\"card\">";
      links(page_.host_limits, "state.");
      out_ += "</div></section>\n";
    }
    if (!page_.together.empty()) {
      section("together");
      out_ += "<div class=\"card\">";
      links(page_.together, "state.");
      out_ += "</div></section>\n";
    }
    problems();
    facts();
    out_ += "<footer>" + escape_html(say_("page.made_by", {{"version", CUFIT_VERSION}})) +
            "</footer>\n</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  void section(const std::string& name) {
    out_ += "<section><h2>" + escape_html(say_("heading." + name)) + "</h2>\n";
  }
  void head() { out_ += html_head(page_.answer + say_("colon") + page_.sentence, lang_, ""); }

  void answer() {
    out_ += format("<header class=\"{}\">\n", to_string(page_.verdict));
    out_ += "<p class=\"question\">" + escape_html(say_("title")) + "</p>\n";
    out_ += format("<h1><span class=\"disc\" aria-hidden=\"true\">{}</span><span>{}</span></h1>\n",
                   mark(page_.verdict), escape_html(page_.answer));
    out_ += "<p class=\"sentence\">" + escape_html(page_.sentence) + "</p>\n";
    std::string second = page_.counts;
    if (!page_.machine.empty()) second += (second.empty() ? "" : say_("semicolon")) + page_.machine;
    if (!second.empty()) out_ += "<p class=\"machine\">" + escape_html(second) + "</p>\n";
    for (const std::string& line : page_.origin)
      out_ += "<p class=\"origin\">" + escape_html(line) + "</p>\n";
    out_ += "</header>\n";
  }

  void evidence(const std::vector<std::string>& items) {
    if (items.empty()) return;
    out_ += "<ul class=\"evidence\">";
    for (const std::string& item : items) out_ += "<li>" + rich_html(item) + "</li>";
    out_ += "</ul>\n";
  }

  // A column of links: mark, name, state as a word, detail; evidence folded away.
  void links(const std::vector<Row>& rows, const std::string& words) {
    out_ += "<ol class=\"links\">\n";
    for (const Row& row : rows) {
      out_ += format("<li class=\"{}\"><span class=\"disc\" aria-hidden=\"true\">{}</span><div>",
                     to_string(row.state), mark(row.state));
      out_ += "<p class=\"name\">" + escape_html(row.name) + " <span class=\"word\">" +
              escape_html(say_(words + to_string(row.state))) + "</span></p>";
      if (!row.detail.empty()) out_ += "<p class=\"detail\">" + rich_html(row.detail) + "</p>";
      if (!row.evidence.empty()) {
        out_ += "<details><summary>" + escape_html(say_("part.evidence")) + "</summary>";
        evidence(row.evidence);
        out_ += "</details>";
      }
      out_ += "</div></li>\n";
    }
    out_ += "</ol>\n";
  }

  void chains() {
    if (page_.chains.empty() && page_.other_envs.empty()) return;
    section("chains");
    out_ += "<div class=\"chains\">\n";
    for (const ChainBlock& block : page_.chains) {
      out_ += format("<article class=\"card {}\"><h3>{}</h3>", to_string(block.state),
                     escape_html(block.gpus));
      if (!block.env_line.empty())
        out_ += "<p class=\"env\">" + escape_html(block.env_line) + "</p>\n";
      links(block.links, "state.");
      out_ += "</article>\n";
    }
    out_ += "</div>\n";
    if (!page_.other_envs.empty()) {
      out_ += "<p class=\"others\">" + escape_html(page_.other_envs_heading + say_("colon")) +
              "</p><ul class=\"others\">";
      for (const std::string& line : page_.other_envs) out_ += "<li>" + escape_html(line) + "</li>";
      out_ += "</ul>\n";
    }
    out_ += "</section>\n";
  }

  void part(const char* key, const std::string& text) {
    if (text.empty()) return;
    out_ += "<p><b>" + escape_html(say_(std::string("part.") + key) + say_("colon")) + "</b>" +
            rich_html(text) + "</p>\n";
  }

  void finding(const FindingBlock& finding) {
    std::string kind =
        finding.severity == Severity::note ? "note" : to_string(state_of(finding.severity));
    out_ +=
        format("<article class=\"card finding {}\" id=\"{}\">\n", kind, escape_html(finding.id));
    out_ += format("<h3><span class=\"word\">{} {}</span> {}</h3>\n", mark(finding.severity),
                   escape_html(say_(std::string("severity.") + to_string(finding.severity))),
                   rich_html(finding.title));
    if (!finding.subject.empty())
      out_ += "<p class=\"env\">" + escape_html(finding.subject) + "</p>\n";
    if (!finding.why.empty()) out_ += "<p>" + rich_html(finding.why) + "</p>\n";
    part("unknown_because", finding.unknown_because);
    next(finding);
    part("follows", finding.follows);
    part("rule", finding.rule);
    if (!finding.evidence.empty()) {
      out_ += "<p class=\"label\">" + escape_html(say_("part.evidence")) + "</p>";
      evidence(finding.evidence);
    }
    out_ += "</article>\n";
  }

  void next(const FindingBlock& finding) {
    if (finding.next.empty()) return;
    out_ += "<div class=\"next\"><b>" + escape_html(say_("part.next") + say_("colon")) + "</b>";
    for (const Piece& piece : finding.next) {
      out_ += piece.command ? "<pre><code>" + escape_html(piece.text) + "</code></pre>"
                            : rich_html(piece.text);
    }
    out_ += "</div>\n";
  }

  void abilities() {
    if (page_.abilities.empty()) return;
    section("abilities");
    for (const AbilityBlock& block : page_.abilities) {
      out_ += "<div class=\"card\">";
      if (!block.gpu.empty()) out_ += "<h3>" + escape_html(block.gpu) + "</h3>\n";
      out_ += "<ul class=\"abilities\">";
      for (const Row& row : block.rows) {
        out_ += format("<li class=\"{}\"><span class=\"word\">{} {}</span> <b>{}</b>",
                       to_string(row.state), mark(row.state),
                       escape_html(say_(std::string("ability_state.") + to_string(row.state))),
                       escape_html(row.name));
        if (!row.detail.empty())
          out_ += "<span class=\"detail\">" + rich_html(row.detail) + "</span>";
        out_ += "</li>\n";
      }
      out_ += "</ul></div>\n";
    }
    out_ += "</section>\n";
  }

  void problems() {
    if (page_.problems.empty()) return;
    section("problems");
    out_ += "<ul class=\"evidence\">";
    for (const std::string& problem : page_.problems) out_ += "<li>" + rich_html(problem) + "</li>";
    out_ += "</ul></section>\n";
  }

  void facts() {
    out_ += "<section><details class=\"facts\"><summary>" + escape_html(say_("heading.facts")) +
            format(" ({})", page_.facts.size()) +
            "</summary>\n<div class=\"scroll\"><table><thead><tr>";
    for (const char* key : {"page.field", "page.value", "page.source"})
      out_ += "<th>" + escape_html(say_(key)) + "</th>";
    out_ += "</tr></thead><tbody>\n";
    for (const FactLine& fact : page_.facts) {
      out_ += "<tr><td>" + escape_html(fact.path) + "</td><td>";
      out_ += fact.missing.empty() ? escape_html(fact.value)
                                   : "<i>" + escape_html(say_("missing." + fact.missing)) + "</i>";
      if (!fact.note.empty()) out_ += " (" + escape_html(fact.note) + ")";
      out_ += "</td><td>";
      if (!fact.source.empty()) out_ += escape_html(fact.source_kind + " " + fact.source);
      out_ += "</td></tr>\n";
    }
    out_ += "</tbody></table></div></details></section>\n";
  }

  const Page& page_;
  const DoctorView& view_;
  const std::string& lang_;
  const Labels say_{view_.knowledge, lang_};
  std::string out_;
};

}  // namespace

std::string doctor_html(const DoctorView& view, const Style& style) {
  Page page = make_page(view, style.lang, true);
  return HtmlWriter(page, view, style.lang).write();
}

}  // namespace cufit::report
