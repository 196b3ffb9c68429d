// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/package_mentions.h"

#include <algorithm>

#include "base/format.h"
#include "formats/python/install_command.h"
#include "formats/prose/module_mentions.h"
#include "formats/python/package_list.h"
#include "formats/python/python_metadata.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_commands = 200, k_package_mentions_max_line = 4096;

// The name at the start of `text`, less the punctuation that ends a sentence. What goes on with
// other characters is no name.
std::string_view name_at(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (is_name_char(text[end]) || text[end] == '-' || text[end] == '.'))
    ++end;
  while (end > 0 && !is_digit(text[end - 1]) && !is_letter(text[end - 1])) --end;
  const std::string_view name = text.substr(0, end), rest = text.substr(end);
  const bool ends =
      rest.empty() || std::string_view(" \t,.:)`'\"=@([<>~").find(rest[0]) != rest.npos;
  return ends && is_distribution_name(name) ? name : std::string_view();
}

class PackageMentionsReader {
 public:
  PackageMentions read(std::span<const TextLine> lines) {
    for (const TextLine& line : lines) {
      number_ = line.number;
      const std::string_view text =
          trim(std::string_view(line.text).substr(0, k_package_mentions_max_line));
      install(text);
      build(text);
      modules_.take(text, number_);
    }
    return std::move(out_);
  }

 private:
  void add(MentionKind kind, std::string_view name, std::string_view version = {},
           bool sure = true) {
    add_mention(out_, {kind, std::string(name), std::string(version), sure, false, number_});
  }

  void install(std::string_view text) {
    if (out_.commands.size() >= k_max_commands) return;
    bool from_folder = false;
    for (InstallCommand& command : parse_install_commands(text, number_, from_folder))
      out_.commands.push_back(std::move(command));
    out_.from_folder |= from_folder;
    // "Processing ./flash-attn", "Processing c:\build\x", "Obtaining file:///x"
    for (std::string_view word : {"Processing ", "Obtaining ", "Collecting git+", "Cloning http"}) {
      if (starts_with(text, word) && text.find(".whl") == text.npos) out_.from_folder = true;
    }
  }

  // `flash-attn==2.5.8`, `flash-attn @ file:///x`, flash-attn==2.5.8 or "deepspeed@0.16.4".
  void failed_one(std::string_view text) {
    if (!text.empty() && (text[0] == '`' || text[0] == '\'')) text.remove_prefix(1);
    const std::string_view name = name_at(text);
    const std::string_view rest = text.substr(name.size());
    std::string_view version;
    if (starts_with(rest, "==")) version = pinned_version(rest.substr(2));
    if (starts_with(rest, "@") && rest.size() > 1 && is_digit(rest[1])) {
      version = pinned_version(rest.substr(1));
    } else if (starts_with(trim(rest), "@")) {  // "x @ file:///home/x"
      out_.from_folder = true;
    }
    add(MentionKind::build_failed, name, version);
  }

  void failed_list(std::string_view list, bool sure) {
    std::vector<std::string_view> names;
    for (std::string_view word : words_of(list, 17)) {
      while (!word.empty() && (word.back() == ',' || word.back() == ';' || word.back() == ')'))
        word.remove_suffix(1);
      if (word == "which" || word == "since") break;
      if (name_at(word) != word || word.empty()) return;
      names.push_back(word);
    }
    if (names.size() > 16) return;
    for (std::string_view name : names) add(MentionKind::build_failed, name, {}, sure);
  }

  // "Building wheel for x (setup.py) ... error", "finished with status 'done'", "started".
  void step(std::string_view text, size_t at) {
    if (at == text.npos) return;
    const std::string_view name = name_at(text.substr(at));
    const std::string_view rest = text.substr(at + name.size());
    if (has_word(rest, "done")) {
      forget(name);
    } else {
      const bool failed = has_word(rest, "error") || has_word(rest, "fail") ||
                          contains(rest, "did not run successfully");
      add(failed ? MentionKind::build_failed : MentionKind::build, name, {}, !rest.empty());
    }
    collected_ = {};
  }

  void forget(std::string_view name) {
    const std::string built = normalize_name(name);
    auto& all = out_.mentions;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const PackageMention& one) {
                               return one.kind == MentionKind::build &&
                                      normalize_name(one.name) == built;
                             }),
              all.end());
  }

  void build(std::string_view text) {
    if (const size_t at = behind(text, "failed building wheel for "); at != text.npos)
      add(MentionKind::build_failed, name_at(text.substr(at)));
    if (const size_t at = behind(text, "could not build wheels for "); at != text.npos)
      failed_list(text.substr(at), true);
    for (std::string_view phrase : {"failed to download and build ", "failed to build: "}) {
      if (const size_t at = behind(text, phrase); at != text.npos) failed_one(text.substr(at));
    }
    if (const size_t at = behind(text, "failed to build "); at != text.npos) {
      const std::string_view rest = text.substr(at);
      const size_t bracket = rest.find('(');
      if (starts_with(rest, "`")) {
        failed_one(rest);
      } else if (starts_with(rest, "installable wheels") && bracket != rest.npos) {
        failed_list(rest.substr(bracket + 1), true);
      } else if (at <= 24) {
        failed_list(rest, false);
      }
    }
    // uv: "likely indicates that `x@1.0` depends on `torch`"; poetry: "but with x (1.0) not ..."
    if (const size_t at = behind(text, "likely indicates that "); at != text.npos)
      failed_one(text.substr(at));
    if (const size_t at = behind(text, "not a problem with poetry but with "); at != text.npos)
      poetry(text.substr(at));
    if (behind(text, "failed building wheel for ") == text.npos)
      step(text, behind(text, "building wheel for "));
    step(text, behind(text, "running setup.py install for "));
    collecting(text);
    each_path_below(text, "pip-install-", [&](std::string_view path) { unpacked(path); });
    each_path_below(text, "sdists-v", [&](std::string_view path) {
      const std::vector<std::string_view> parts = path_parts(path);
      if (parts.size() > 3 && (parts[1] == "pypi" || parts[1] == "index"))
        add(MentionKind::build, name_at(parts[parts[1] == "pypi" ? 2 : 3]));
    });
    for (std::string_view word : words_of(text, 64)) {
      if (word.find(".whl") == word.npos) continue;
      const std::string_view whole = word.substr(0, word.find(".whl") + 4);
      const size_t slash = whole.find_last_of("/\\\"'`(=");
      add(MentionKind::wheel,
          wheel_name(slash == whole.npos ? whole : whole.substr(slash + 1)).name);
    }
  }

  void poetry(std::string_view text) {
    const std::string_view name = name_at(text);
    const std::string_view rest = text.substr(name.size());
    if (contains(rest, " not supporting PEP 517"))
      add(MentionKind::build_failed, name,
          starts_with(rest, " (") ? pinned_version(rest.substr(2)) : std::string_view());
  }

  // pip prepares one package after another: what it collected last is what failed.
  void collecting(std::string_view text) {
    if (starts_with(text, "Collecting ")) {
      collected_ = std::string(text.substr(11));
      return;
    }
    if (starts_with(text, "Building wheels for collected packages") ||
        starts_with(text, "Installing collected packages")) {
      collected_.clear();
    }
    const bool step = starts_with(text, "Preparing metadata") ||
                      starts_with(text, "Getting requirements to build wheel");
    const bool failed = (step && has_word(text, "error")) ||
                        contains(text, "subprocess-exited-with-error") ||
                        contains(text, "metadata-generation-failed") ||
                        contains(text, "output from command python setup.py egg_info");
    if (!failed || collected_.empty()) return;
    failed_one(collected_);
    collected_.clear();
  }

  // ".../pip-install-k2x/flash-attn_0123...ef/setup.py": the folder that pip unpacked into.
  void unpacked(std::string_view path) {
    const std::vector<std::string_view> parts = path_parts(path);
    if (parts.size() < 3) return;
    std::string_view folder = parts[1];
    if (folder.size() > 33 && folder[folder.size() - 33] == '_') folder.remove_suffix(33);
    add(MentionKind::build, name_at(folder));
  }

  PackageMentions out_;
  uint64_t number_ = 0;
  std::string collected_;
  ModuleReader modules_{out_};
};

}  // namespace

PackageMentions parse_package_mentions(std::span<const TextLine> lines) {
  return PackageMentionsReader().read(lines);
}

bool is_distribution_name(std::string_view name) {
  const auto edge = [](char c) { return is_digit(c) || is_letter(c); };
  if (name.empty() || name.size() > 64 || !edge(name.front()) || !edge(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_name_char(c) || c == '-' || c == '.'; });
}

}  // namespace cufit::formats
