// SPDX-License-Identifier: Apache-2.0
// A fleet as one page: a row for each node, a row for each setup.
#include <algorithm>

#include "base/format.h"
#include "base/host_list.h"
#include "report/fleet.h"
#include "report/html/html_text.h"
#include "report/message.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr const char* k_fleet_style =
    "table{border-collapse:collapse;width:100%;margin:8px 0 24px;background:var(--card)}"
    "th,td{text-align:left;vertical-align:top;padding:6px 10px;border:1px solid var(--line)}"
    "td.state{color:var(--tone);font-weight:600}h2{margin:24px 0 4px}";

class FleetPage {
 public:
  FleetPage(const FleetView& view, const std::string& lang) : view_(view), lang_(lang) {}

  std::string write() {
    const std::string title = word("nodes", {{"count", count_text()}});
    out_ = html_head("cufit: " + title, lang_, k_fleet_style);
    out_ += "<h1>" + escape_html(title) + "</h1>\n";
    nodes();
    groups();
    unreachable();
    out_ += "</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  std::string word(const std::string& key,
                   const std::map<std::string, std::string>& args = {}) const {
    return label(view_.knowledge, lang_, "fleet." + key, args);
  }
  std::string count_text() const {
    return std::to_string(view_.nodes.size() + view_.unreachable.size());
  }
  static std::string safe(const std::string& text) { return escape_html(printable(text)); }
  void cell(const std::string& html, const std::string& tone = "") {
    out_ += tone.empty() ? "<td>" : "<td class=\"state " + tone + "\">";
    out_ += html + "</td>";
  }

  void nodes() {
    out_ += "<table>\n";
    for (const resolve::FleetNode& node : view_.nodes) {
      const std::string tone = node.verdict == "works" ? "ok" : node.verdict;
      const bool known = tone == "ok" || tone == "limited" || tone == "broken";
      out_ += "<tr>";
      cell(safe(node.name));
      cell(escape_html(known ? label(view_.knowledge, lang_, "health.action." + node.action)
                             : word("no_word")),
           known ? tone : "unknown");
      std::string said;
      for (const resolve::NodeFinding& one : node.findings)
        said += "<p>" + safe(one.subject + ": " + one.summary) +
                (one.command.empty() ? "" : "<br><code>" + safe(one.command) + "</code>") + "</p>";
      cell(said);
      out_ += "</tr>\n";
    }
    out_ += "</table>\n";
  }

  void groups() {
    out_ += "<h2>" + escape_html(word(view_.has_baseline ? "against_baseline" : "against_most")) +
            "</h2>\n<table>\n";
    for (const resolve::NodeGroup& group : view_.comparison.groups) {
      out_ += "<tr>";
      cell(safe(host_list(group.nodes)));
      std::string said;
      for (const resolve::NodeDifference& one : group.differs)
        said += "<p>" +
                safe(word(view_.has_baseline ? "differs_baseline" : "differs",
                          {{"what", word("part." + one.what)},
                           {"value", one.value},
                           {"majority", one.majority}})) +
                "</p>";
      cell(said.empty() ? "=" : said);
      out_ += "</tr>\n";
    }
    out_ += "</table>\n";
  }

  void unreachable() {
    if (view_.unreachable.empty()) return;
    out_ += "<h2>" + escape_html(word("unreachable")) + "</h2>\n<table>\n";
    for (const resolve::UnreachableNode& one : view_.unreachable) {
      out_ += "<tr>";
      cell(safe(one.name));
      cell(safe(one.why));
      out_ += "</tr>\n";
    }
    out_ += "</table>\n";
  }

  const FleetView& view_;
  const std::string lang_;
  std::string out_;
};

}  // namespace

std::string fleet_html(const FleetView& view, const Style& style) {
  return FleetPage(view, style.lang).write();
}

}  // namespace cufit::report
