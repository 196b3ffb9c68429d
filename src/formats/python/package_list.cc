// SPDX-License-Identifier: Apache-2.0
#include "formats/python/package_list.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/prose/package_words.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_package_list_max_entries = 4000, k_max_failed = 64,
                 k_package_list_max_line = 4096;
constexpr uint64_t k_package_list_answer_reach = 3;  // lines between a question and its answer

// "Torch_Vision" and "torch-vision" are one package.
std::string comparable(std::string_view name) {
  std::string text = lower(name);
  std::replace(text.begin(), text.end(), '_', '-');
  std::replace(text.begin(), text.end(), '.', '-');
  return text;
}

size_t name_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end < 100 && (is_name_char(text[end]) || text[end] == '-')) ++end;
  while (end > 0 && text[end - 1] == '-') --end;
  return end;
}
bool is_package_name(std::string_view text) {
  if (text.empty() || text.size() > 80 || !(is_letter(text[0]) || text[0] == '_')) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_name_char(c) || c == '-' || c == '.'; });
}
std::string_view unquoted_name(std::string_view word) {
  size_t start = word.find_first_not_of("'\"`(,");
  if (start == word.npos) return {};
  size_t end = word.find_last_not_of("'\"`),;:");
  return end == word.npos || end < start ? std::string_view() : word.substr(start, end - start + 1);
}
bool is_version(std::string_view text) {
  return has_inner_dot(text) && python_version_at(text).size() == text.size();
}

struct Spec {
  std::string_view name, version;
  bool exact = false;  // "==" or conda's "="
  bool whole = false;  // nothing but the specification
  std::string_view build;
};

// "torch==2.3.0+cu121", "torch[extra]===1.3", "pytorch=1.12.1=py3.8_cuda", "torch>=2.0", "torch".
Spec spec_of(std::string_view word) {
  Spec out;
  size_t end = name_length(word);
  if (end == 0 || !is_letter(word[0])) return out;
  while (end + 1 < word.size() && word[end] == '.' && is_name_char(word[end + 1])) {
    ++end;  // "ruamel.yaml"
    end += name_length(word.substr(end));
  }
  out.name = word.substr(0, end);
  std::string_view rest = word.substr(end);
  if (!rest.empty() && rest[0] == '[') {
    size_t close = rest.find(']');
    if (close == rest.npos) return out;
    rest.remove_prefix(close + 1);
  }
  size_t equals = std::min(rest.find_first_not_of('='), rest.size());
  if (equals == 0 || equals > 3) {
    out.whole = rest.empty();
    return out;
  }
  rest.remove_prefix(equals);
  out.version = python_version_at(rest);
  rest.remove_prefix(out.version.size());
  if (!rest.empty() && (rest[0] == '*' || (rest[0] == '.' && rest.size() > 1 && rest[1] == '*')))
    out.version = {};
  if (!out.version.empty() && !rest.empty() && rest[0] == '=' && equals == 1) {
    out.build = rest.substr(1);
    rest = {};
  }
  out.exact = !out.version.empty();
  out.whole = out.exact && (rest.empty() || rest[0] == ';' || rest[0] == ',');
  return out;
}

// "nvidia-cublas-cu12-12.1.3.1": the last hyphen before a digit parts them.
Spec name_and_version(std::string_view word) {
  for (size_t dash = word.rfind('-'); dash != word.npos && dash > 0;
       dash = word.rfind('-', dash - 1)) {
    if (dash + 1 >= word.size() || !is_digit(word[dash + 1])) continue;
    std::string_view version = python_version_at(word.substr(dash + 1));
    if (version.empty() || dash + 1 + version.size() != word.size()) continue;
    if (!is_package_name(word.substr(0, dash))) break;
    return {word.substr(0, dash), version, true, true, {}};
  }
  return {};
}

class PackageListReader {
 public:
  PackageList read(std::span<const TextLine> lines) {
    for (const TextLine& line : lines) {
      if (out_.entries.size() >= k_package_list_max_entries) break;
      number_ = line.number;
      take(trim(std::string_view(line.text).substr(0, k_package_list_max_line)));
    }
    for (PackageEntry& entry : out_.entries) {
      if (entry.kind != PackageKind::requested) continue;
      for (const auto& [name, version] : failed_)
        if (comparable(entry.name) == name && (version.empty() || entry.version == version))
          entry.failed = true;
    }
    return std::move(out_);
  }

 private:
  enum class Mode { none, pip_list, conda_list, wishes };

  PackageEntry* add(std::string_view name, std::string_view version, PackageKind kind) {
    if (out_.entries.size() >= k_package_list_max_entries || name.empty() || name.size() > 100)
      return nullptr;
    out_.entries.push_back(
        {std::string(name), std::string(version), {}, {}, kind, false, false, false, number_});
    return &out_.entries.back();
  }

  void take(std::string_view line) {
    if (line.empty()) {
      mode_ = Mode::none;
      return;
    }
    if (installer_line(line) || show_line(line) || answer(line)) return;
    if (commands(line)) return;
    if (begins_list(line)) return;
    if (row(line)) return;
    prose(line);
  }

  // What pip, uv and conda print while they work.
  bool installer_line(std::string_view line) {
    if (size_t at = line.find("Successfully installed "); at != line.npos) {
      for (std::string_view word : words_of(line.substr(at + 23), 1000)) {
        Spec spec = name_and_version(word);
        if (spec.name.empty()) break;
        if (PackageEntry* entry = add(spec.name, spec.version, PackageKind::installed))
          entry->step = true;
      }
      return true;
    }
    if (size_t at = line.find("Successfully uninstalled "); at != line.npos) {
      Spec spec = name_and_version(words_or_empty(line.substr(at + 25)));
      add(spec.name, spec.version, PackageKind::removed);
      return true;
    }
    if (line.find("Uninstalling ") == 0) return true;
    if (size_t at = line.find("Found existing installation: "); at != line.npos) {
      std::vector<std::string_view> words = words_of(line.substr(at + 29), 3);
      if (words.size() >= 2 && !python_version_at(words[1]).empty())
        add(words[0], python_version_at(words[1]), PackageKind::installed);
      return true;
    }
    for (std::string_view phrase :
         {"No matching distribution found for ", "that satisfies the requirement "}) {
      size_t at = line.find(phrase);
      if (at == line.npos) continue;
      Spec spec = spec_of(words_or_empty(line.substr(at + phrase.size())));
      if (!spec.name.empty() && failed_.size() < k_max_failed)
        failed_.emplace_back(comparable(spec.name), std::string(spec.version));
      add(spec.name, spec.version, PackageKind::requested);
      return true;
    }
    if (size_t at = line.find("Requirement already satisfied: "); at != line.npos) {
      Spec spec = spec_of(unquoted_name(words_or_empty(line.substr(at + 31))));
      std::string_view version = spec.version;
      size_t open = line.rfind('(');
      if (open != line.npos && is_version(unquoted_name(line.substr(open))))
        version = unquoted_name(line.substr(open));
      if (!version.empty()) add(spec.name, version, PackageKind::installed);
      return true;
    }
    if (starts_with(line, "Collecting ")) {
      Spec spec = spec_of(words_or_empty(line.substr(11)));
      if (spec.exact) add(spec.name, spec.version, PackageKind::requested);
      return true;
    }
    return conflict(line) || uv_change(line);
  }
  static std::string_view words_or_empty(std::string_view text) {
    std::vector<std::string_view> words = words_of(text, 1);
    return words.empty() ? std::string_view() : words[0];
  }

  // "torchaudio 2.3.1 requires torch==2.3.1, but you have torch 2.3.0 which is incompatible."
  bool conflict(std::string_view line) {
    size_t requires_at = line.find(" requires ");
    size_t have = line.find("you have ");
    if (requires_at == line.npos || have == line.npos || have < requires_at) return false;
    std::vector<std::string_view> before = words_of(line.substr(0, requires_at), 64);
    if (before.size() >= 2 && is_version(before.back()))
      add(before[before.size() - 2], before.back(), PackageKind::installed);
    std::vector<std::string_view> words = words_of(line.substr(have + 9), 2);
    if (words.size() == 2 && is_version(unquoted_name(words[1])))
      add(words[0], unquoted_name(words[1]), PackageKind::installed);
    return true;
  }

  // uv: " + torch==2.3.0", " - torch==2.2.0", after "Installed 3 packages in 12ms".
  bool uv_change(std::string_view line) {
    if ((starts_with(line, "Installed ") || starts_with(line, "Uninstalled ") ||
         starts_with(line, "Prepared ")) &&
        line.find(" package") != line.npos) {
      uv_line_ = number_;
      return true;
    }
    if (uv_line_ == 0 || number_ > uv_line_ + 200 || line.size() < 4 || line[1] != ' ')
      return false;
    Spec spec = spec_of(line.substr(2));
    if (!spec.exact || !spec.whole) return false;
    if (line[0] == '+' || line[0] == '~') {
      if (PackageEntry* entry = add(spec.name, spec.version, PackageKind::installed))
        entry->step = true;
    }
    if (line[0] == '-') add(spec.name, spec.version, PackageKind::removed);
    return line[0] == '+' || line[0] == '-' || line[0] == '~';
  }

  // `pip show torch`: "Name: torch", "Version: 2.1.2". Some paste the command and the version only.
  bool show_line(std::string_view line) {
    if (size_t at = line.find("pip show ");
        at != line.npos || (at = line.find("pip3 show ")) != line.npos) {
      std::vector<std::string_view> words = words_of(line.substr(line.find("show ", at) + 5), 3);
      if (words.size() != 1 || !is_package_name(unquoted_name(words[0]))) return false;
      show_name_ = unquoted_name(words[0]);
      show_line_ = number_;
      return true;
    }
    if (starts_with(line, "Name: ") && is_package_name(trim(line.substr(6)))) {
      show_name_ = trim(line.substr(6));
      show_line_ = number_;
      return true;
    }
    if (show_line_ == 0 || !starts_with(line, "Version: ")) return false;
    std::string_view version = python_version_at(trim(line.substr(9)));
    if (!version.empty() && number_ <= show_line_ + k_package_list_answer_reach)
      add(show_name_, version, PackageKind::installed);
    show_line_ = 0;
    return true;
  }

  // The line behind ">>> torch.__version__": "'2.3.0+cpu'", "2.3.0+cu121 12.1".
  bool answer(std::string_view line) {
    if (asked_line_ == 0) return false;
    if (number_ > asked_line_ + k_package_list_answer_reach) return asked_line_ = 0, false;
    std::vector<std::string_view> words = words_of(line, 8);
    if (words.size() > 6) return false;
    std::string_view version = python_version_at(unquoted_name(words[0]));
    if (!has_inner_dot(version) || version.size() != unquoted_name(words[0]).size()) return false;
    add(asked_, version, PackageKind::installed);
    asked_line_ = 0;
    return true;
  }

  // "pip install torch==2.0 -f URL ; conda install -c pytorch pytorch=1.9.0"
  bool commands(std::string_view line) {
    static constexpr std::array<std::string_view, 10> k_tools = {
        "pip install ",  "pip3 install ", "uv add ",    "conda install ", "mamba install ",
        "conda create ", "poetry add ",   "pip wheel ", "pip download ",  "micromamba install "};
    bool any = false;
    for (std::string_view tool : k_tools) {
      for (size_t at = line.find(tool); at != line.npos; at = line.find(tool, at + tool.size())) {
        if (tool[0] == 'm' && tool[1] == 'a' && at > 0 && line[at - 1] == 'o') continue;
        any |= requests(line.substr(at + tool.size()),
                        contains(tool, "conda") || contains(tool, "mamba"));
      }
    }
    return any;
  }
  bool requests(std::string_view rest, bool conda) {
    bool any = false, skip = false;
    for (std::string_view raw : words_of(rest, 200)) {
      if (raw == ";" || raw == "&&" || raw == "|" || raw == "||" || raw[0] == '#') break;
      if (raw[0] == '(') {  // a remark behind the command
        prose(rest.substr(static_cast<size_t>(raw.data() - rest.data())));
        break;
      }
      if (skip) {
        skip = false;
        continue;
      }
      if (raw[0] == '-') {
        any = true;
        skip = raw == "-f" || raw == "-i" || raw == "-c" || raw == "-r" || raw == "-n" ||
               raw == "-p" || raw == "-e" || raw == "-t" ||
               (starts_with(raw, "--") && contains(raw, "-url") && !contains(raw, "=")) ||
               raw == "--find-links" || raw == "--channel" || raw == "--name" || raw == "--index";
        continue;
      }
      std::string_view word = unquoted_name(raw);
      if (contains(word, ".whl")) {
        any |= wheel(word);
        continue;
      }
      Spec spec = spec_of(word);
      if (spec.exact || (spec.whole && !known_package(spec.name).empty())) {
        any = true;
        if (PackageEntry* entry = add(spec.name, spec.version, PackageKind::requested))
          entry->conda = conda, entry->build = spec.build;
      }
      if (raw.back() == ';') break;
    }
    return any;
  }
  bool wheel(std::string_view word) {
    size_t slash = word.find_last_of("/\\");
    PackageEntry entry = wheel_name(slash == word.npos ? word : word.substr(slash + 1));
    if (entry.version.empty()) return false;
    add(entry.name, entry.version, PackageKind::requested);
    return true;
  }

  bool begins_list(std::string_view line) {
    std::vector<std::string_view> words = words_of(line, 5);
    if (words.size() >= 2 && words[0] == "Package" && words[1] == "Version")
      mode_ = Mode::pip_list;
    else if (words.size() >= 3 && words[0] == "#" && words[1] == "Name")
      mode_ = Mode::conda_list;
    else if (line == "dependencies:" || ends_with(line, "cat requirements.txt") ||
             line == "requirements.txt:" || line == "requirements.txt")
      mode_ = Mode::wishes;
    else
      return line.find_first_not_of("- ") == line.npos;
    return true;
  }

  // One package a line.
  bool row(std::string_view line) {
    bool bullet = false;
    for (std::string_view mark : {"- ", "* ", "+ ", "\xE2\x80\xA2 "}) {
      if (!starts_with(line, mark)) continue;
      line = trim(line.substr(mark.size()));
      bullet = true;
    }
    if (starts_with(line, "conda list: ")) line = trim(line.substr(12));
    std::vector<std::string_view> words = words_of(line, 6);
    if (words.empty()) return true;
    if (words.size() == 1 || words[1][0] == ';' || words[1][0] == '#' ||
        starts_with(words[1], "--hash")) {
      Spec spec = spec_of(words[0]);
      bool single = spec.exact && line.find("==") == line.npos;  // conda's "="
      if (!spec.whole || !spec.exact || spec.version.empty()) return false;
      if (single && !bullet && mode_ != Mode::wishes) return false;
      bool wish = mode_ == Mode::wishes || (single && spec.build.empty());
      PackageEntry* entry = add(spec.name, spec.version,
                                wish     ? PackageKind::requested
                                : bullet ? PackageKind::mentioned
                                         : PackageKind::installed);
      if (entry) entry->conda = single, entry->build = spec.build;
      return true;
    }
    if (!is_package_name(words[0]) || python_version_at(words[1]).size() != words[1].size())
      return false;
    if (words.size() <= 4 && words.size() >= 3 && is_build(words[2])) {
      if (PackageEntry* entry = add(words[0], words[1], PackageKind::installed)) {
        entry->conda = true;
        entry->build = words[2];
        if (words.size() == 4) entry->channel = words[3];
      }
      return true;
    }
    if (words.size() > 3) return false;
    bool listed = mode_ == Mode::pip_list || mode_ == Mode::conda_list;
    size_t gap = static_cast<size_t>(words[1].data() - (words[0].data() + words[0].size()));
    if (!listed && (known_package(words[0]).empty() || !(gap >= 2 || bullet) || words.size() > 2 ||
                    !has_inner_dot(words[1])))
      return false;
    if (PackageEntry* entry = add(words[0], words[1], PackageKind::installed))
      entry->conda = mode_ == Mode::conda_list;
    return true;
  }
  // "hd8887f6_10", "py37_cuda0.0_cudnn0.0_1", "py3.8_cpu_0", "pypi_0"
  static bool is_build(std::string_view word) {
    size_t bar = word.rfind('_');
    if (word.size() > 80 || bar == word.npos || bar + 1 >= word.size()) return word == "<pip>";
    return word.find_first_not_of("0123456789", bar + 1) == word.npos && is_letter(word[0]);
  }

  // Names that matter with a version behind them, and any "name==version".
  void prose(std::string_view line) {
    bool wheels = contains(line, ".whl");
    if (wheels) wheels_of(line);
    for (size_t at = 0; at < line.size();) {
      if (!is_letter(line[at]) || (at > 0 && (is_name_char(line[at - 1]) || line[at - 1] == '-'))) {
        ++at;
        continue;
      }
      std::string_view name = line.substr(at, std::max<size_t>(name_length(line.substr(at)), 1));
      size_t end = at + name.size();
      char before = at > 0 ? line[at - 1] : ' ';
      char behind = end < line.size() ? line[end] : ' ';
      if (before != '/' && before != '\\' && before != '.' && before != '@' && behind != '/' &&
          behind != '\\')
        end = std::max(end, mention(line, at, name, wheels));
      at = end;
    }
  }
  void wheels_of(std::string_view line) {
    bool gone = contains(line, "404") || contains(line, "not a supported wheel");
    for (std::string_view word : words_of(line)) {
      size_t whl = word.find(".whl");
      if (whl == word.npos || !wheel(unquoted_name(word.substr(0, whl + 4)))) continue;
      out_.entries.back().failed = gone;
    }
  }

  // Returns how far it read.
  size_t mention(std::string_view line, size_t at, std::string_view name, bool wheels) {
    size_t end = at + name.size();
    std::string_view rest = line.substr(end);
    std::string_view known = known_package(name);
    if (starts_with(rest, "==")) {
      Spec spec = spec_of(line.substr(at));
      if (spec.exact && spec.version.size() < 64 && !hedged(line, at, {}))
        add(spec.name, spec.version, PackageKind::mentioned);
      return end + 2;
    }
    if (!known.empty() && starts_with(rest, ".__version__")) return ask(line, end + 12, known);
    std::string_view version;
    if (size_t dash = name.rfind('-'); known.empty() && dash != name.npos &&
                                       dash + 1 < name.size() && is_digit(name[dash + 1]) &&
                                       !wheels) {
      known = known_package(name.substr(0, dash));  // "torch-2.3.0"
      version = python_version_at(line.substr(at + dash + 1));
    } else if (!known.empty()) {
      if (!rest.empty() && (rest[0] == '>' || rest[0] == '<' || rest[0] == '~' || rest[0] == '!'))
        return end;
      std::string_view value = value_after(rest);
      if (rest.size() - value.size() > 24 || rest.size() == value.size()) return end;
      version = python_version_at(value);
    }
    if (known.empty() || !has_inner_dot(version)) return end;
    size_t stop = static_cast<size_t>(version.data() - line.data()) + version.size();
    if (stop < line.size() && (line[stop] == '/' || line[stop] == '\\')) return end;
    if (known == "pytorch") known = "torch";
    // xFormers: "PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.0.1+cu118)"
    std::string_view next = line.substr(stop, 80);
    if (size_t have = next.find("(you have "); have != next.npos) {
      std::string_view own = python_version_at(next.substr(have + 10));
      if (!own.empty()) add(known, own, PackageKind::installed);
      return line.size();
    }
    // "PyTorch (12.1)" is the CUDA version that torch was built with.
    if (known == "torch" && (version.find('.') > 1 || version[0] > '3')) return stop;
    if (!hedged(line, at, line.substr(stop))) add(known, version, PackageKind::mentioned);
    return stop;
  }
  size_t ask(std::string_view line, size_t at, std::string_view name) {
    if (name == "pytorch") name = "torch";
    size_t digit = line.find_first_of("0123456789", at);
    std::string_view version =
        digit == line.npos ? std::string_view() : python_version_at(line.substr(digit));
    bool compares =
        digit != line.npos && line.substr(at, digit - at).find_first_of("<>!") != line.npos;
    if (has_inner_dot(version) && !compares) {
      add(name, version, PackageKind::installed);
      return digit + version.size();
    }
    if (!compares) asked_ = name, asked_line_ = number_;
    return at;
  }

  // Words beside a version that make it a wish or a comparison: "requires torch 2.4", "built for
  // PyTorch 2.1", "(PyTorch 0.3.0 worked)".
  static bool hedged(std::string_view line, size_t at, std::string_view behind) {
    std::string_view before = line.substr(at > 40 ? at - 40 : 0, std::min<size_t>(at, 40));
    size_t cut = before.find_last_of(".;,)(|");
    if (cut != before.npos) before.remove_prefix(cut + 1);
    for (std::string_view word :
         {"requires",   "require",     "required", "requirement", "need",    "needs",   "needed",
          "for",        "than",        "until",    "since",       "before",  "upgrade", "downgrade",
          "upgrading",  "downgrading", "try",      "tried",       "want",    "wants",   "supports",
          "support",    "expects",     "works",    "worked",      "instead", "from",    "install",
          "installing", "older",       "newer",    "compatible",  "minimum", "at least"})
      if (has_word(before, word)) return true;
    behind = behind.substr(0, std::min<size_t>(behind.find_first_of(".;,)|("), 24));
    for (std::string_view word : {"worked", "works", "or", "is required", "fine"})
      if (has_word(behind, word)) return true;
    return false;
  }

  PackageList out_;
  Mode mode_ = Mode::none;
  std::vector<std::pair<std::string, std::string>> failed_;
  std::string show_name_, asked_;
  uint64_t show_line_ = 0, asked_line_ = 0, uv_line_ = 0, number_ = 0;
};

}  // namespace

PackageEntry wheel_name(std::string_view file) {
  PackageEntry out;
  if (!ends_with(file, ".whl") || file.size() > 250) return out;
  std::vector<std::string_view> parts = split(file.substr(0, file.size() - 4), '-');
  if (parts.size() < 5 || parts.size() > 6 || !is_package_name(parts[0])) return out;
  // URLs write the "+" of a local version as "%2B".
  std::string version(parts[1]);
  if (size_t plus = version.find("%2B"); plus != std::string::npos) version.replace(plus, 3, "+");
  if (python_version_at(version).size() != version.size()) return out;
  out.name = parts[0];
  out.version = version;
  out.kind = PackageKind::requested;
  return out;
}

PackageList parse_package_list(std::span<const TextLine> lines) {
  return PackageListReader().read(lines);
}

}  // namespace cufit::formats
