// SPDX-License-Identifier: Apache-2.0
// A fleet on a terminal: what is not usable first, then how nodes differ, then who did not answer.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/host_list.h"
#include "report/error_translation.h"
#include "report/fleet.h"
#include "report/message.h"
#include "report/terminal/state_symbols.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using resolve::FleetNode;
using resolve::NodeGroup;

// "gpu[001-003]" safe to print, and on one line.
std::string named(std::vector<std::string> nodes) {
  for (std::string& name : nodes)
    for (size_t at = 0; (at = name.find('\n', at)) != std::string::npos; at += 2)
      name.replace(at, 1, "\\n");
  return printable(host_list(std::move(nodes)));
}

class FleetPainter : private TerminalWriter {
 public:
  FleetPainter(const FleetView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    summary();
    nodes_not_well("broken");
    nodes_not_well("unknown");
    nodes_not_well("limited");
    groups();
    classes();
    jobs();
    unreachable();
    other_versions();
    return finish();
  }

 private:
  std::string word(const std::string& key,
                   const std::map<std::string, std::string>& args = {}) const {
    return say("fleet." + key, args);
  }

  size_t count(const char* verdict) const {
    return static_cast<size_t>(
        std::count_if(view_.nodes.begin(), view_.nodes.end(),
                      [&](const FleetNode& node) { return node.verdict == verdict; }));
  }

  void summary() {
    const size_t differ = static_cast<size_t>(
        std::count_if(view_.comparison.groups.begin(), view_.comparison.groups.end(),
                      [](const NodeGroup& group) { return !group.differs.empty(); }));
    std::vector<std::string> parts = {
        word("usable", {{"count", std::to_string(count("works") + count("limited"))}})};
    const auto add = [&](const char* key, size_t number) {
      if (number > 0) parts.push_back(word(key, {{"count", std::to_string(number)}}));
    };
    add("not_usable", count("broken"));
    add("not_known", count("unknown"));
    add("silent", view_.unreachable.size());
    add(differ == 1 ? "setup" : "setups", differ);
    const size_t all = view_.nodes.size() + view_.unreachable.size();
    flow(word(all == 1 ? "node" : "nodes", {{"count", std::to_string(all)}}) + say("colon") +
             join(parts, say("list")),
         "", "  ", "1");
  }

  // Nodes with the same first finding stand together.
  void nodes_not_well(const char* verdict) {
    std::map<std::string, std::vector<const FleetNode*>> alike;
    std::vector<std::string> order;
    for (const FleetNode& node : view_.nodes) {
      if (node.verdict != verdict) continue;
      const std::string key =
          node.action + "|" + (node.findings.empty() ? "" : node.findings.front().id);
      if (alike[key].empty()) order.push_back(key);
      alike[key].push_back(&node);
    }
    for (const std::string& key : order) {
      std::vector<std::string> names;
      for (const FleetNode* node : alike[key]) names.push_back(node->name);
      const FleetNode& first = *alike[key].front();
      out_ += "\n";
      const checks::Severity severity = std::string(verdict) == "broken" ? checks::Severity::error
                                        : std::string(verdict) == "limited"
                                            ? checks::Severity::warning
                                            : checks::Severity::unknown;
      const std::string action = label(knowledge_, style_.lang, "health.action." + first.action);
      const std::string left = std::string(mark(severity)) + " ";
      flow(named(names) + say("colon") +
               (severity == checks::Severity::unknown ? word("no_word") : action),
           left, "  ", "1");
      if (!first.findings.empty()) one_finding(first.findings.front(), alike[key].size() > 1);
    }
  }

  void one_finding(const resolve::NodeFinding& finding, bool several) {
    const checks::Finding known{
        finding.id, checks::Severity::error, finding.subject, {}, "", {}, {}, "", {}, false};
    const knowledge::FindingTexts* texts = knowledge_.find_texts(finding.id);
    // The node's words are English; a title has no arguments, so it can be said in any language.
    const std::string title =
        texts != nullptr ? finding_text(known, "title", style_.lang, knowledge_) : finding.summary;
    const bool of_gpu = !several && starts_with(finding.subject, "GPU ");
    const std::string said =
        finding.severity == "unknown" ? say("undecided.title", {{"title", title}}) : title;
    flow(printable((of_gpu ? finding.subject + say("colon") : "") + said), "  ", "    ");
    if (!finding.command.empty()) out_ += "    " + printable(finding.command) + "\n";
  }

  void groups() {
    if (view_.comparison.groups.empty()) return;
    heading(word(view_.has_baseline ? "against_baseline" : "against_most"));
    for (const NodeGroup& group : view_.comparison.groups) {
      flow(named(group.nodes) + say("colon") + what_it_is(group),
           group.differs.empty() ? "  = " : "  ! ", "    ");
      for (const resolve::NodeDifference& one : group.differs)
        flow(word(view_.has_baseline ? "differs_baseline" : "differs",
                  {{"what", word("part." + one.what)},
                   {"value", printable(value_word(one.value))},
                   {"majority", printable(value_word(one.majority))}}),
             "      ", "        ");
    }
  }

  std::string what_it_is(const NodeGroup& group) const {
    std::string driver;
    for (const resolve::FingerprintPart& part : group.fingerprint.parts)
      if (part.what == "driver") driver = part.value;
    return printable(word("kind", {{"gpus", value_word(group.fingerprint.gpus)},
                                   {"driver", value_word(driver)}}));
  }

  // Of resolve/fleet/fingerprint.cc; all others are names and versions.
  std::string value_word(const std::string& value) const {
    for (const char* one :
         {"none", "not known", "not_installed", "running", "stopped", "on", "off"})
      if (value == one) return word("value." + (value == "not known" ? "not_known" : value));
    return value;
  }

  void classes() {
    if (view_.classes.empty()) return;
    heading(word("classes"));
    for (const FleetClass& one : view_.classes)
      flow(one.nodes.empty() ? word("no_node") : named(one.nodes),
           "  " + printable(one.name) + say("colon"), "    ");
    std::map<std::string, std::vector<std::string>> whys;
    for (const resolve::UnreachableNode& one : view_.without_class)
      whys[one.why].push_back(one.name);
    for (const auto& [why, names] : whys)
      flow(word("without_class", {{"nodes", named(names)}, {"why", printable(why)}}), "  ! ",
           "    ");
  }

  void jobs() {
    if (view_.jobs.empty()) return;
    heading(word("jobs"));
    // Those of one `count` have the same line.
    std::vector<std::pair<std::string, std::string>> lines;
    for (const pack::JobNodes& job : view_.jobs) {
      std::string line = job.nodes.empty() ? word("no_node") : named(job.nodes);
      for (const pack::JobCannot& cannot : job.cannot)
        line += word("job_not_on", {{"nodes", named(cannot.nodes)},
                                    {"why", cannot_text(cannot, style_.lang, knowledge_)}});
      if (!lines.empty() && lines.back().second == line)
        lines.back().first += say("list") + printable(job.name);
      else
        lines.emplace_back(printable(job.name), line);
    }
    for (const auto& [names, line] : lines) flow(line, "  " + names + say("colon"), "    ");
  }

  void unreachable() {
    if (view_.unreachable.empty()) return;
    heading(word("unreachable"));
    std::map<std::string, std::vector<std::string>> whys;
    for (const resolve::UnreachableNode& one : view_.unreachable) whys[one.why].push_back(one.name);
    for (const auto& [why, names] : whys)
      flow(named(names) + say("colon") + printable(translated_error(why, style_.lang, knowledge_)),
           "  - ", "    ");
  }

  void other_versions() {
    if (view_.comparison.other_cufit.empty()) return;
    out_ += "\n";
    flow(word("other_cufit", {{"nodes", named(view_.comparison.other_cufit)},
                              {"version", printable(view_.comparison.cufit)}}),
         "", "  ");
  }

  const FleetView& view_;
};

}  // namespace

std::string fleet_text(const FleetView& view, const Style& style) {
  return FleetPainter(view, style).paint();
}

}  // namespace cufit::report
