// SPDX-License-Identifier: Apache-2.0
#include "explain/captures.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "explain/captured_args.h"
#include "explain/newer_torch.h"
#include "explain/release_wheel.h"
#include "explain/text_args.h"
#include "explain/wheel_args.h"
#include "explain/word_lines.h"
#include "knowledge/finding_text.h"

namespace cufit::explain {
namespace {

using knowledge::CaptureRow;

constexpr size_t k_longest_value = 60, k_captures_longest_line = 4096;

// What may stand in a command without quotes, and cannot be an option. A colon and a comma part what is on both sides
// ("0:10G,1:4G"); at an end they belong to the sentence.
bool is_plain(std::string_view value) {
  const std::string_view safe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-:,";
  const std::string_view parting = ":,";
  return !value.empty() && value.size() <= k_longest_value && value[0] != '-' &&
         value.find_first_not_of(safe) == value.npos &&
         parting.find(value.front()) == parting.npos && parting.find(value.back()) == parting.npos;
}

std::string_view shown_part(const formats::TextLine& line) {
  return std::string_view(line.text).substr(0, k_captures_longest_line);
}

// The lines in which a row's pattern may match, alone or with the next line, by its words: most patterns have none in a
// text, and are not compiled then.
class CaptureLines {
 public:
  CaptureLines(std::span<const formats::TextLine> lines, std::span<const CaptureRow* const> rows)
      : words_(parts_of(lines), lists_of(rows)) {}

  // Their places, rising.
  const std::vector<size_t>& of(const CaptureRow& row) {
    const auto [place, is_new] = places_.try_emplace(&row);
    if (!is_new) return place->second;
    const std::vector<size_t> lines = words_.of(row.words);
    std::vector<size_t>& out = place->second;
    for (const size_t line : lines) {
      if (line > 0 && (out.empty() || out.back() < line - 1)) out.push_back(line - 1);
      if (out.empty() || out.back() < line) out.push_back(line);
    }
    return out;
  }

 private:
  static std::vector<std::string_view> parts_of(std::span<const formats::TextLine> lines) {
    std::vector<std::string_view> out;
    for (const formats::TextLine& line : lines) out.push_back(shown_part(line));
    return out;
  }
  static std::vector<std::string_view> lists_of(std::span<const CaptureRow* const> rows) {
    std::vector<std::string_view> out;
    for (const CaptureRow* row : rows) out.push_back(row->words);
    return out;
  }

  WordLines words_;
  std::unordered_map<const CaptureRow*, std::vector<size_t>> places_;
};

class Filler {
 public:
  Filler(std::span<const Cause> causes, std::span<const formats::TextLine> lines,
         std::span<const std::string_view> clues, const facts::Facts& facts,
         const knowledge::Knowledge& knowledge, const Setting& setting)
      : lines_(lines),
        clues_(clues.begin(), clues.end()),
        facts_(facts),
        knowledge_(knowledge),
        setting_(setting),
        capture_lines_(lines, rows_of(causes)) {}

  void fill(Cause& cause) {
    const knowledge::FindingTexts* texts = knowledge_.find_texts(cause.id);
    if (!texts) return;
    std::vector<std::string_view> variants;
    for (const CaptureRow& row : texts->captures) {
      if (!holds(row) || !matches(row, cause)) continue;
      if (!row.variant.empty()) variants.push_back(row.variant);
    }
    add_captured_args(cause.finding.args, facts_, knowledge_);
    if (cause.id == "no_matching_wheel" || cause.id == "ext_abi_mismatch")
      add_wheel_args(cause.finding.args, lines_, knowledge_);
    if (cause.id == "externally_managed_python" || cause.id == "local_module_hides" ||
        cause.id == "download_broken" || cause.id == "disk_full")
      add_text_args(cause.finding.args, lines_);
    if (cause.id == "slow_source_build") add_release_wheel(cause.finding.args, facts_, knowledge_);
    if (cause.id == "torch_older_than_package")
      add_newer_torch(cause.finding.args, lines_, facts_, knowledge_);
    if (!setting_.program.empty()) cause.finding.args.emplace("PROGRAM.py", setting_.program);
    // Of one variant, the text for the place of the program ("branch_dnf") goes first.
    for (std::string_view variant : variants) {
      for (std::string_view place : setting_.variants()) {
        if (take(*texts, format("{}_{}", variant, place), cause.finding)) return;
      }
      if (take(*texts, variant, cause.finding)) return;
    }
    for (std::string_view variant : setting_.variants()) {
      if (take(*texts, variant, cause.finding)) return;
    }
  }

 private:
  // The rows that will be asked for.
  std::vector<const CaptureRow*> rows_of(std::span<const Cause> causes) const {
    std::vector<const CaptureRow*> out;
    for (const Cause& cause : causes) {
      const knowledge::FindingTexts* texts = knowledge_.find_texts(cause.id);
      if (!texts) continue;
      for (const CaptureRow& row : texts->captures) {
        if (holds(row)) out.push_back(&row);
      }
    }
    return out;
  }

  bool holds(const CaptureRow& row) const {
    return std::all_of(row.with.begin(), row.with.end(), [&](std::string_view clue) {
      return clue.substr(0, 1) == "!" ? !clues_.count(clue.substr(1)) : clues_.count(clue) > 0;
    });
  }

  // The lines that show the cause speak before others; a message may go over two lines.
  bool matches(const CaptureRow& row, Cause& cause) {
    if (row.pattern.empty()) return true;
    const std::vector<size_t>& places = capture_lines_.of(row);
    if (places.empty()) return false;
    const RE2& pattern = compiled(row);
    if (!pattern.ok()) return false;
    std::set<uint64_t> shown;
    for (const EvidenceLine& line : cause.evidence) shown.insert(line.line);
    for (const bool of_evidence : {true, false}) {
      for (const size_t i : places) {
        const bool near = shown.count(lines_[i].number) || shown.count(lines_[i].number + 1);
        if (near == of_evidence && match(pattern, i, cause)) return true;
      }
    }
    return false;
  }

  const RE2& compiled(const CaptureRow& row) {
    std::unique_ptr<RE2>& place = compiled_[&row];
    if (place) return *place;
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    place =
        std::make_unique<RE2>(re2::StringPiece(row.pattern.data(), row.pattern.size()), options);
    return *place;
  }

  bool match(const RE2& pattern, size_t at, Cause& cause) {
    std::string text(shown_part(lines_[at]));
    if (take_groups(pattern, text, cause)) return true;
    if (at + 1 >= lines_.size()) return false;
    text += '\n';
    text += shown_part(lines_[at + 1]);
    return take_groups(pattern, text, cause);
  }

  static bool take_groups(const RE2& pattern, const std::string& text, Cause& cause) {
    std::vector<re2::StringPiece> groups(1 +
                                         static_cast<size_t>(pattern.NumberOfCapturingGroups()));
    if (!pattern.Match(text, 0, text.size(), RE2::UNANCHORED, groups.data(),
                       static_cast<int>(groups.size())))
      return false;
    std::map<std::string, std::string> found;
    for (const auto& [name, number] : pattern.NamedCapturingGroups()) {
      const re2::StringPiece& group = groups[static_cast<size_t>(number)];
      if (group.data() == nullptr || group.empty()) continue;  // of another alternative
      const std::string value(group.data(), group.size());
      if (!is_plain(value)) return false;
      found[name] = value;
    }
    cause.finding.args.insert(found.begin(), found.end());
    return true;
  }

  // {name} that no argument fills.
  static bool is_filled(std::string_view text, const std::map<std::string, std::string>& args) {
    static const RE2 placeholder(R"(\{([a-z0-9_]+)\})");
    re2::StringPiece rest(text.data(), text.size());
    std::string name;
    while (RE2::FindAndConsume(&rest, placeholder, &name)) {
      const auto found = args.find(name);
      if (found == args.end() || found->second.empty()) return false;
    }
    return true;
  }

  static bool take(const knowledge::FindingTexts& texts, std::string_view variant,
                   checks::Finding& finding) {
    const std::string wanted = finding.variant.empty()
                                   ? std::string(variant)
                                   : finding.variant + "." + std::string(variant);
    const knowledge::TextPair* next = knowledge::find_text(texts, "next." + wanted);
    if (!next || !is_filled(next->en, finding.args)) return false;
    finding.variant = wanted;
    return true;
  }

  std::span<const formats::TextLine> lines_;
  std::set<std::string_view> clues_;
  const facts::Facts& facts_;
  const knowledge::Knowledge& knowledge_;
  const Setting& setting_;
  CaptureLines capture_lines_;
  std::unordered_map<const CaptureRow*, std::unique_ptr<RE2>> compiled_;
};

}  // namespace

void fill_captures(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                   std::span<const std::string_view> clues, const facts::Facts& facts,
                   const knowledge::Knowledge& knowledge, const Setting& setting) {
  Filler filler(causes, lines, clues, facts, knowledge, setting);
  for (Cause& cause : causes) filler.fill(cause);
}

}  // namespace cufit::explain
