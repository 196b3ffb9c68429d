// SPDX-License-Identifier: Apache-2.0
// image audit's answer on a terminal: what the image holds, where it runs, what is wrong with it,
// what takes room for nothing.
#include <algorithm>

#include "base/format.h"
#include "checks/torch_env.h"
#include "report/image.h"
#include "report/terminal/state_symbols.h"
#include "report/doctor_content.h"
#include "report/resolve.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_image_text_shown = 6;

// Names and paths of an image must not begin a line of their own in the report.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n')
      out += "\\x0a";
    else
      out += c;
  }
  return out;
}

class ImagePainter : private TerminalWriter {
 public:
  ImagePainter(const ImageView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), audit_(view.audit) {}

  std::string paint() {
    headline();
    origin();
    torches();
    targets();
    rules();
    libraries();
    driver();
    for (const resolve::ImageDefect& defect : audit_.defects) this->defect(defect);
    findings();
    settings();
    layers();
    problems();
    return finish();
  }

 private:
  using Args = std::map<std::string, std::string>;
  std::string words(const std::string& key, const Args& args = {}) const {
    return say("image." + key, args);
  }

  void headline() {
    const bool torch = !audit_.torches.empty();
    const bool defects = audit_.has_defects();
    // Not a word of praise for what could not be looked at.
    const bool unread = std::any_of(
        audit_.torches.begin(), audit_.torches.end(),
        [](const resolve::ImageTorch& one) { return one.wheel.cuda && !one.code_known; });
    const bool partly = !view_.image.problems.empty();
    const LinkState state = defects            ? LinkState::broken
                            : !torch           ? LinkState::limited
                            : unread || partly ? LinkState::unknown
                                               : LinkState::ok;
    const std::string code = std::string("1;") + colour_of(state);
    const bool rules =
        std::any_of(audit_.rules.begin(), audit_.rules.end(), [](const resolve::ImageRule& rule) {
          return rule.state == resolve::RuleState::broken && rule.severity != Severity::note;
        });
    flow_at(words(rules                  ? "head.rules"
                  : defects              ? "head.defects"
                  : !torch               ? "head.no_torch"
                  : unread               ? "head.unread"
                  : partly               ? "head.partly"
                  : audit_.keeps_rules() ? "head.kept"
                                         : "head.good"),
            coloured(std::string(mark(state)) + " ", code), 2, "  ", code.c_str());
  }

  void origin() {
    const facts::OpenedImage& image = view_.image;
    std::vector<std::string> parts = {
        words("layout." + std::string(image.layout == "docker archive" ? "docker"
                                      : image.layout == "OCI archive"  ? "oci_archive"
                                                                       : "oci"))};
    if (!image.tags.empty()) parts.push_back(one_line(image.tags[0]));
    parts.push_back(one_line(image.config.os + "/" + image.config.architecture));
    parts.push_back(words("layers", {{"count", std::to_string(image.layers.size())},
                                     {"files", std::to_string(audit_.files)},
                                     {"bytes", format_bytes(audit_.file_bytes)}}));
    flow("`" + one_line(image.path) + "`" + say("colon") + join(parts, say("comma")), "  ", "  ");
    std::vector<std::string> system;
    if (view_.facts.system.distribution)
      system.push_back(one_line(*view_.facts.system.distribution));
    if (view_.facts.system.glibc) system.push_back("glibc " + one_line(*view_.facts.system.glibc));
    for (const facts::Toolkit& toolkit : view_.facts.toolkits)
      if (toolkit.version)
        system.push_back(words("toolkit", {{"path", one_line(toolkit.path)},
                                           {"version", one_line(*toolkit.version)}}));
    if (!system.empty()) flow(join(system, say("comma")), "  ", "  ", "2");
    if (!image.platforms.empty())
      flow(words("platforms", {{"platforms", one_line(join(image.platforms, ", "))}}), "  ", "  ");
    if (image.other_images > 0)
      flow(words("others", {{"count", std::to_string(image.other_images)}}), "  ", "  ");
  }

  // "8.0 8.6 9.0, PTX 9.0" as the file says.
  std::string code_of(const resolve::Wheel& wheel) const {
    const std::string cubins = join(resolve::gpu_capabilities(wheel, knowledge_), " ");
    const std::string ptx = join(resolve::gpu_ptx(wheel), " ");
    if (!ptx.empty()) return cubins + (cubins.empty() ? "" : say("comma")) + "PTX " + ptx;
    // Nothing but PTX for one capability: better as the file says it than not at all.
    if (cubins.empty())
      return "PTX " + join(resolve::capabilities_of(wheel, formats::CodeKind::ptx), " ");
    return cubins;
  }

  void torches() {
    heading(words("heading.torch"));
    if (audit_.torches.empty()) flow(words("no_torch"), "  ", "  ");
    for (const resolve::ImageTorch& torch : audit_.torches) {
      const facts::PythonEnv& env = view_.facts.envs[torch.env];
      flow(words("torch", {{"version", env.torch.version ? one_line(*env.torch.version) : "?"},
                           {"python", env.python ? one_line(*env.python) : "?"},
                           {"path", one_line(env.path)}}),
           "  ", "    ");
      const resolve::Wheel& wheel = torch.wheel;
      if (!wheel.cuda) {
        flow(words("cpu_build"), "    ", "    ");
        continue;
      }
      if (!torch.code_known || wheel.code.empty())
        flow(words("code_unknown"), "    ", "      ");
      else
        flow(words("runs_on", {{"code", code_of(wheel)}, {"file", one_line(wheel.source)}}), "    ",
             "      ");
      if (wheel.driver_min)
        flow(words(wheel.driver_full ? "driver_both" : "driver_min",
                   {{"min", resolve::driver_text(*wheel.driver_min)},
                    {"full", wheel.driver_full ? resolve::driver_text(*wheel.driver_full) : ""},
                    {"cuda", wheel.cuda->text()}}),
             "    ", "      ");
      extensions(env);
    }
  }

  void extensions(const facts::PythonEnv& env) {
    std::map<std::string, std::vector<formats::DeviceCode>> code;
    for (const facts::Binary& binary : env.binaries) {
      if (checks::is_torch_binary(env, binary) || binary.device_code.empty()) continue;
      auto& all = code[binary.package.empty() ? binary.path : binary.package];
      all.insert(all.end(), binary.device_code.begin(), binary.device_code.end());
    }
    for (const auto& [package, all] : code) {
      resolve::Wheel wheel;
      wheel.code = all;
      flow(words("extension", {{"package", one_line(package)}, {"code", code_of(wheel)}}), "    ",
           "      ");
    }
  }

  void targets() {
    if (audit_.targets.empty()) return;
    heading(words("heading.targets"));
    for (size_t i = 0; i < audit_.targets.size(); ++i) {
      if (audit_.torches.empty())
        row(LinkState::broken,
            one_line(audit_.targets[i].label) + say("colon") + words("no_torch"));
      if (audit_.torches.size() > 1) served(i);
      for (const resolve::ImageTorch& torch : audit_.torches) target(i, torch);
    }
  }

  // Of several environments one that serves the target is enough.
  void served(size_t i) {
    const std::vector<size_t> by = audit_.served_by(i);
    std::vector<std::string> names;
    LinkState state = by.empty() ? LinkState::broken : LinkState::limited;
    for (const size_t one : by) {
      names.push_back(one_line(audit_.torches[one].label));
      if (audit_.torches[one].verdicts[i].fit == resolve::Fit::works) state = LinkState::ok;
    }
    // One that is not certain does not let the rest say that nothing serves it.
    const bool not_certain = std::any_of(audit_.torches.begin(), audit_.torches.end(),
                                         [i](const resolve::ImageTorch& torch) {
                                           return torch.broken_by == resolve::ImageTorch::npos &&
                                                  torch.verdicts[i].fit == resolve::Fit::unknown;
                                         });
    if (by.empty() && not_certain) state = LinkState::unknown;
    row(state, one_line(audit_.targets[i].label) + say("colon") +
                   (!by.empty()   ? words("served_by", {{"envs", join(names, say("list"))}})
                    : not_certain ? words("fit.unknown")
                                  : words("not_served")));
  }

  void target(size_t i, const resolve::ImageTorch& torch) {
    const resolve::Verdict& verdict = torch.verdicts[i];
    const std::string label =
        one_line(audit_.targets[i].label) +
        (audit_.torches.size() > 1 ? " (" + one_line(torch.label) + ")" : "") + say("colon");
    const resolve::Reason& blocked = torch.blocked_by[i];
    // Code that fits a GPU is of no use where torch does not even load.
    if (torch.broken_by != resolve::ImageTorch::npos &&
        (verdict.fit != resolve::Fit::no || !blocked.id.empty())) {
      const std::string why =
          finding_text(audit_.findings[torch.broken_by], "title", style_.lang, knowledge_);
      row(LinkState::broken, label + words("broken", {{"why", one_line(why)}}));
      return;
    }
    if (!blocked.id.empty()) {
      Args args;
      for (const auto& [key, value] : blocked.args) args[key] = one_line(value);
      row(LinkState::broken, label + words("blocked." + blocked.id, args));
      return;
    }
    std::string text = label + words("fit." + std::string(torch.by_own_compat[i] ? "own_compat"
                                                          : audit_.targets[i].gpus.empty() &&
                                                                  verdict.fit == resolve::Fit::works
                                                              ? "cpu"
                                                              : to_string(verdict.fit)));
    std::vector<std::string> reasons;
    for (const resolve::Reason& reason : verdict.reasons)
      if (style_.verbose || reasons.empty() || verdict.fit == resolve::Fit::no)
        reasons.push_back(one_line(reason_text(reason, style_.lang, knowledge_)));
    if (!reasons.empty()) text += say("semicolon") + join(reasons, say("semicolon"));
    row(verdict.fit == resolve::Fit::works          ? LinkState::ok
        : resolve::usable(verdict.fit)              ? LinkState::limited
        : verdict.fit == resolve::Fit::no           ? LinkState::broken
        : verdict.fit == resolve::Fit::needs_compat ? LinkState::limited
                                                    : LinkState::unknown,
        text);
  }

  void row(LinkState state, const std::string& text) {
    flow_at(text, "  " + coloured(std::string(mark(state)) + " ", colour_of(state)), 4, "    ");
  }

  void libraries() {
    if (audit_.libraries.empty()) return;
    heading(words("heading.libraries"));
    // By name: versions; paths with -v.
    for (size_t i = 0; i < audit_.libraries.size();) {
      const std::string name = audit_.libraries[i].name;
      std::vector<std::string> versions;
      const size_t first = i;
      for (; i < audit_.libraries.size() && audit_.libraries[i].name == name; ++i) {
        const resolve::ImageFile& one = audit_.libraries[i];
        const std::string text =
            one.version.empty() ? words("version_unknown") : one_line(one.version);
        if (std::find(versions.begin(), versions.end(), text) == versions.end())
          versions.push_back(text);
      }
      const auto unknown = std::find(versions.begin(), versions.end(), words("version_unknown"));
      if (versions.size() > 1 && unknown != versions.end()) versions.erase(unknown);
      if (!style_.verbose && starts_with(name, "libcudnn_")) continue;  // parts of libcudnn
      out_ += "  " + one_line(name) + "  " + join(versions, say("list")) + "\n";
      if (!style_.verbose) continue;
      for (size_t at = first; at < i; ++at) file(audit_.libraries[at]);
    }
  }

  void file(const resolve::ImageFile& one) {
    flow(words("file", {{"path", one_line(one.path)},
                        {"bytes", format_bytes(one.size_bytes)},
                        {"layer", std::to_string(one.layer + 1)}}) +
             (one.package.empty() ? "" : say("comma") + one_line(one.package)),
         "    ", "      ", "2");
  }

  void driver() {
    std::vector<std::string> compat;
    for (const facts::DriverLibrary& one : view_.facts.driver_libraries)
      if (one.origin == "compat" && one.soname == "libcuda.so.1")
        compat.push_back(
            words(one.compat_drivers.empty() ? "compat_bare" : "compat",
                  {{"path", one_line(one.path)},
                   {"cuda", one.compat_cuda.empty() ? std::string("?") : one_line(one.compat_cuda)},
                   {"version", one.version.empty() ? std::string("?") : one_line(one.version)},
                   {"drivers", one_line(join(one.compat_drivers, ", "))}}));
    if (compat.empty()) return;
    heading(words("heading.compat"));
    for (const std::string& line : compat) flow(line, "  ", "    ");
  }

  void defect(const resolve::ImageDefect& defect) {
    const std::string code =
        defect.severity == Severity::note ? "34" : colour_of(state_of(defect.severity));
    const std::string left = std::string(mark(defect.severity)) + " " +
                             say(std::string("severity.") + to_string(defect.severity)) +
                             say("colon");
    Args args;
    for (const auto& [key, value] : defect.args) args[key] = one_line(value);
    out_ += "\n";
    flow_at(words("defect." + defect.id + ".title", args), coloured(left, "1;" + code),
            columns(left), "  ", "1");
    flow(words("defect." + defect.id + ".why", args), "  ", "  ");
    if (defect.id == "copies" || defect.id == "copies_inside") {
      size_t shown = 0;
      for (size_t i = 0; i < audit_.copies.size() && (style_.verbose || shown < k_image_text_shown);
           ++i) {
        if (audit_.copies[i].in_base != (defect.id == "copies")) continue;
        copies(i);
        ++shown;
      }
    }
    if (defect.id == "driver_copied" && style_.verbose)
      for (const resolve::ImageFile& one : audit_.driver) file(one);
    if (defect.id == "hidden") {
      const size_t shown =
          style_.verbose ? std::min<size_t>(audit_.hidden.size(), 100) : k_image_text_shown;
      for (size_t i = 0; i < std::min(shown, audit_.hidden.size()); ++i)
        flow(words("file", {{"path", one_line(audit_.hidden[i].path)},
                            {"bytes", format_bytes(audit_.hidden[i].size_bytes)},
                            {"layer", std::to_string(audit_.hidden[i].layer + 1)}}),
             "  - ", "    ", "2");
    }
    next(cut_commands(words("defect." + defect.id + ".next", args)));
  }

  void copies(size_t i) {
    const resolve::ImageCopies& group = audit_.copies[i];
    std::vector<std::string> paths;
    for (const resolve::ImageFile& one : group.files)
      paths.push_back(words("file", {{"path", one_line(one.path)},
                                     {"bytes", format_bytes(one.size_bytes)},
                                     {"layer", std::to_string(one.layer + 1)}}));
    flow(one_line(group.name) + say("colon") + join(paths, say("semicolon")), "  - ", "    ", "2");
  }

  // The engine's findings look as doctor shows them.
  void findings() {
    if (audit_.findings.empty()) return;
    checks::Report report;
    report.findings = audit_.findings;
    const Page page = make_page({view_.facts, report, knowledge_}, style_.lang, false);
    for (const FindingBlock& block : page.findings) {
      const std::string code =
          block.severity == Severity::note ? "34" : colour_of(state_of(block.severity));
      const std::string left = std::string(mark(block.severity)) + " " +
                               say(std::string("severity.") + to_string(block.severity)) +
                               say("colon");
      out_ += "\n";
      flow_at(block.title, coloured(left, "1;" + code), columns(left), "  ", "1");
      if (!block.subject.empty() && block.subject != "image") out_ += "  " + coloured("[" + block.subject + "]", "2") + "\n";
      if (!block.why.empty()) flow(block.why, "  ", "  ");
      for (size_t i = 0; i < block.evidence.size() && (style_.verbose || i < 4); ++i)
        flow(block.evidence[i], "  - ", "    ", "2");
      next(block.next);
    }
  }

  void settings() {
    std::vector<std::string> lines;
    for (const auto& [name, value] : view_.image.config.variables) {
      const bool nvidia = starts_with(name, "NVIDIA_") || name == "LD_LIBRARY_PATH" ||
                          starts_with(name, "CUDA_") || name == "LD_PRELOAD";
      if (!nvidia) continue;
      std::string text = one_line(value);
      if (!style_.verbose && text.size() > 100) text = text.substr(0, text.find(' ', 60)) + " ...";
      lines.push_back(one_line(name) + "=" + text);
    }
    const formats::ImageConfig& config = view_.image.config;
    if (!config.entrypoint.empty())
      lines.push_back(words("entrypoint", {{"text", one_line(join(config.entrypoint, " "))}}));
    if (!config.command.empty())
      lines.push_back(words("command", {{"text", one_line(join(config.command, " "))}}));
    if (lines.empty()) return;
    heading(words("heading.settings"));
    for (const std::string& line : lines) flow(line, "  ", "    ");
  }

  void rules() {
    if (audit_.rules.empty()) return;
    heading(words("heading.rules"));
    for (const resolve::ImageRule& rule : audit_.rules) {
      const std::string text = words("rule." + rule.id);
      LinkState state = LinkState::ok;
      std::string line = text;
      if (rule.state == resolve::RuleState::absent) continue;
      if (rule.state == resolve::RuleState::unknown) {
        state = LinkState::unknown;
        line = words("rule_unknown", {{"rule", text}});
      } else if (rule.state == resolve::RuleState::broken) {
        state = rule.severity == Severity::error ? LinkState::broken : LinkState::limited;
        line = words("rule_broken", {{"rule", text}});
      }
      flow_at(line, "  " + coloured(std::string(mark(state)) + " ", colour_of(state)), 4, "    ");
    }
  }

  void layers() {
    if (!style_.verbose) return;
    heading(words("heading.layers"));
    const auto& made_by = view_.image.config.made_by;
    for (size_t i = 0; i < view_.image.layers.size(); ++i) {
      const facts::ImageLayer& layer = view_.image.layers[i];
      std::string text = words("layer", {{"number", std::to_string(i + 1)},
                                         {"stored", format_bytes(layer.stored_bytes)},
                                         {"bytes", format_bytes(layer.expanded_bytes)},
                                         {"name", one_line(layer.name)}});
      flow(text, "  ", "    ");
      if (made_by.size() == view_.image.layers.size() && !made_by[i].empty())
        flow(one_line(shown_step(made_by[i])), "    ", "      ", "2");
    }
    const auto& all = view_.image.layers;
    if (all.empty()) return;
    const auto verified = std::count_if(
        all.begin(), all.end(), [](const facts::ImageLayer& layer) { return layer.verified; });
    flow(words(static_cast<size_t>(verified) == all.size() ? "verified" : "verified_some",
               {{"count", std::to_string(verified)}, {"total", std::to_string(all.size())}}),
         "  ", "  ", "2");
  }

  void problems() {
    std::vector<std::string> all = view_.image.problems;
    all.insert(all.end(), view_.facts.problems.begin(), view_.facts.problems.end());
    if (all.empty()) return;
    heading(say("heading.problems"));
    const size_t shown = style_.verbose ? all.size() : std::min<size_t>(all.size(), 3);
    for (size_t i = 0; i < shown; ++i)
      flow(one_line(translated_error(all[i], style_.lang, knowledge_)), "  - ", "    ");
    if (shown < all.size())
      flow(say("part.more", {{"count", std::to_string(all.size() - shown)}}), "  - ", "    ", "2");
  }

  const ImageView& view_;
  const resolve::ImageAudit& audit_;
};

}  // namespace

std::string image_text(const ImageView& view, const Style& style) {
  return ImagePainter(view, style).paint();
}

}  // namespace cufit::report
