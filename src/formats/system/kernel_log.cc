// SPDX-License-Identifier: Apache-2.0
#include "formats/system/kernel_log.h"

#include <algorithm>
#include <unordered_set>

#include "base/ascii.h"
#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

// Start-up messages come first and the failure last, so both ends are kept.
constexpr size_t k_max_first_lines = 100, k_max_last_lines = 100;
constexpr size_t k_max_xids = 64;
constexpr size_t k_max_line_bytes = 400;

// "[   12.345678] ", "[Sat Nov 21 00:12:00 2026] ", "[T123] ": one leading bracket, removed.
bool drop_bracket(std::string_view& line) {
  if (line.empty() || line[0] != '[') return false;
  size_t end = line.find(']');
  if (end == std::string_view::npos || end > 40) return false;
  line = trim(line.substr(end + 1));
  return true;
}

// The message of one line; empty for a line that is no kernel message.
std::string_view message_of(std::string_view line) {
  if (line.empty() || line[0] == ' ')
    return {};           // kmsg: " SUBSYSTEM=pci" continues the record above
  if (line[0] == '<') {  // syslog(2): "<6>"
    size_t end = line.find('>');
    if (end == std::string_view::npos || end > 5) return {};
    line.remove_prefix(end + 1);
  } else if (is_digit(line[0])) {
    size_t semicolon =
        line.find(';');  // kmsg: "6,339,5140900,-;text"; the head has digits, commas, letters only
    if (semicolon != std::string_view::npos && semicolon < 80 &&
        line.substr(0, semicolon).find_first_of(" :") == std::string_view::npos) {
      line.remove_prefix(semicolon + 1);
    }
  }
  if (line.substr(0, 1) != "[") {
    // A syslog file: the time and host before " kernel: ". Programs' own lines have another name
    // there.
    size_t kernel = line.find(" kernel: ");
    if (kernel != std::string_view::npos && kernel < 100) line.remove_prefix(kernel + 9);
  }
  line = trim(line);
  for (int i = 0; i < 2 && drop_bracket(line); ++i) {
  }
  return line;
}

bool is_noise(std::string_view text) {
  // Sound outputs of every card, audit records (they carry user names and paths), and the command
  // line (disk ids).
  return contains(text, "HDA NVidia") || starts_with(text, "audit") ||
         contains(text, "ommand line: ");
}

// Case is ignored: "NVRM:", "nvidia-uvm", "[NVIDIA Corporation]", "SXid". One pass without a copy:
// a log has ten thousand lines and few of them matter.
bool names_nvidia(std::string_view text) {
  static constexpr std::string_view k_words[] = {"nvidia", "nvrm", "nouveau", "sxid"};
  auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (size_t i = 0; i + 4 <= text.size(); ++i) {
    char first = low(text[i]);
    if (first != 'n' && first != 's') continue;
    for (std::string_view word : k_words) {
      if (word[0] != first || word.size() > text.size() - i) continue;
      size_t k = 1;
      while (k < word.size() && low(text[i + k]) == word[k]) ++k;
      if (k == word.size()) return true;
    }
  }
  return false;
}

bool is_relevant(std::string_view text) {
  if (names_nvidia(text)) return true;
  static const char* const k_phrases[] = {
      "module verification failed", "key was rejected", "unavailable key is rejected",
      "Loading of unsigned module", "Lockdown:",        "PKCS#7 signature",
      "fallen off the bus",         "PM: suspend exit", "PM: hibernation: hibernation exit"};
  for (const char* phrase : k_phrases) {
    if (contains(text, phrase)) return true;
  }
  // PCI core: "pci 0000:01:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]". Whose
  // device it is follows from the address.
  return contains(text, "BAR ") && (contains(text, "no space") || contains(text, "an't assign") ||
                                    contains(text, "failed to assign"));
}

void add_xid(std::string_view text, std::vector<Xid>& xids) {
  size_t start = text.find("NVRM: Xid (");
  if (start == std::string_view::npos) return;
  std::string_view rest = text.substr(start + 11);
  size_t close = rest.find("): ");
  if (close == std::string_view::npos || close > 32) return;
  std::string_view device = rest.substr(0, close);
  if (starts_with(device, "PCI:"))
    device.remove_prefix(4);  // drivers before 319 wrote the address alone
  if (device.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) return;
  rest.remove_prefix(close + 3);
  std::optional<uint64_t> number = parse_uint(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!number || *number > 100000) return;
  std::string pci = lower(device);
  for (Xid& seen : xids) {
    if (seen.number == *number && seen.pci == pci) {
      seen.count += 1;
      seen.text = printable(text, k_max_line_bytes);
      return;
    }
  }
  if (xids.size() >= k_max_xids) return;
  xids.push_back({static_cast<uint32_t>(*number), pci, printable(text, k_max_line_bytes), 1});
}

}  // namespace

KernelLog parse_kernel_log(std::string_view text) {
  KernelLog out;
  std::vector<std::string> distinct;
  std::unordered_set<std::string> seen;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::string_view message = message_of(line);
    if (message.empty() || !is_relevant(message) || is_noise(message)) continue;
    add_xid(message, out.xids);
    std::string kept = printable(message, k_max_line_bytes);
    if (seen.insert(kept).second) distinct.push_back(std::move(kept));
  }
  if (distinct.size() > k_max_first_lines + k_max_last_lines) {
    distinct.erase(distinct.begin() + k_max_first_lines, distinct.end() - k_max_last_lines);
  }
  out.lines = std::move(distinct);
  return out;
}

}  // namespace cufit::formats
