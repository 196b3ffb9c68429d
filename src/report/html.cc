// SPDX-License-Identifier: Apache-2.0
// doctor's report as one page: no script, no font or picture from elsewhere (a
// Content-Security-Policy says so too), light and dark by the reader's setting, readable on a
// telephone and on paper. Everything from outside is escaped.
#include "report/report.h"

#include <algorithm>

#include "base/format.h"
#include "report/html_style.h"
#include "report/marks.h"
#include "report/page.h"

namespace cufit::report {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Escapes and turns `quoted` spans into <code>.
std::string rich(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t open = text.find('`', at);
    size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    out += escape(text.substr(at, open - at));
    out += "<code>" + escape(text.substr(open + 1, close - open - 1)) + "</code>";
    at = close + 1;
  }
  return out + escape(text.substr(std::min(at, text.size())));
}

class Writer {
 public:
  Writer(const Page& page, const DoctorView& view, const std::string& lang)
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
    problems();
    facts();
    out_ += "<footer>" + escape(say("page.made_by", {{"version", CUFIT_VERSION}})) +
            "</footer>\n</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  std::string say(const std::string& key,
                  const std::map<std::string, std::string>& args = {}) const {
    return label(view_.knowledge, lang_, key, args);
  }
  void section(const std::string& name) {
    out_ += "<section><h2>" + escape(say("heading." + name)) + "</h2>\n";
  }
  void head() {
    out_ += format("<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n",
                   lang_ == "zh" ? "zh-CN" : "en");
    out_ +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta name=\"robots\" content=\"noindex\">\n";
    out_ += "<title>" + escape(page_.answer + say("colon") + page_.sentence) + "</title>\n";
    out_ += std::string("<style>") + k_page_style + "</style>\n</head>\n<body>\n<main>\n";
  }

  void answer() {
    out_ += format("<header class=\"{}\">\n", to_string(page_.verdict));
    out_ += "<p class=\"question\">" + escape(say("title")) + "</p>\n";
    out_ += format("<h1><span class=\"disc\" aria-hidden=\"true\">{}</span><span>{}</span></h1>\n",
                   mark(page_.verdict), escape(page_.answer));
    out_ += "<p class=\"sentence\">" + escape(page_.sentence) + "</p>\n";
    std::string second = page_.counts;
    if (!page_.machine.empty()) second += (second.empty() ? "" : say("semicolon")) + page_.machine;
    if (!second.empty()) out_ += "<p class=\"machine\">" + escape(second) + "</p>\n";
    for (const std::string& line : page_.origin)
      out_ += "<p class=\"origin\">" + escape(line) + "</p>\n";
    out_ += "</header>\n";
  }

  void evidence(const std::vector<std::string>& items) {
    if (items.empty()) return;
    out_ += "<ul class=\"evidence\">";
    for (const std::string& item : items) out_ += "<li>" + rich(item) + "</li>";
    out_ += "</ul>\n";
  }

  // A column of links: mark, name, state as a word, detail; evidence folded away.
  void links(const std::vector<Row>& rows, const std::string& words) {
    out_ += "<ol class=\"links\">\n";
    for (const Row& row : rows) {
      out_ += format("<li class=\"{}\"><span class=\"disc\" aria-hidden=\"true\">{}</span><div>",
                     to_string(row.state), mark(row.state));
      out_ += "<p class=\"name\">" + escape(row.name) + " <span class=\"word\">" +
              escape(say(words + to_string(row.state))) + "</span></p>";
      if (!row.detail.empty()) out_ += "<p class=\"detail\">" + rich(row.detail) + "</p>";
      if (!row.evidence.empty()) {
        out_ += "<details><summary>" + escape(say("part.evidence")) + "</summary>";
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
                     escape(block.gpus));
      if (!block.env_line.empty()) out_ += "<p class=\"env\">" + escape(block.env_line) + "</p>\n";
      links(block.links, "state.");
      out_ += "</article>\n";
    }
    out_ += "</div>\n";
    if (!page_.other_envs.empty()) {
      out_ += "<p class=\"others\">" + escape(page_.other_envs_heading + say("colon")) +
              "</p><ul class=\"others\">";
      for (const std::string& line : page_.other_envs) out_ += "<li>" + escape(line) + "</li>";
      out_ += "</ul>\n";
    }
    out_ += "</section>\n";
  }

  void part(const char* key, const std::string& text) {
    if (text.empty()) return;
    out_ += "<p><b>" + escape(say(std::string("part.") + key) + say("colon")) + "</b>" +
            rich(text) + "</p>\n";
  }

  void finding(const FindingBlock& finding) {
    std::string kind =
        finding.severity == Severity::note ? "note" : to_string(state_of(finding.severity));
    out_ += format("<article class=\"card finding {}\" id=\"{}\">\n", kind, escape(finding.id));
    out_ += format("<h3><span class=\"word\">{} {}</span> {}</h3>\n", mark(finding.severity),
                   escape(say(std::string("severity.") + to_string(finding.severity))),
                   rich(finding.title));
    if (!finding.subject.empty()) out_ += "<p class=\"env\">" + escape(finding.subject) + "</p>\n";
    if (!finding.why.empty()) out_ += "<p>" + rich(finding.why) + "</p>\n";
    part("unknown_because", finding.unknown_because);
    next(finding);
    part("follows", finding.follows);
    part("rule", finding.rule);
    if (!finding.evidence.empty()) {
      out_ += "<p class=\"label\">" + escape(say("part.evidence")) + "</p>";
      evidence(finding.evidence);
    }
    out_ += "</article>\n";
  }

  void next(const FindingBlock& finding) {
    if (finding.next.empty()) return;
    out_ += "<div class=\"next\"><b>" + escape(say("part.next") + say("colon")) + "</b>";
    for (const Piece& piece : finding.next) {
      out_ +=
          piece.command ? "<pre><code>" + escape(piece.text) + "</code></pre>" : rich(piece.text);
    }
    out_ += "</div>\n";
  }

  void abilities() {
    if (page_.abilities.empty()) return;
    section("abilities");
    for (const AbilityBlock& block : page_.abilities) {
      out_ += "<div class=\"card\">";
      if (!block.gpu.empty()) out_ += "<h3>" + escape(block.gpu) + "</h3>\n";
      out_ += "<ul class=\"abilities\">";
      for (const Row& row : block.rows) {
        out_ += format("<li class=\"{}\"><span class=\"word\">{} {}</span> <b>{}</b>",
                       to_string(row.state), mark(row.state),
                       escape(say(std::string("ability_state.") + to_string(row.state))),
                       escape(row.name));
        if (!row.detail.empty()) out_ += "<span class=\"detail\">" + rich(row.detail) + "</span>";
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
    for (const std::string& problem : page_.problems) out_ += "<li>" + rich(problem) + "</li>";
    out_ += "</ul></section>\n";
  }

  void facts() {
    out_ += "<section><details class=\"facts\"><summary>" + escape(say("heading.facts")) +
            format(" ({})", page_.facts.size()) +
            "</summary>\n<div class=\"scroll\"><table><thead><tr>";
    for (const char* key : {"page.field", "page.value", "page.source"})
      out_ += "<th>" + escape(say(key)) + "</th>";
    out_ += "</tr></thead><tbody>\n";
    for (const FactLine& fact : page_.facts) {
      out_ += "<tr><td>" + escape(fact.path) + "</td><td>";
      out_ += fact.missing.empty() ? escape(fact.value)
                                   : "<i>" + escape(say("missing." + fact.missing)) + "</i>";
      if (!fact.note.empty()) out_ += " (" + escape(fact.note) + ")";
      out_ += "</td><td>";
      if (!fact.source.empty()) out_ += escape(fact.source_kind + " " + fact.source);
      out_ += "</td></tr>\n";
    }
    out_ += "</tbody></table></div></details></section>\n";
  }

  const Page& page_;
  const DoctorView& view_;
  const std::string& lang_;
  std::string out_;
};

}  // namespace

std::string doctor_html(const DoctorView& view, const Style& style) {
  Page page = make_page(view, style.lang, true);
  return Writer(page, view, style.lang).write();
}

}  // namespace cufit::report
