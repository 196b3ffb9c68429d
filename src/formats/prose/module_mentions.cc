// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/module_mentions.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

bool is_path_char(char c) {
  return is_name_char(c) || c == '-' || c == '.' || c == '+' || c == '/' || c == '\\';
}

// A module's name with its dots at the start of `text`.
std::string_view module_at(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (is_name_char(text[end]) || text[end] == '.')) ++end;
  while (end > 0 && text[end - 1] == '.') --end;
  return end == 0 || is_digit(text[0]) || end > 120 ? std::string_view() : text.substr(0, end);
}

std::string_view unquoted(std::string_view text) {
  const size_t at = text.find_first_not_of("'\"`");
  return at == text.npos ? std::string_view() : text.substr(at);
}

}  // namespace

std::vector<std::string_view> path_parts(std::string_view path) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < path.size() && out.size() < 64;) {
    const size_t end = std::min(path.find_first_of("/\\", at), path.size());
    if (end > at) out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

size_t path_end(std::string_view text, size_t begin) {
  while (begin < text.size() && is_path_char(text[begin])) ++begin;
  return begin;
}

void add_mention(PackageMentions& out, PackageMention mention) {
  constexpr size_t k_max_mentions = 1000;
  if (!mention.name.empty() && out.mentions.size() < k_max_mentions)
    out.mentions.push_back(std::move(mention));
}

void ModuleReader::take(std::string_view line, uint64_t number) {
  number_ = number;
  import(line);
  traceback(line);
}

void ModuleReader::add(MentionKind kind, std::string_view name, bool folder) {
  add_mention(out_, {kind, std::string(name), {}, true, folder, number_});
}

void ModuleReader::import(std::string_view text) {
  if (const size_t at = behind(text, "no module named "); at != text.npos)
    add(MentionKind::module, module_at(unquoted(text.substr(at))));
  if (const size_t at = behind(text, "dll load failed while importing "); at != text.npos)
    add(MentionKind::module, module_at(text.substr(at)));
  if (behind(text, "cannot import name ") != text.npos) {
    size_t at = behind(text, " from partially initialized module ");
    if (at == text.npos) at = behind(text, " from ");
    if (at != text.npos) add(MentionKind::module, module_at(unquoted(text.substr(at))));
  }
  const bool fails = contains(text, "undefined symbol") || contains(text, "symbol not found") ||
                     contains(text, "symbol lookup error") || contains(text, "cannot open") ||
                     contains(text, "no kernel image") || contains(text, "ImportError") ||
                     contains(text, "OSError") || contains(text, "DLL load failed");
  if (!fails) return;
  bool placed = false;
  for (std::string_view folder : {"site-packages", "dist-packages"}) {
    each_path_below(text, folder, [&](std::string_view path) {
      placed = true;
      compiled_file(path);
    });
  }
  // "ImportError: flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol"
  for (std::string_view ending : {".cpython-", ".abi3.so", ".pyd"}) {
    const size_t end = placed ? text.npos : text.find(ending);
    if (end == text.npos) continue;
    size_t begin = end;
    while (begin > 0 && is_name_char(text[begin - 1])) --begin;
    add(MentionKind::file, module_at(text.substr(begin, end - begin)));
    break;
  }
}

void ModuleReader::compiled_file(std::string_view path) {
  std::vector<std::string_view> parts = path_parts(path);
  if (parts.empty()) return;
  const std::string_view file = parts.back();
  if (file.find(".so") == file.npos && file.find(".pyd") == file.npos &&
      file.find(".dll") == file.npos)
    return;
  // An egg of its own: "pointnet2_ops-3.0.0-py3.8-linux-x86_64.egg/pointnet2_ops/_ext..so".
  if (ends_with(parts[0], ".egg") && parts.size() > 1) parts.erase(parts.begin());
  if (ends_with(parts[0], ".libs")) return;
  std::string module(parts[0].substr(0, parts[0].find('.')));
  const bool folder = parts.size() > 1;
  if (folder) module.append(".").append(file.substr(0, file.find('.')));
  if (module_at(module) == module) add(MentionKind::file, module, folder);
}

void ModuleReader::traceback(std::string_view text) {
  if (starts_with(text, "Traceback (most recent call last)")) {
    auto& all = out_.mentions;
    all.erase(
        std::remove_if(all.begin(), all.end(),
                       [](const PackageMention& one) { return one.kind == MentionKind::frame; }),
        all.end());
  }
  if (starts_with(text, "File \"")) {
    for (std::string_view folder : {"site-packages", "dist-packages"}) {
      each_path_below(text, folder, [&](std::string_view path) {
        const std::vector<std::string_view> parts = path_parts(path);
        if (parts.size() > 1) add(MentionKind::frame, module_at(parts[0]));
      });
    }
    frame_line_ = true;
    return;
  }
  if (frame_line_) code(text);
  frame_line_ = false;
}

// "flash_attn_gpu = flash_attn_2_cuda.fwd(": a line of code names the module that it calls.
void ModuleReader::code(std::string_view text) {
  size_t found = 0;
  for (size_t at = 0; at < text.size() && found < 8; ++at) {
    if (!is_name_char(text[at])) continue;
    size_t end = at;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const bool whole = at == 0 || text[at - 1] != '.';
    const bool used = (end < text.size() && text[end] == '.') || contains(text, "import");
    if (whole && used) {
      add(MentionKind::frame, module_at(text.substr(at, end - at)));
      ++found;
    }
    at = end;
  }
}

}  // namespace cufit::formats
