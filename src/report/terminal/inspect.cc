// SPDX-License-Identifier: Apache-2.0
#include "report/inspect.h"

#include <algorithm>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "report/terminal/state_symbols.h"
#include "report/error_translation.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using formats::CodeKind;
using formats::DeviceCode;

constexpr int k_indent = 2;

bool stopped_by_driver(const checks::FileDriver& driver) {
  return driver.fit != checks::FileDriver::Fit::ok &&
         driver.fit != checks::FileDriver::Fit::unknown;
}

bool is_host_code(const InspectVerdict& verdict) {
  return std::string_view(verdict.because) == "host_code";
}

const char* driver_key(checks::FileDriver::Fit fit) {
  switch (fit) {
    case checks::FileDriver::Fit::gpu_older:
      return "inspect.driver.gpu_older";
    case checks::FileDriver::Fit::gpu_dropped:
      return "inspect.driver.gpu_dropped";
    case checks::FileDriver::Fit::cuda_too_new:
      return "inspect.driver.cuda_too_new";
    case checks::FileDriver::Fit::never:
      return "inspect.driver.never";
    case checks::FileDriver::Fit::unknown:
    case checks::FileDriver::Fit::ok:
      break;
  }
  return "";
}

class InspectPage {
 public:
  InspectPage(const InspectResult& result, const Style& style,
              const knowledge::Knowledge& knowledge)
      : result_(result), style_(style), knowledge_(knowledge) {
    for (const char* key : {"cubin", "ptx", "lto", "other", "needs", "system", "abi", "search"})
      label_width_ = std::max(label_width_, columns(word(std::string("label.") + key)));
    for (const InspectedFile& file : result.files)
      for (const InspectVerdict& verdict : file.verdicts)
        label_width_ = std::max(label_width_, columns(label_of(verdict)));
    for (const InspectedVariant& variant : result.variants)
      for (const InspectedVariant::Fit& fit : variant.fits)
        label_width_ = std::max(label_width_, columns(label_of(fit)));
    label_width_ = std::min(label_width_, 40) + 2;
  }

  std::string text() {
    for (const InspectedFile& file : result_.files) add_file(file);
    for (const InspectError& error : result_.errors) {
      const std::string what = translated_error(error.what, style_.lang, knowledge_);
      out_ += word("error", {{"what", formats::printable(what, 4096)}}) + "\n";  // names the file
    }
    for (const InspectedVariant& variant : result_.variants) add_variant(variant);
    if (result_.files.empty() && result_.errors.empty() && result_.variants.empty())
      out_ += word("nothing") + "\n";
    if (result_.files.size() > 1) add_summary();
    // Without a GPU nothing is judged: the files say it all.
    if (!result_.files.empty() && !result_.files.front().verdicts.empty())
      out_ += tables_line(style_.lang, knowledge_) + "\n";
    return out_;
  }

 private:
  std::string word(const std::string& key,
                   const std::map<std::string, std::string>& args = {}) const {
    return message(knowledge_, "inspect." + key, style_.lang, args);
  }

  template <class Judged>
  static std::string label_of(const Judged& verdict) {
    return verdict.gpu == verdict.cc ? verdict.cc : format("{} ({})", verdict.gpu, verdict.cc);
  }

  // The name of a wheel stands once above its files.
  std::string name_of(const std::string& path) {
    const size_t member = path.find(".whl!");
    if (member == std::string::npos) return path;
    const std::string wheel = path.substr(0, member + 4);
    if (wheel != wheel_) out_ += formats::printable(wheel, 4096) + "\n\n";
    wheel_ = wheel;
    return path.substr(member + 5);
  }

  void add_file(const InspectedFile& file) {
    out_ +=
        formats::printable(name_of(file.path), 4096) + "  " + format_bytes(file.size_bytes) + "\n";
    add_code(file);
    for (const InspectVerdict& verdict : file.verdicts) add_verdict(verdict);
    std::vector<std::string> needs = printed(file.elf.needed);
    if (!style_.verbose) {
      needs.erase(std::remove_if(needs.begin(), needs.end(),
                                 [](const std::string& name) { return is_plain(name); }),
                  needs.end());
    }
    if (!needs.empty()) add_row("label.needs", needs);
    add_system(file.elf);
    if (file.elf.cxx11_abi)
      add_row("label.abi", {word(*file.elf.cxx11_abi ? "abi.new" : "abi.old")});
    if (style_.verbose) {
      if (!file.elf.rpath.empty())
        add_row("label.search", {"RPATH " + join(printed(file.elf.rpath), ":")});
      if (!file.elf.runpath.empty())
        add_row("label.search", {"RUNPATH " + join(printed(file.elf.runpath), ":")});
    }
    if (file.seen_bytes > 0)
      out_ += std::string(k_indent, ' ') +
              word("partial", {{"seen", format_bytes(file.seen_bytes)},
                               {"whole", format_bytes(file.size_bytes)}}) +
              "\n";
    for (const formats::Damage& damage : file.elf.damage) {
      out_ += std::string(k_indent, ' ') +
              word("damage", {{"offset", std::to_string(damage.offset)},
                              {"what", translated_error(damage.what, style_.lang, knowledge_)}}) +
              "\n";
    }
    out_ += "\n";
  }

  // What a wheel variant asks of a machine: one of the values of each line.
  void add_variant(const InspectedVariant& one) {
    out_ += formats::printable(one.path, 4096) + "  " +
            word(one.variant.features.empty() ? "variant.null" : "variant.label",
                 {{"label", one.variant.label}}) +
            "\n";
    for (const formats::VariantFeature& feature : one.variant.features)
      add_line("", formats::property_text(feature, join(feature.values, " ")));
    for (const InspectedVariant::Fit& fit : one.fits)
      add_line(label_of(fit), word(std::string("variant.") + to_string(fit.fit)));
    out_ += "\n";
  }

  void add_code(const InspectedFile& file) {
    const formats::ElfFile& elf = file.elf;
    if (elf.device_code.empty()) {
      // A file that is cut off before its section table is not a file without device code.
      const char* key = !elf.damage.empty()   ? "code.damaged"
                        : file.seen_bytes > 0 ? "code.partial"
                        : elf.has_fatbin      ? "code.empty"
                                              : "code.none";
      add_row("label.cubin", {word(key)});
      return;
    }
    for (CodeKind kind : {CodeKind::cubin, CodeKind::ptx, CodeKind::lto, CodeKind::other}) {
      std::vector<std::string> cells;
      for (const DeviceCode& code : elf.device_code) {
        if (code.kind != kind) continue;
        std::string cell = kind == CodeKind::cubin ? "sm_" + code.arch
                           : kind == CodeKind::ptx ? "compute_" + code.arch
                                                   : code.arch;
        if (!code.ptx_isa.empty()) cell += word("code.isa", {{"isa", code.ptx_isa}});
        cell += format(" \u00d7{}", code.count);
        if (!code.loadable) cell += word("code.not_loadable");
        cells.push_back(std::move(cell));
      }
      if (!cells.empty()) add_row(std::string("label.") + formats::to_string(kind), cells);
    }
  }

  void add_verdict(const InspectVerdict& verdict) {
    const bool host = is_host_code(verdict) && verdict.verdict == checks::LinkState::unknown;
    const char* state = host ? "host_code"
                        : verdict.verdict == checks::LinkState::ok
                            ? "works"
                            : checks::to_string(verdict.verdict);
    std::string line = format("{} {}{}{}", host ? "-" : mark(verdict.verdict),
                              word(std::string("verdict.") + state),
                              knowledge_.message("report.colon", style_.lang),
                              inspect_detail(verdict, style_.lang, knowledge_));
    add_line(label_of(verdict), line);
  }

  void add_system(const formats::ElfFile& elf) {
    std::vector<std::string> cells;
    if (!elf.glibc.empty()) cells.push_back("glibc " + elf.glibc);
    if (!elf.glibcxx.empty()) cells.push_back("GLIBCXX " + elf.glibcxx);
    if (!elf.cxxabi.empty()) cells.push_back("CXXABI " + elf.cxxabi);
    if (!cells.empty()) add_row("label.system", cells);
  }

  void add_summary() {
    std::vector<std::string> gpus;
    for (const InspectVerdict& verdict : result_.files.front().verdicts)
      gpus.push_back(label_of(verdict));
    for (size_t i = 0; i < gpus.size(); ++i) {
      size_t counts[4] = {0, 0, 0, 0}, host = 0;
      for (const InspectedFile& file : result_.files) {
        const InspectVerdict& verdict = file.verdicts[i];
        if (is_host_code(verdict) && verdict.verdict == checks::LinkState::unknown)
          ++host;
        else
          ++counts[static_cast<size_t>(verdict.verdict)];
      }
      std::string line = word("summary", {{"works", std::to_string(counts[0])},
                                          {"limited", std::to_string(counts[1])},
                                          {"broken", std::to_string(counts[2])},
                                          {"unknown", std::to_string(counts[3])}});
      if (host != 0) line += word("summary_host", {{"host", std::to_string(host)}});
      add_line(gpus[i], line);
    }
  }

  // Cells side by side as far as the width allows; a cell is never broken.
  void add_row(const std::string& key, const std::vector<std::string>& cells) {
    std::string label = word(key), line;
    const int room = std::max(style_.width - k_indent - label_width_, 20);
    for (const std::string& cell : cells) {
      if (!line.empty() && columns(line) + 2 + columns(cell) > room) {
        put(label, line);
        label.clear();
        line.clear();
      }
      line += (line.empty() ? "" : "  ") + cell;
    }
    put(label, line);
  }

  void add_line(std::string label, const std::string& text) {
    for (const std::string& line :
         wrap(text, std::max(style_.width - k_indent - label_width_, 20))) {
      put(label, line);
      label.clear();
    }
  }

  void put(const std::string& label, const std::string& line) {
    out_ += std::string(k_indent, ' ') + pad(label, label_width_) + line + "\n";
  }

  // Every Linux program needs these; naming them would hide what matters.
  static bool is_plain(const std::string& name) {
    for (const char* plain : {"libc.so.", "libm.so.", "libdl.so.", "librt.so.", "libpthread.so.",
                              "libgcc_s.so.", "libstdc++.so.", "ld-linux"}) {
      if (starts_with(name, plain)) return true;
    }
    return false;
  }

  static std::vector<std::string> printed(const std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const std::string& text : list) out.push_back(formats::printable(text, 4096));
    return out;
  }

  const InspectResult& result_;
  const Style& style_;
  const knowledge::Knowledge& knowledge_;
  int label_width_ = 0;
  std::string out_, wheel_;
};

}  // namespace

checks::LinkState verdict_of(checks::Match match) {
  switch (match) {
    case checks::Match::cubin:
      return checks::LinkState::ok;
    case checks::Match::ptx:
      return checks::LinkState::limited;
    case checks::Match::ptx_too_new:
    case checks::Match::none:
      return checks::LinkState::broken;
    case checks::Match::ptx_unknown:
    case checks::Match::no_code:
      return checks::LinkState::unknown;
  }
  return checks::LinkState::unknown;
}

void judge_file(const formats::ElfFile& elf, InspectVerdict& verdict, bool whole) {
  verdict.verdict = verdict_of(verdict.match.match);
  const bool no_code = verdict.match.match == checks::Match::no_code;
  const bool absent = no_code || verdict.match.match == checks::Match::none;
  if (no_code && !elf.has_fatbin) verdict.because = "host_code";
  if (!whole && verdict.match.match != checks::Match::cubin) verdict.because = "partial";
  if (absent && !elf.damage.empty()) verdict.because = "damaged";
  if (elf.only_empty_images) verdict.because = "no_kernel";
  if (*verdict.because != '\0') verdict.verdict = checks::LinkState::unknown;
  // Host code that links no CUDA runtime runs under any driver.
  if (stopped_by_driver(verdict.driver) && (!is_host_code(verdict) || verdict.driver.cuda != 0))
    verdict.verdict = checks::LinkState::broken;
}

std::string inspect_detail(const InspectVerdict& verdict, std::string_view lang,
                           const knowledge::Knowledge& knowledge) {
  const checks::CodeMatch& match = verdict.match;
  const checks::FileDriver& driver = verdict.driver;
  const bool broken = verdict.verdict == checks::LinkState::broken;
  // No code at all for the GPU is the nearer reason: no driver mends that.
  const bool other_reason = match.match == checks::Match::none && *verdict.because == '\0';
  if (broken && stopped_by_driver(driver) && !other_reason)
    return message(knowledge, driver_key(driver.fit), lang,
                   {{"branch", std::to_string(driver.branch)},
                    {"last", std::to_string(driver.last)},
                    {"cuda", std::to_string(driver.cuda)}});
  std::string key = std::string("inspect.detail.") + checks::to_string(match.match);
  if (match.match == checks::Match::none && match.fitting > 0) key += "_but_few";
  if (*verdict.because != '\0') key = std::string("inspect.detail.") + verdict.because;
  std::string text = message(knowledge, key, lang,
                             {{"arch", match.arch},
                              {"isa", match.ptx_isa},
                              {"cuda", match.needs_cuda},
                              {"cc", verdict.cc},
                              {"few", std::to_string(match.fitting)},
                              {"largest", std::to_string(match.largest)}});
  const bool runs =
      verdict.verdict == checks::LinkState::ok || verdict.verdict == checks::LinkState::limited;
  if (runs && driver.fit == checks::FileDriver::Fit::unknown && driver.cuda != 0)
    text += message(knowledge, "inspect.driver.with", lang,
                    {{"branch", std::to_string(driver.branch)}});
  return text;
}

std::string inspect_text(const InspectResult& result, const Style& style,
                         const knowledge::Knowledge& knowledge) {
  return InspectPage(result, style, knowledge).text();
}

}  // namespace cufit::report
