// SPDX-License-Identifier: Apache-2.0
#include "explain/ring_text.h"

#include "base/format.h"
#include "facts/ring_text.h"

namespace cufit::explain {
namespace {

// Each {name} of the message is one of the line's.
std::string filled(std::string_view text, const facts::RingLine& line) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    const size_t close = text.find('}', open);
    if (close == text.npos) return out + std::string(text.substr(open));
    const auto found = line.args.find(std::string(text.substr(open + 1, close - open - 1)));
    CUFIT_CHECK(found != line.args.end(), "a line of the ring has every name of its message");
    out += found->second;
    at = close + 1;
  }
  return out;
}

}  // namespace

std::string ring_text(const formats::GpuRing& ring, const knowledge::Knowledge& knowledge) {
  std::string out;
  for (const facts::RingLine& line : facts::ring_lines(ring))
    out += filled(knowledge.message("explain.ring." + line.id, "en"), line) + "\n";
  return out;
}

bool is_ring_line(std::string_view line) { return contains(line, k_ring_mark); }

std::vector<formats::TextLine> without_ring(std::span<const formats::TextLine> lines) {
  std::vector<formats::TextLine> out(lines.begin(), lines.end());
  for (formats::TextLine& line : out)
    if (is_ring_line(line.text)) line.text = {};
  return out;
}

std::vector<formats::TextLine> only_ring(std::span<const formats::TextLine> lines) {
  std::vector<formats::TextLine> out;
  for (const formats::TextLine& line : lines)
    if (is_ring_line(line.text)) out.push_back(line);
  return out;
}

}  // namespace cufit::explain
