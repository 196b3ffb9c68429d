// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/lock.h"
#include "report/terminal/state_symbols.h"
#include "report/terminal/mem_words.h"
#include "report/resolve.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_lock_text_evidence_shown = 4;

std::string lock_option(const std::string& folder) {
  return folder.empty() || folder == "." ? std::string() : " --lock " + shell_word(folder);
}

class LockPainter : private TerminalWriter {
 public:
  LockPainter(const knowledge::Knowledge& knowledge, const Style& style)
      : TerminalWriter(knowledge, style) {}

  std::string lock(const LockView& view) {
    const resolve::LockFile& lock = view.lock;
    flow(words(view.unchanged ? "unchanged" : "made",
               {{"classes", count("classes", lock.classes.size())},
                {"targets", count("targets", lock.targets.size())},
                {"file",
                 printable(view.folder == "." ? "cufit.lock" : view.folder + "/cufit.lock")}}),
         "", "  ", "1");
    int width = 0;
    for (const resolve::LockClass& one : lock.classes) width = std::max(width, columns(one.name));
    for (size_t i = 0; i < lock.classes.size(); ++i) {
      const resolve::LockClass& one = lock.classes[i];
      flow(words("class",
                 {{"torch", one.wheel.torch},
                  {"tag", one.wheel.tag},
                  {"python", one.python},
                  {"packages", count("packages", one.packages)},
                  {"download", download(one, i < view.unsized.size() ? view.unsized[i] : 0)}}),
           "  " + pad(one.name, width) + "  ", blanks(width + 4));
      flow(words("serves", {{"targets", printable(join(one.serves, "; "))}}), blanks(width + 4),
           blanks(width + 6));
      if (i < view.built.size() && !view.built[i].empty())
        flow(words("built", {{"packages", printable(join(view.built[i], ", "))}}),
             blanks(width + 4), blanks(width + 6), "33");
      const std::string fit = i < view.fits.size() ? resolve::to_string(view.fits[i]) : "works";
      if (fit != "works") flow(words("fit." + fit), blanks(width + 4), blanks(width + 6));
    }
    tables();
    const std::string packages = join(compat_packages(view), " ");
    next(cut_commands(words(packages.empty() ? "next" : "next_compat",
                            {{"lock", lock_option(view.folder)}, {"packages", packages}})));
    return finish();
  }

  // What the machines of some class need beneath it: "cuda-compat-13-2".
  std::vector<std::string> compat_packages(const LockView& view) const {
    std::vector<std::string> out;
    for (size_t i = 0; i < view.fits.size() && i < view.lock.classes.size(); ++i) {
      const knowledge::CudaTag* tag = knowledge_.find_cuda_tag(view.lock.classes[i].wheel.tag);
      const auto cuda = tag != nullptr ? parse_version(tag->cuda) : std::nullopt;
      if (view.fits[i] != resolve::Fit::needs_compat || !cuda) continue;
      out.push_back(format("cuda-compat-{}-{}", cuda->part(0), cuda->part(1)));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  std::string failure(const LockFailureView& view) {
    for (const resolve::Answer& answer : view.failed) {
      flow(words("failed", {{"target", printable(answer.target.label)}}), "", "  ", "1");
      if (!answer.beyond_tables.empty()) {
        flow(say("resolve.beyond", {{"requirement", printable(answer.beyond_tables)},
                                    {"newest", knowledge_.newest_torch().text()},
                                    {"date", std::string(knowledge_.date)}}),
             "  ", "  ");
        flow(say("resolve.beyond_step",
                 {{"command", "uv pip install " + shell_word(answer.beyond_tables)}}),
             "  ", "  ");
      } else if (!answer.conflict.empty()) {
        const bool one = answer.conflict.size() == 1;
        flow(words(one ? "conflict_one" : "conflict"), "  ", "  ");
        for (const std::string& demand : demand_texts(answer.conflict, style_.lang, knowledge_))
          flow(printable(demand), "  - ", "    ");
        if (!one) flow(words("conflict_way_out"), "  ", "  ", "2");
      } else if (!answer.rejected.empty() && !answer.rejected.front().verdict.reasons.empty()) {
        const resolve::Choice& first = answer.rejected.front();
        flow(words("newest", {{"torch", first.wheel.torch + "+" + first.wheel.tag}}) +
                 say("colon") + reason_text(first.verdict.reasons.front(), style_.lang, knowledge_),
             "  ", "  ");
      }
      if (!answer.last_for_gpus.torch.empty())
        flow(
            words("last", {{"torch", answer.last_for_gpus.torch + "+" + answer.last_for_gpus.tag}}),
            "  ", "  ");
    }
    tables();
    flow(words("nothing_written"), "", "", "2");
    if (view.others.empty()) return finish();
    std::vector<std::string> without;
    for (const resolve::Answer& answer : view.failed)
      without.push_back("`--for " + shell_word(printable(answer.target.label)) + "`");
    next(cut_commands(words("others", {{"others", printable(join(view.others, "; "))},
                                       {"without", join(without, say("list"))}})));
    return finish();
  }

  std::string findings(const FindingsView& view) {
    const bool good = only_notes(view);
    if (good) flow(say_plain(view.good), "", "  ", "1");
    bool first = !good;
    for (const checks::Finding& one : view.findings) {
      if (!first) out_ += "\n";
      first = false;
      finding(one);
    }
    if (!view.not_asked.empty()) flow(say_plain(view.not_asked), "", "  ", "2");
    if (view.says_tables || style_.verbose) tables();
    return finish();
  }

  std::string environments(const EnvListView& view) {
    int width = 0;
    for (const EnvRow& row : view.rows) width = std::max(width, columns(row.name));
    for (const EnvRow& row : view.rows) {
      std::string line = env(
          "state." + row.state,
          {{"created", row.created}, {"why", translated_error(row.why, style_.lang, knowledge_)}});
      flow(line, "  " + pad(row.name, width) + "  ", blanks(width + 4),
           row.state == "current" || row.state == "made" ? "32" : "");
      if (!row.torch.empty())
        flow(env("holds", {{"torch", row.torch},
                           {"python", row.python},
                           {"packages", count("packages", row.packages)}}),
             blanks(width + 4), blanks(width + 6));
      if (row.bytes > 0)
        flow(env(row.shared_bytes > 0 ? "size_shared" : "size",
                 {{"bytes", gib(row.bytes)}, {"shared", gib(row.shared_bytes)}}),
             blanks(width + 4), blanks(width + 6));
      if (row.state != "absent" && row.state != "removed")
        flow("`" + printable(row.folder) + "`", blanks(width + 4), blanks(width + 6), "2");
    }
    if (!view.next.empty()) next(cut_commands(say_plain(view.next, {{"at", view.at}})));
    return finish();
  }

 private:
  std::string say_plain(const std::string& key,
                        const std::map<std::string, std::string>& args = {}) const {
    return message(knowledge_, key, style_.lang, args);
  }
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say_plain("lock." + key, args);
  }
  std::string env(const std::string& key, const std::map<std::string, std::string>& args) const {
    return say_plain("env." + key, args);
  }
  std::string count(const std::string& key, size_t number) const {
    return words(key + (number == 1 ? ".one" : ".many"), {{"count", std::to_string(number)}});
  }

  // A size that the index does not give is not 0.
  std::string download(const resolve::LockClass& one, uint64_t unsized) const {
    if (unsized > 0 && one.download_bytes == 0) return words("download_unknown");
    return words(unsized > 0 ? "download_some" : "download",
                 {{"bytes", gib(one.download_bytes)}, {"packages", count("packages", unsized)}});
  }

  void finding(const checks::Finding& one) {
    const std::string code =
        one.severity == checks::Severity::note ? "34" : colour_of(state_of(one.severity));
    const std::string left = std::string(mark(one.severity)) + " " +
                             say(std::string("severity.") + to_string(one.severity)) + say("colon");
    flow_at(finding_text(one, "title", style_.lang, knowledge_) + "  [" +
                subject_text(one.subject, style_.lang, knowledge_) + "]",
            coloured(left, "1;" + code), columns(left), "  ", "1");
    flow(printable(finding_text(one, "why", style_.lang, knowledge_)), "  ", "  ");
    part("unknown_because", printable(one.unknown_because));
    for (size_t i = 0; i < std::min(one.evidence.size(), k_lock_text_evidence_shown); ++i)
      flow(printable(evidence_text(one.evidence[i], style_.lang, knowledge_)), "  - ", "    ", "2");
    next(next_pieces(finding_text(one, "next", style_.lang, knowledge_),
                     finding_text(one, "next", "en", knowledge_),
                     finding_text(one, "next", "zh", knowledge_)));
  }
};

}  // namespace

bool only_notes(const FindingsView& view) {
  return std::all_of(view.findings.begin(), view.findings.end(), [](const checks::Finding& one) {
    return one.severity == checks::Severity::note || one.severity == checks::Severity::ok;
  });
}

std::string lock_report_text(const LockView& view, const Style& style) {
  return LockPainter(view.knowledge, style).lock(view);
}
std::string lock_failure_text(const LockFailureView& view, const Style& style) {
  return LockPainter(view.knowledge, style).failure(view);
}
std::string findings_text(const FindingsView& view, const Style& style) {
  return LockPainter(view.knowledge, style).findings(view);
}
std::string env_list_text(const EnvListView& view, const Style& style) {
  return LockPainter(view.knowledge, style).environments(view);
}

}  // namespace cufit::report
