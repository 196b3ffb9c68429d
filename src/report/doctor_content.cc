// SPDX-License-Identifier: Apache-2.0
#include "report/doctor_content.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "checks/report_sections.h"
#include "checks/torch_env.h"
#include "report/error_translation.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using Args = std::map<std::string, std::string>;

const char* verdict_word(LinkState state) {
  return state == LinkState::ok ? "works" : to_string(state);
}

int rank(LinkState state) {  // broken outweighs unknown: one certain break decides
  switch (state) {
    case LinkState::ok:
      return 0;
    case LinkState::limited:
      return 1;
    case LinkState::unknown:
      return 2;
    case LinkState::broken:
      return 3;
  }
  return 2;
}

class Builder {
 public:
  Builder(const DoctorView& view, std::string_view lang) : view_(view), lang_(lang) {}

  Page build(bool with_facts) {
    Page page;
    page.verdict = view_.report.verdict;
    page.chains = chains(page.other_envs, page.other_envs_heading);
    page.answer = say_(std::string("answer.") + verdict_word(page.verdict) +
                       (stops_programs() ? "_error" : ""));
    page.sentence = sentence();
    page.counts = counts();
    page.machine = machine();
    page.origin = origin();
    for (const checks::Finding& finding : view_.report.findings)
      page.findings.push_back(block(finding));
    page.abilities = abilities();
    for (const checks::Link& link : view_.report.host_limits)
      page.host_limits.push_back(row(link, "host."));
    for (const checks::Link& link : view_.report.together)
      page.together.push_back(row(link, "together."));
    for (const std::string& problem : view_.facts.problems)
      page.problems.push_back(printable(translated_error(problem, lang_, view_.knowledge)));
    if (with_facts) {
      page.facts = fact_lines(view_.facts);
      for (FactLine& line : page.facts) {
        line.value = printable(line.value);
        line.source = printable(line.source);
        line.note = printable(translated_error(line.note, lang_, view_.knowledge));
      }
    }
    return page;
  }

 private:
  bool has(const std::string& key) const {
    return !view_.knowledge.message("report." + key, lang_).empty();
  }
  std::string comma() const { return say_("comma"); }

  // A name of a link, data type or limit: its label, or the name itself for one that has none.
  std::string named(const std::string& prefix, const std::string& name) const {
    return has(prefix + name) ? say_(prefix + name) : printable(name);
  }

  std::string evidence(const checks::Evidence& item) const {
    return evidence_text(item, lang_, view_.knowledge);
  }

  Row row(const checks::Link& link, const std::string& prefix) const {
    Row out;
    out.state = link.state;
    out.name = named(prefix, link.name);
    std::string_view text = view_.knowledge.message(link.key, lang_);
    Args args = link_args(link, lang_, view_.knowledge);
    if (const auto because = args.find("because"); because != args.end())
      because->second = translated_error(because->second, lang_, view_.knowledge);
    out.detail = printable(text.empty() ? link.key : format_message(text, args));
    for (const checks::Evidence& item : link.evidence) out.evidence.push_back(evidence(item));
    return out;
  }

  FindingBlock block(const checks::Finding& finding) const {
    FindingBlock out;
    auto text = [&](const char* part) {
      return printable(finding_text(finding, part, lang_, view_.knowledge));
    };
    out.severity = finding.severity;
    out.id = printable(finding.id);
    const knowledge::FindingTexts* texts = view_.knowledge.find_texts(finding.id);
    if (texts) out.action = std::string(texts->action);
    out.title = text("title");
    out.why = text("why");
    out.rule = text("rule");
    out.next = next(finding);
    out.unknown_because =
        printable(translated_error(finding.unknown_because, lang_, view_.knowledge));
    out.subject = subject_text(finding.subject, lang_, view_.knowledge);
    for (const checks::Evidence& item : finding.evidence) out.evidence.push_back(evidence(item));
    std::vector<std::string> follows;
    for (const std::string& id : finding.consequences) {
      checks::Finding consequence;
      consequence.id = id;
      std::string title = finding_text(consequence, "title", lang_, view_.knowledge);
      // A title with placeholders cannot be filled here: a consequence is kept by its id only.
      follows.push_back(title == id || contains(title, "{") ? "`" + printable(id) + "`"
                                                            : printable(title));
    }
    out.follows = join(follows, say_("semicolon"));
    return out;
  }

  std::vector<Piece> next(const checks::Finding& finding) const {
    auto text = [&](std::string_view lang) {
      return finding_text(finding, "next", lang, view_.knowledge);
    };
    return next_pieces(text(lang_), text("en"), text("zh"));
  }

  const facts::PythonEnv* env(const std::string& path) const {
    for (const facts::PythonEnv& candidate : view_.facts.envs)
      if (candidate.path == path) return &candidate;
    return nullptr;
  }
  static bool has_torch(const facts::PythonEnv* env) {
    return env && (env->torch.version || !env->torch.path.empty());
  }

  std::string env_line(const facts::PythonEnv& env) const {
    std::vector<std::string> parts;
    const bool claimed = env.path == "(claimed)";  // of a text that names no folder
    if (!env.kind.empty() && !claimed)
      parts.push_back(has("env." + env.kind) ? say_("env." + env.kind) : printable(env.kind));
    if (env.python) parts.push_back("Python " + printable(*env.python));
    if (env.torch.version) {
      parts.push_back("torch " + printable(*env.torch.version));
    } else if (has_torch(&env)) {
      parts.push_back(say_("env.torch_unknown"));
    } else {
      parts.push_back(say_("env.no_torch"));
    }
    if (env.active) parts.push_back(say_("env.active"));
    return say_("env.line", {{"path", claimed ? say_("subject.claimed") : printable(env.path)},
                             {"summary", join(parts, comma())}});
  }

  // "0: NVIDIA H200 (9.0)" -> number and the rest.
  static std::pair<std::string, std::string> cut_gpu(const std::string& gpu) {
    size_t colon = gpu.find(':');
    if (colon == std::string::npos || colon == 0 || colon > 6) return {"", gpu};
    for (size_t i = 0; i < colon; ++i)
      if (gpu[i] < '0' || gpu[i] > '9') return {"", gpu};
    return {gpu.substr(0, colon), std::string(trim(gpu.substr(colon + 1)))};
  }

  // Two chains of one environment that differ only in the number of the GPU are one block.
  static std::string signature(const checks::Chain& chain) {
    std::string out = cut_gpu(chain.gpu).second + "\n" + chain.env;
    for (const checks::Link& link : chain.links) {
      out += "\n" + link.name + "\t" + to_string(link.state) + "\t" + link.key;
      if (link.name == "gpu" && link.state == LinkState::ok)
        continue;  // its args hold the number or the address
      for (const auto& [name, value] : link.args)
        if (name != "gpu" && name != "index") out += "\t" + name + "=" + value;
    }
    return out;
  }

  static std::string ranges(const std::vector<std::string>& numbers) {
    std::vector<uint32_t> values;  // of cut_gpu: at most six digits
    for (const std::string& one : numbers)
      values.push_back(static_cast<uint32_t>(parse_uint(one).value_or(0)));
    return number_ranges(values, ", ");
  }

  std::vector<ChainBlock> chains(std::vector<std::string>& other_envs,
                                 std::string& other_envs_heading) const {
    bool any_torch = false;
    for (const facts::PythonEnv& env : view_.facts.envs) any_torch |= has_torch(&env);
    // Without torch anywhere the first environment still shows the driver's side of the chain.
    std::string shown = view_.report.chains.empty() ? "" : view_.report.chains.front().env;

    std::vector<ChainBlock> out;
    std::vector<std::string> signatures;
    std::vector<std::vector<std::string>> numbers;
    for (const checks::Chain& chain : view_.report.chains) {
      const facts::PythonEnv* where = env(chain.env);
      if (where && !has_torch(where) && (any_torch || chain.env != shown)) continue;
      std::string key = signature(chain);
      auto [number, rest] = cut_gpu(chain.gpu);
      auto found = std::find(signatures.begin(), signatures.end(), key);
      if (found != signatures.end() && !number.empty()) {
        size_t at = static_cast<size_t>(found - signatures.begin());
        numbers[at].push_back(number);
        out[at].gpus = "GPU " + ranges(numbers[at]) + ": " + printable(rest);
        continue;
      }
      signatures.push_back(std::move(key));
      numbers.push_back({number});
      out.push_back(block(chain, where));
    }
    std::string heading = "heading.other_envs";
    for (const facts::PythonEnv& env : view_.facts.envs) {
      bool in_chain = std::any_of(out.begin(), out.end(),
                                  [&](const ChainBlock& b) { return b.env == env.path; });
      if (in_chain) continue;
      other_envs.push_back(env_line(env));
      if (has_torch(&env)) heading = "heading.envs";
    }
    other_envs_heading = say_(heading);
    return out;
  }

  ChainBlock block(const checks::Chain& chain, const facts::PythonEnv* where) const {
    ChainBlock out;
    auto [number, rest] = cut_gpu(chain.gpu);
    if (chain.gpu.empty()) {
      bool looked = !chain.links.empty() && chain.links.front().state == LinkState::broken;
      out.gpus = say_(looked ? "no_gpu" : "gpu_not_seen");
    } else {
      out.gpus = (number.empty() ? "" : "GPU " + number + ": ") + printable(rest);
    }
    out.env = printable(chain.env);
    if (where) out.env_line = env_line(*where);
    if (!where) out.env_line = out.env;
    for (const checks::Link& link : chain.links) {
      out.links.push_back(row(link, "link."));
      if (rank(link.state) > rank(out.state)) out.state = link.state;
    }
    return out;
  }

  // torch runs, and an error is left: of an extension, a partner package, another environment.
  bool stops_programs() const {
    return view_.report.verdict == LinkState::limited && view_.report.driver_branch == 0 &&
           std::any_of(view_.report.findings.begin(), view_.report.findings.end(),
                       [](const checks::Finding& one) { return one.severity == Severity::error; });
  }

  std::string sentence() const {
    std::set<std::string> gpus, usable;  // usable: from the environment that the verdict is about
    const facts::PythonEnv* main = checks::main_env(view_.facts);
    size_t running = 0;
    for (const checks::Chain& chain : view_.report.chains) {
      if (!chain.gpu.empty()) gpus.insert(chain.gpu);
      if ((main == nullptr || chain.env == main->path) &&
          checks::judge_chain(chain) != LinkState::broken)
        usable.insert(chain.gpu);
      LinkState worst = LinkState::ok;
      for (const checks::Link& link : chain.links)
        if (rank(link.state) > rank(worst)) worst = link.state;
      running += worst == LinkState::ok || worst == LinkState::limited;
    }
    if (view_.report.driver_branch != 0)
      return say_(std::string("verdict.") + verdict_word(view_.report.with_driver) + ".with_driver",
                  {{"driver", std::to_string(view_.report.driver_branch)}});
    std::string word = verdict_word(view_.report.verdict);
    size_t total = view_.report.chains.size();
    std::string many = gpus.empty() ? ".no_gpu" : gpus.size() == 1 ? ".one" : ".many";
    if (view_.report.verdict == LinkState::broken && running > 0) many = ".part";
    if (stops_programs()) many = ".error";
    if (view_.report.verdict == LinkState::limited && !usable.empty() &&
        usable.size() < gpus.size())
      many = ".some";
    for (const checks::Finding& finding : view_.report.findings)
      if (gpus.empty() && finding.id == "no_nvidia_gpu" && finding.severity == Severity::error)
        many = ".no_nvidia";
    return say_("verdict." + word + many, {{"gpus", std::to_string(gpus.size())},
                                           {"usable", std::to_string(usable.size())},
                                           {"running", std::to_string(running)},
                                           {"total", std::to_string(total)}});
  }

  std::string counts() const {
    std::vector<std::string> parts;
    for (Severity severity :
         {Severity::error, Severity::warning, Severity::note, Severity::unknown}) {
      size_t count = 0;
      for (const checks::Finding& finding : view_.report.findings)
        count += finding.severity == severity;
      if (count == 0) continue;
      std::string key =
          std::string("count.") + to_string(severity) + (count == 1 ? ".one" : ".many");
      parts.push_back(say_(key, {{"count", std::to_string(count)}}));
    }
    return join(parts, comma());
  }

  std::string machine() const {
    const facts::Facts& facts = view_.facts;
    std::vector<std::string> parts;
    if (facts.system.distribution) parts.push_back(*facts.system.distribution);
    if (facts.system.architecture) parts.push_back(*facts.system.architecture);
    const Fact<std::string>& driver =
        facts.kernel.version ? facts.kernel.version : facts.nvml.driver_version;
    if (driver) parts.push_back(say_("machine.driver", {{"version", *driver}}));
    if (facts.system.wsl) parts.push_back("WSL " + *facts.system.wsl);
    if (facts.system.container && *facts.system.container != "none") {
      parts.push_back(say_("machine.container", {{"kind", *facts.system.container}}));
    }
    return printable(join(parts, comma()));
  }

  std::vector<std::string> origin() const {
    std::vector<std::string> out;
    const facts::Facts& facts = view_.facts;
    if (facts.origin == "recording") out.push_back(say_("origin.recording"));
    if (facts.origin == "dump") out.push_back(say_("origin.dump"));
    bool assumed = facts.kernel.version.source.kind == SourceKind::assumed ||
                   facts.nvml.driver_version.source.kind == SourceKind::assumed;
    for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
      assumed |= gpu.name.source.kind == SourceKind::assumed ||
                 gpu.compute_capability.source.kind == SourceKind::assumed;
    }
    if (assumed) out.push_back(say_("origin.assumed"));
    return out;
  }

  // Equal GPUs share one block.
  std::vector<AbilityBlock> abilities() const {
    std::vector<AbilityBlock> out;
    std::string last = "\n";
    std::vector<std::vector<std::string>> numbers;
    for (const checks::Link& link : view_.report.abilities) {
      auto gpu = link.args.find("gpu");
      std::string name = gpu == link.args.end() ? "" : gpu->second;
      if (name != last) {
        out.push_back({printable(name), {}});
        last = name;
      }
      out.back().rows.push_back(row(link, "ability."));
    }
    std::vector<AbilityBlock> merged;
    for (AbilityBlock& block : out) {
      auto [number, rest] = cut_gpu(block.gpu);
      size_t at = 0;
      while (at < merged.size() && !(merged[at].gpu == rest && same(merged[at].rows, block.rows)))
        ++at;
      if (at == merged.size() || number.empty()) {
        merged.push_back({rest, std::move(block.rows)});
        numbers.push_back({number});
      } else {
        numbers[at].push_back(number);
      }
    }
    for (size_t i = 0; i < merged.size(); ++i) {
      if (!numbers[i].front().empty())
        merged[i].gpu = "GPU " + ranges(numbers[i]) + ": " + merged[i].gpu;
    }
    return merged;
  }
  static bool same(const std::vector<Row>& a, const std::vector<Row>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Row& x, const Row& y) {
      return x.state == y.state && x.name == y.name && x.detail == y.detail;
    });
  }

  const DoctorView& view_;
  std::string_view lang_;
  const Labels say_{view_.knowledge, lang_};
};

}  // namespace

Page make_page(const DoctorView& view, std::string_view lang, bool with_facts) {
  return Builder(view, lang).build(with_facts);
}

namespace {

bool in_brackets(std::string_view text) {
  size_t open = std::max(text.rfind('(') + 1, text.rfind("（") + 1);  // npos + 1 is 0
  size_t close = std::max(text.rfind(')') + 1, text.rfind("）") + 1);
  return open > close;
}

}  // namespace

std::string evidence_text(const checks::Evidence& item, std::string_view lang,
                          const knowledge::Knowledge& knowledge) {
  auto has = [&](const std::string& key) {
    return !knowledge.message("report." + key, lang).empty();
  };
  std::string key = "evidence." + item.kind;
  if (!has(key)) key = "evidence.file";
  if (item.value.empty()) key = has(key + ".bare") ? key + ".bare" : "evidence.file.bare";
  // What the kernel's log holds is quoted.
  const bool quoted = item.detail == "kernel log" || starts_with(item.detail, "Xid ") ||
                      starts_with(item.detail, "/dev/kmsg");
  const std::string value = quoted ? item.value : translated_error(item.value, lang, knowledge);
  return printable(
      label(knowledge, lang, key,
            {{"detail", translated_error(item.detail, lang, knowledge)}, {"value", value}}));
}

std::vector<Piece> next_pieces(const std::string& text, const std::string& en,
                               const std::string& zh) {
  if (text.empty()) return {};
  if (en == zh && !contains(text, "`")) return {{true, printable(text)}};
  return cut_commands(printable(text));
}

std::vector<Piece> cut_commands(std::string_view text) {
  std::vector<Piece> out;
  std::string plain;
  auto flush = [&] {
    std::string_view kept = trim(plain);
    // A command on its own line needs no full stop or comma after it.
    bool after_command = !out.empty() && out.back().command;
    for (bool more = after_command; more;) {
      more = false;
      for (std::string_view stop : {".", ",", ";", "。", "，", "；", "、"}) {
        if (!starts_with(kept, stop)) continue;
        kept = trim(kept.substr(stop.size()));
        more = true;
      }
    }
    if (!kept.empty()) out.push_back({false, std::string(kept)});
    plain.clear();
  };
  size_t at = 0;
  while (at < text.size()) {
    size_t open = text.find('`', at);
    size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    std::string_view span = text.substr(open + 1, close - open - 1);
    plain += text.substr(at, open - at);
    const std::string_view first = trim(span).substr(0, trim(span).find(' '));
    if (first != trim(span) && first[0] != '-' && !ends_with(first, ":") &&  // "medium: Memory"
        !in_brackets(plain)) {
      flush();
      out.push_back({true, std::string(trim(span))});
    } else {
      plain += text.substr(open, close + 1 - open);
    }
    at = close + 1;
  }
  plain += text.substr(std::min(at, text.size()));
  flush();
  return out;
}

}  // namespace cufit::report
