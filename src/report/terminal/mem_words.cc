// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/mem_words.h"

#include <algorithm>

#include "base/format.h"
#include "report/message.h"
#include "report/terminal/width.h"

namespace cufit::report {

std::string gib(uint64_t bytes) {
  if (bytes >= (uint64_t{1} << 30))
    return format("{:.2f} GiB", static_cast<double>(bytes) / double(1u << 30));
  if (bytes == 0) return "0 MiB";
  // From here on a MiB with one digit would say 0.0.
  if (bytes < (uint64_t{1} << 20) / 10)
    return format("{:.1f} KiB", static_cast<double>(bytes) / double(1u << 10));
  return format("{:.1f} MiB", static_cast<double>(bytes) / double(1u << 20));
}

std::string thousands(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string right(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(width - columns(text), 0)), ' ') + text;
}

std::string frame_text(const memory::Snapshot& snapshot, uint32_t frame) {
  const memory::Frame& at = snapshot.stacks.frame(frame);
  std::string_view file = snapshot.text(at.filename);
  const size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return printable(
      format("{}:{} {}", std::string(file), at.line, std::string(snapshot.text(at.name))));
}

std::string met_limit_words(const memory::VerifiedRecording& verified,
                            const knowledge::Knowledge& knowledge, std::string_view lang) {
  return label(
      knowledge, lang, "mem.met_limit",
      {{"least", gib(verified.met_limit->at_least)}, {"below", gib(verified.met_limit->below)}});
}

std::string recorded_settings_words(const memory::VerifiedRecording& verified,
                                    const knowledge::Knowledge& knowledge, std::string_view lang) {
  const std::string taken = verified.settings.empty() ? label(knowledge, lang, "mem.default")
                                                      : printable(verified.settings);
  if (!verified.settings_unread) return taken;
  return label(knowledge, lang, "mem.unread",
               {{"written", printable(verified.settings_written)}, {"taken", taken}});
}

}  // namespace cufit::report
