// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/node_answer.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/parallel.h"
#include "checks/fact_view.h"
#include "checks/health/health.h"
#include "commands/pack/pack_gpus.h"
#include "facts/facts_json.h"
#include "facts/skim_json.h"
#include "formats/prose/printable.h"
#include "report/message.h"
#include "report/resolve.h"
#include "report/step_command.h"
#include "resolve/wheel/target.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_findings = 64, k_most_text = 2000;

// What a shell said before the answer is no part of it.
std::string_view object_in(std::string_view text) {
  for (size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1))
    if (at == 0 || text[at - 1] == '\n') return text.substr(at);
  return text;
}

std::string member_text(const Json& json, const char* name) {
  const Json* found = json.member(name);
  if (found == nullptr || !found->is_string()) return {};
  return formats::printable(json.text_at(name), k_most_text);
}

std::vector<resolve::NodeFinding> told_findings(const Json& json) {
  std::vector<resolve::NodeFinding> out;
  const Json* findings = json.member("findings");
  if (findings == nullptr || !findings->is_array()) return out;
  for (const Json& one : *findings) {
    if (!one.is_object() || out.size() >= k_most_findings) continue;
    out.push_back({member_text(one, "id"), member_text(one, "severity"),
                   member_text(one, "subject"), member_text(one, "summary"),
                   member_text(one, "command")});
  }
  return out;
}

// A word that is none of ours, or two that do not go together, is no answer.
Result<void> take_word(const Json& json, resolve::FleetNode& node) {
  constexpr std::string_view k_verdicts[] = {"works", "limited", "broken", "unknown"};
  constexpr std::string_view k_actions[] = {"ok", "watch", "drain", "reboot", "replace"};
  node.verdict = member_text(json, "verdict");
  node.action = member_text(json, "action");
  const bool known =
      std::find(std::begin(k_verdicts), std::end(k_verdicts), node.verdict) !=
          std::end(k_verdicts) &&
      std::find(std::begin(k_actions), std::end(k_actions), node.action) != std::end(k_actions);
  const bool takes_out = node.action != "ok" && node.action != "watch";
  if (known && takes_out == (node.verdict == "broken")) return {};
  return fail(Code::malformed, format("its answer has the verdict `{}` with the action `{}`",
                                      node.verdict, node.action));
}

void judge_here(const facts::Facts& facts, const NodeJudges& judges, resolve::FleetNode& node) {
  const checks::HealthReport report = checks::judge_health(
      facts, judges.knowledge, judges.rules.value_or(checks::HealthRules()), {});
  node.action = report.action;
  node.verdict = report.usable == checks::Usable::no        ? "broken"
                 : report.usable == checks::Usable::unknown ? "unknown"
                 : report.findings.empty()                  ? "works"
                                                            : "limited";
  for (const checks::Finding& one : report.findings) {
    const Json command = report::finding_command(one, judges.knowledge);
    node.findings.push_back({one.id, to_string(one.severity), one.subject,
                             report::finding_text(one, "title", "en", judges.knowledge),
                             command.is_string() ? command.text() : std::string()});
  }
}

void choose_node_class(const NodeJudges& judges, NodeAnswer& answer) {
  if (!judges.lock) return;
  const resolve::Target target =
      resolve::target_of(answer.facts, judges.knowledge, answer.node.name);
  const resolve::Routing routing = resolve::route(*judges.lock, target, judges.knowledge);
  answer.chosen = routing.chosen;
  if (routing.chosen != resolve::Routing::npos || routing.verdicts.empty() ||
      routing.verdicts.front().reasons.empty())
    return;
  answer.why_no_class =
      report::reason_text(routing.verdicts.front().reasons.front(), "en", judges.knowledge);
}

}  // namespace

Result<NodeAnswer> read_node(const std::string& name, std::string_view text,
                             const NodeJudges& judges) {
  // Environments are no part of the machine, and the most of a recording.
  CUFIT_TRY(json,
            facts::read_json_object(facts::without_member(object_in(text), "envs"), "answer"));
  CUFIT_TRY(facts, facts::facts_from_value(json, "answer"));
  NodeAnswer out;
  out.node.name = name;
  out.node.cufit = formats::printable(facts.cufit_version, 40);
  const std::string action = member_text(json, "action");
  const bool judged = json.member("health") != nullptr && !action.empty();
  if (judged && !judges.rules) {
    if (const Result<void> told = take_word(json, out.node); !told) return told.error();
    out.node.findings = told_findings(json);
  } else {
    judge_here(facts, judges, out.node);
  }
  out.facts = std::move(facts);
  choose_node_class(judges, out);
  std::string classes;
  if (judges.lock)
    classes = out.chosen == resolve::Routing::npos ? "none" : judges.lock->classes[out.chosen].name;
  out.node.fingerprint = resolve::fingerprint_of(out.facts, classes);
  if (judges.gpus) out.gpus = gpus_of_machine(out.facts, judges.knowledge);
  return out;
}

namespace {

// A step beside other jobs is given none of the GPUs, or some.
bool sees_part(const facts::Facts& facts) {
  if (facts.nvml.init_result.value_or(-1) == 0 && facts.nvml.gpus.empty()) return true;
  for (const facts::DeviceNode& node : facts.kernel.nodes)
    if (checks::is_gpu_node(node.path) && node.mode && !node.usable) return true;
  return false;
}

}  // namespace

NodeAnswers read_nodes(std::vector<NodeText> texts, const NodeJudges& judges) {
  std::vector<std::optional<NodeAnswer>> answers(texts.size());
  std::vector<std::string> whys(texts.size());
  in_parallel(texts.size(), 16, [&](size_t i) {
    if (!texts[i].why.empty()) {
      whys[i] = texts[i].why;
      return;
    }
    Result<NodeAnswer> answer = read_node(texts[i].name, texts[i].text, judges);
    texts[i].text = {};
    if (!answer) {
      whys[i] = answer.error().what;
      return;
    }
    if (texts[i].shared && sees_part(answer->facts)) {
      whys[i] = "it runs jobs, and a step beside them does not see all its GPUs";
      return;
    }
    answer->facts = {};  // a thousand of them are much memory
    answers[i] = std::move(*answer);
  });
  NodeAnswers out;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (answers[i])
      out.answers.push_back(std::move(*answers[i]));
    else
      out.unreachable.push_back({texts[i].name, whys[i], texts[i].busy});
  }
  return out;
}

}  // namespace cufit::commands
