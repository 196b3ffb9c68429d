// SPDX-License-Identifier: Apache-2.0
// resolve's answer on a terminal: per target the best wheel with what goes with it, the next ones,
// why not the others, one command.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/resolve.h"
#include "report/terminal/resolve_variants.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"
#include "resolve/wheel/obstacle.h"

namespace cufit::report {
namespace {

using resolve::Choice;
using resolve::Fit;
using resolve::Target;

constexpr size_t k_resolve_text_shown = 3;  // usable wheels without -v
constexpr size_t k_rejected = 6;            // groups of rejected ones without -v

class ResolvePainter : private TerminalWriter {
 public:
  ResolvePainter(const ResolveView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    for (size_t i = 0; i < view_.answers.size(); ++i) {
      if (!out_.empty()) out_ += "\n";
      const std::string& obstacle = i < view_.obstacles.size() ? view_.obstacles[i] : none_;
      show(view_.answers[i], false, obstacle);
      for (const std::string& one : variant_sentences(view_, i, style_.lang))
        flow(printable(one), "  ", "  ");
    }
    if (!view_.ignored.empty())
      flow(say(view_.ignored_near.empty() ? "resolve.ignored" : "resolve.ignored_near",
               {{"names", printable(join(view_.ignored, say("list")))},
                {"near", view_.ignored_near}}),
           "", "  ");
    if (!view_.ignored.empty() && !view_.answers.front().usable.empty())
      flow(say("resolve.open_torch", {{"torch", view_.answers.front().usable.front().wheel.torch}}),
           "", "  ");
    if (!view_.unused_measured.file.empty())
      flow(say("resolve.measured_unused",
               {{"file", printable(view_.unused_measured.file)},
                {"gpu", view_.unused_measured.gpu.empty() ? say("bench.cpu")
                                                          : printable(view_.unused_measured.gpu)}}),
           "! ", "  ", "33");
    if (!view_.doubtful_measured.empty())
      flow(say("resolve.measured_doubtful", {{"file", printable(view_.doubtful_measured)}}), "! ",
           "  ", "33");
    const std::string step = next_step();
    if (view_.no_uv && contains(step, "`uv ")) flow(say("resolve.no_uv"), "", "  ");
    tables();
    out_ += "\n";
    next(cut_commands(step));
    return finish();
  }

 private:
  std::string listed(const std::string& text) const {
    return printable(style_.lang == "zh" ? chinese_signs(text) : text);
  }

  std::string driver_of(const Target& target) const {
    if (target.driver)
      return say("resolve.driver", {{"driver", resolve::driver_text(*target.driver)}});
    if (target.driver_cuda)
      return say("resolve.driver_cuda", {{"driver", target.driver_cuda->text()}});
    return say(target.driver_state == Target::Driver::absent ? "resolve.driver_absent"
                                                             : "resolve.driver_not_told");
  }

  void show(const resolve::Answer& answer, bool group, const std::string& obstacle) {
    std::string gpus = resolve::gpus_text(answer.target);
    if (gpus.empty()) gpus = say("resolve.no_gpus");
    const bool bare = group || answer.target.label == "HERE";
    flow(say(bare ? "resolve.target_bare" : "resolve.target",
             {{"label", printable(answer.target.label)},
              {"gpus", listed(gpus)},
              {"driver", driver_of(answer.target)}}),
         "", "  ", "1");
    if (!obstacle.empty())
      flow(say("resolve.first_repair",
               {{"title", printable(obstacle)}, {"command", doctor_line(answer.target)}}),
           "  ! ", "    ", "31");
    for (const resolve::Disagreement& one : answer.disagreements)
      flow(say("resolve.disagree", {{"torch", one.torch},
                                    {"tag", one.tag},
                                    {"row", one.row},
                                    {"file", one.file},
                                    {"path", printable(one.path)}}),
           "  ! ", "    ", "33");
    if (answer.usable.empty()) {
      nothing(answer);
    } else {
      usable(answer);
    }
    if (!answer.beyond_tables.empty()) return;  // what is known says nothing of it
    if (!answer.last_for_gpus.torch.empty() && answer.groups.empty()) last(answer);
    if (answer.groups.empty()) others(answer);
  }

  void nothing(const resolve::Answer& answer) {
    const bool apart = resolve::served(answer);
    if (answer.beyond_tables.empty())
      out_ +=
          "  " +
          coloured(say(apart ? "resolve.not_together" : "resolve.nothing"), apart ? "33" : "31") +
          "\n";
    if (!answer.beyond_tables.empty()) {
      flow(beyond("resolve.beyond", answer), "  ", "  ");
      return;
    }
    if (!answer.conflict.empty() && !apart)
      flow(say(answer.conflict.size() == 1 ? "resolve.conflict_one" : "resolve.conflict",
               {{"demands", printable(join(demands(answer), " + "))}}),
           "  ", "  ");
    if (answer.groups.empty()) return;
    const bool modules = resolve::modules_conflict(answer.target, knowledge_);
    flow(say(modules ? "resolve.groups_modules"
             : apart ? "resolve.groups"
                     : "resolve.groups_some"),
         "  ", "  ");
    for (const resolve::Answer& group : answer.groups) {
      out_ += "\n";
      show(group, true, none_);
    }
  }

  std::string beyond(const char* key, const resolve::Answer& answer) const {
    return say(key, {{"requirement", printable(answer.beyond_tables)},
                     {"command", "uv pip install " + shell_word(answer.beyond_tables)},
                     {"newest", knowledge_.newest_torch().text()},
                     {"date", std::string(knowledge_.date)}});
  }

  std::vector<std::string> demands(const resolve::Answer& answer) const {
    return demand_texts(answer.conflict, style_.lang, knowledge_);
  }

  // The best, the newest with a full fit, and the next ones, each once.
  void usable(const resolve::Answer& answer) {
    std::vector<const Choice*> shown;
    const auto put = [&](const Choice& choice, const char* label) {
      if (std::find(shown.begin(), shown.end(), &choice) != shown.end()) return;
      shown.push_back(&choice);
      wheel(choice, label, shown.size() == 1);
    };
    put(answer.usable.front(), "resolve.best");
    for (const Choice& choice : answer.usable) {
      if (choice.verdict.fit != Fit::works) continue;
      put(choice, "resolve.full_fit");
      break;
    }
    for (const Choice& choice : answer.usable) {
      const bool compat = choice.verdict.fit == Fit::needs_compat;
      const bool newer = compat && choice.wheel.torch != shown.front()->wheel.torch;
      if (compat && newer) {
        put(choice, "resolve.with_compat");
        break;
      }
    }
    for (const Choice& choice : answer.usable)
      if (!choice.faster.empty()) put(choice, "resolve.next_best");
    for (const Choice& choice : answer.usable) {
      if (!style_.verbose && shown.size() >= k_resolve_text_shown) break;
      const bool same_torch = std::any_of(shown.begin(), shown.end(), [&](const Choice* other) {
        return other->wheel.torch == choice.wheel.torch;
      });
      if (style_.verbose || !same_torch) put(choice, "resolve.next_best");
    }
    const size_t left = answer.usable.size() - shown.size();
    if (left > 0)
      out_ += "  " + coloured(say("resolve.more", {{"count", std::to_string(left)}}), "2") + "\n";
  }

  void wheel(const Choice& choice, const char* label, bool in_full) {
    const bool dated = !choice.wheel.released.empty();
    std::string name = say(dated ? "resolve.wheel_released" : "resolve.wheel",
                           {{"torch", choice.wheel.torch},
                            {"released", choice.wheel.released},
                            {"tag", choice.wheel.tag},
                            {"python", choice.python.empty() ? "?" : choice.python}});
    if (choice.wheel.on_default_index) name += say("semicolon") + say("resolve.default_index");
    labelled_line(say(label), name, in_full ? "32" : "");
    for (const resolve::Reason& reason : choice.verdict.reasons)
      flow(printable(reason_text(reason, style_.lang, knowledge_)), "      ", "      ");
    if (choice.verdict.reasons.empty() && in_full)
      flow(say(choice.wheel.is_cpu() ? "resolve.works_cpu" : "resolve.works"), "      ", "      ");
    for (const resolve::MeasuredFaster& one : choice.faster)
      flow(measured_text(one, style_.lang, knowledge_), "      ", "      ");
    if (in_full || style_.verbose) companions(choice);
    if (in_full) built(choice);
  }

  // The price of what has no file for this torch, and where it has one.
  void built(const Choice& choice) {
    const resolve::Companion* one = built_here(choice, view_.request);
    if (one == nullptr || !choice.wheel.cuda) return;
    const std::string major = std::to_string(choice.wheel.cuda->part(0));
    const Choice* prebuilt = nullptr;
    for (const resolve::Answer& answer : view_.answers)
      for (const Choice& other : answer.usable)
        for (const resolve::Companion& file : other.companions)
          if (prebuilt == nullptr && file.package == one->package && !file.url.empty())
            prebuilt = &other;
    std::map<std::string, std::string> args = {
        {"package", one->package}, {"version", one->version}, {"cuda", major}};
    if (prebuilt != nullptr) {
      args["torch"] = prebuilt->wheel.torch;
      args["python"] = prebuilt->python;
      args["command"] = format("cufit resolve torch=={} {}", prebuilt->wheel.torch, one->package);
    }
    flow(say(prebuilt != nullptr ? "resolve.built_or" : "resolve.built", args), "      ", "      ");
  }

  void labelled_line(const std::string& label, const std::string& text, const char* code) {
    flow_at(text, "  " + coloured(label, std::string(code).empty() ? "1" : code) + say("colon"),
            2 + columns(label) + columns(say("colon")), "      ");
  }

  void companions(const Choice& choice) {
    std::string with, without;
    for (const resolve::Companion& one : choice.companions) {
      if (!one.version.empty()) {
        std::string name = one.package + " " + one.version;
        if (one.origin == "source")
          name =
              say("resolve.companion_note", {{"name", name}, {"note", say("resolve.from_source")}});
        with += (with.empty() ? "" : say("list")) + name;
      } else {
        without += (without.empty() ? "" : say("list")) +
                   say("resolve.companion_note",
                       {{"name", one.package},
                        {"note", std::string(knowledge_.message("resolve.companion." + one.why_not,
                                                                style_.lang))}});
      }
    }
    if (!with.empty()) flow(say("resolve.with") + " " + with, "      ", "      ");
    if (!without.empty()) flow(say("resolve.without") + " " + without, "      ", "      ");
  }

  void last(const resolve::Answer& answer) {
    const resolve::Wheel& wheel = answer.last_for_gpus;
    flow(say(wheel.released.empty() ? "resolve.last_undated" : "resolve.last",
             {{"torch", wheel.torch},
              {"released", wheel.released},
              {"tag", wheel.tag},
              {"gpus", listed(resolve::gpus_text(answer.target))}}),
         "  ", "  ");
  }

  // Wheels that fall for the same reasons, newest first, on one line.
  void others(const resolve::Answer& answer) {
    struct Group {
      std::string why;
      std::vector<const Choice*> wheels;
    };
    std::vector<Group> groups;
    for (const Choice& choice : answer.rejected) {
      std::string why;
      const auto& reasons = choice.verdict.reasons;
      for (size_t i = 0; i < reasons.size() && (i == 0 || style_.verbose); ++i)  // the decisive one
        why += (i > 0 ? say("semicolon") : "") + reason_text(reasons[i], style_.lang, knowledge_);
      const auto same = std::find_if(groups.begin(), groups.end(),
                                     [&](const Group& group) { return group.why == why; });
      if (same != groups.end())
        same->wheels.push_back(&choice);
      else
        groups.push_back({why, {&choice}});
    }
    if (groups.empty()) return;
    // What was asked for and cannot be comes before what nobody asked for.
    std::stable_partition(groups.begin(), groups.end(), [](const Group& group) {
      return group.wheels.front()->verdict.reasons.front().id != "requirement";
    });
    out_ += "  " + say("resolve.others") + "\n";
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!style_.verbose && i == k_rejected) {
        const std::string count = std::to_string(groups.size() - i);
        out_ += "    " + coloured(say("resolve.more", {{"count", count}}), "2") + "\n";
        return;
      }
      flow(names_of(groups[i].wheels) + say("colon") + printable(groups[i].why), "    ", "      ");
    }
  }

  // "2.11.0-2.15.0 cu130, cu132": from the oldest to the newest, and their variants.
  std::string names_of(const std::vector<const Choice*>& wheels) const {
    std::vector<std::string> tags;
    for (const Choice* choice : wheels)
      if (std::find(tags.begin(), tags.end(), choice->wheel.tag) == tags.end())
        tags.push_back(choice->wheel.tag);
    const std::string &newest = wheels.front()->wheel.torch, &oldest = wheels.back()->wheel.torch;
    return (newest == oldest ? newest : oldest + " - " + newest) + " " + join(tags, say("list"));
  }

  static std::map<std::string, std::string> compat_args(const Version& cuda,
                                                        const std::string& command) {
    const std::string major = std::to_string(cuda.part(0)), minor = std::to_string(cuda.part(1));
    return {{"command", command},
            {"package", "cuda-compat-" + major + "-" + minor},
            {"folder", "/usr/local/cuda-" + major + "." + minor + "/compat"}};
  }

  std::string next_step() const {
    const resolve::Answer& first = view_.answers.front();
    for (const resolve::Answer& answer : view_.answers) {
      if (resolve::served(answer)) continue;
      for (const resolve::Answer& group : answer.groups)
        if (group.usable.empty()) return way_out(group);
      return way_out(answer);
    }
    if (view_.answers.size() > 1 || !first.groups.empty()) {
      std::string command = "cufit lock";
      for (const formats::Requirement& one : view_.request.requirements)
        command += " " + shell_word(one.text);
      for (const resolve::Answer& answer : view_.answers)
        command += " --for " + shell_word(answer.target.label);
      const bool modules =
          std::any_of(view_.answers.begin(), view_.answers.end(), [&](const auto& answer) {
            return !answer.groups.empty() && resolve::modules_conflict(answer.target, knowledge_);
          });
      return say(modules ? "resolve.modules_step" : "resolve.lock",
                 {{"command", command + " -o ."}});
    }
    const Choice& best = first.usable.front();
    const bool no_driver = first.target.driver_state == Target::Driver::absent;
    if (no_driver && !best.wheel.is_cpu() && best.wheel.driver_min)
      return say("resolve.update_driver", {{"need", resolve::driver_text(*best.wheel.driver_min)}});
    const std::string command =
        install_line(best, first.target, view_.request, knowledge_,
                     view_.machines.empty() ? nullptr : view_.machines.front());
    for (const resolve::Reason& reason : best.verdict.reasons) {
      if (reason.id == "driver_compat" && best.wheel.cuda)
        return say("resolve.install_compat", compat_args(*best.wheel.cuda, command));
    }
    return say("resolve.install", {{"command", command}});
  }

  // Where nothing fits: a newer driver where that alone helps, another wheel's maker, or a demand
  // to take back.
  std::string way_out(const resolve::Answer& answer) const {
    if (!answer.beyond_tables.empty()) return beyond("resolve.beyond_step", answer);
    if (starts_with(answer.target.platform, "macos_")) return say("resolve.mac");
    std::optional<Version> driver;
    std::string older;
    // Demands that rule out every wheel do so under any driver.
    const auto& conflict = answer.conflict;
    const bool driver_may_help =
        conflict.empty() ||
        std::any_of(conflict.begin(), conflict.end(),
                    [](const std::string& demand) { return starts_with(demand, "driver "); });
    for (const Choice& choice : answer.rejected) {
      const auto& reasons = choice.verdict.reasons;
      if (std::any_of(reasons.begin(), reasons.end(),
                      [](const resolve::Reason& reason) { return reason.id == "jetson"; }))
        return say("resolve.jetson");
      std::optional<Version>
          need;  // the highest that this wheel asks for, if only drivers are asked
      for (const resolve::Reason& reason : reasons) {
        if (reason.id == "driver_minor" || reason.id == "gpu_ptx") continue;  // no obstacles
        if (driver_may_help && reason.id == "driver_for_gpu_new" && reasons.size() == 1)
          older = reason.args.at("need");
        const bool asks = reason.id == "driver_too_old" || reason.id == "driver_for_gpu_old";
        const auto wanted = asks ? parse_version(reason.args.at("need")) : std::nullopt;
        if (!wanted) {
          need.reset();
          break;
        }
        if (!need || *wanted > *need) need = wanted;
      }
      if (driver_may_help && need && (!driver || *need < *driver)) driver = need;
    }
    const std::string variants = variant_step(view_, answer);
    if (!variants.empty()) return say("resolve.variants_step", {{"command", variants}});
    if (driver) return say("resolve.update_driver", {{"need", resolve::driver_text(*driver)}});
    if (!older.empty()) return say("resolve.older_driver", {{"need", older}});
    if (const std::string unjudged = unjudged_line(answer); !unjudged.empty())
      return say("resolve.unjudged_step", {{"command", unjudged}});
    if (answer.conflict.empty()) return say("resolve.no_way");
    const std::string gpus = resolve::gpus_text(answer.target);
    if (answer.conflict.size() == 1 && answer.target.gpus.size() == 1 &&
        contains(answer.conflict[0], "(" + answer.target.gpus[0].cc.text() + ")"))
      return say("resolve.no_official", {{"gpu", gpus}});
    return say("resolve.relax", {{"demands", join(demands(answer), say("list"))}});
  }

  // Of a wheel that an index has and no table knows: it may fit.
  std::string unjudged_line(const resolve::Answer& answer) const {
    for (const Choice& choice : answer.rejected)
      if (choice.wheel.source == "index" && choice.verdict.reasons.size() == 1 &&
          choice.verdict.reasons[0].id == "code_unknown")
        return install_line(choice, answer.target, view_.request, knowledge_, nullptr);
    return {};
  }

  std::string doctor_line(const Target& target) const {
    return target.label == "HERE" ? "cufit doctor"
                                  : "cufit doctor --from " + shell_word(target.label);
  }

  const ResolveView& view_;
  const std::string none_;
};

}  // namespace

std::string resolve_text(const ResolveView& view, const Style& style) {
  return ResolvePainter(view, style).paint();
}

}  // namespace cufit::report
