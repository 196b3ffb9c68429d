// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/oom_message.h"

#include <re2/re2.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_messages = 16, k_processes = 64, k_lines_of_message = 12;

// The sizes of one message: a pattern with the number and its unit, and where it goes.
struct Field {
  const char* pattern;
  std::optional<uint64_t> OomMessage::*member;
};
#define CUFIT_SIZE "([0-9]+(?:\\.[0-9]+)?) ?(bytes|[KMGTPE]i?B)"
// (a macro because the patterns below are literals)
const Field k_allocator[] = {
    {"Tried to allocate " CUFIT_SIZE, &OomMessage::tried},
    {CUFIT_SIZE " total capacity", &OomMessage::total},
    {"total capaci?ty of " CUFIT_SIZE, &OomMessage::total},
    {CUFIT_SIZE " free", &OomMessage::free},
    {"of which " CUFIT_SIZE " is free", &OomMessage::free},
    {CUFIT_SIZE " already allocated", &OomMessage::allocated},
    {CUFIT_SIZE " is allocated by PyTorch", &OomMessage::allocated},
    {CUFIT_SIZE " reserved in total", &OomMessage::reserved},
    {CUFIT_SIZE " allocated in private pools", &OomMessage::pools},
    {CUFIT_SIZE " allowed", &OomMessage::allowed},
    {"this process has " CUFIT_SIZE, &OomMessage::own},
};
const Field k_malloc_async[] = {
    {"Currently allocated *: *" CUFIT_SIZE, &OomMessage::allocated},
    {"Requested *: *" CUFIT_SIZE, &OomMessage::tried},
    {"Device limit *: *" CUFIT_SIZE, &OomMessage::total},
    {"according to CUDA\\) *: *" CUFIT_SIZE, &OomMessage::free},
    {"memory fraction\\) *: *" CUFIT_SIZE, &OomMessage::allowed},
};
const Field k_prose[] = {
    {"(?i)\\b(?:request|tried)(?:ed|s)?(?: (?:size|of|to allocate|about)){0,2} ?[~:=≈]* "
     "?" CUFIT_SIZE,
     &OomMessage::tried},
    {"(?i)\\breserved[ (]?(?:memory|by PyTorch)?[ ):=~≈]*" CUFIT_SIZE, &OomMessage::reserved},
    {"(?i)\\ballocated[ (]?(?:memory|by PyTorch)?[ ):=~≈]*" CUFIT_SIZE, &OomMessage::allocated},
    {"(?i)[~≈]? ?" CUFIT_SIZE " (?:is |are |was )?free\\b", &OomMessage::free},
    {"(?i)\\bfree[ :=~≈]+" CUFIT_SIZE, &OomMessage::free},
};
// Held by the allocator and not used: "cached" up to 1.3, "reserved by PyTorch but unallocated"
// since 2.1.
const char* const k_unallocated[] = {CUFIT_SIZE " is reserved by PyTorch but unallocated",
                                     CUFIT_SIZE " cached"};

// A few dozen fixed patterns, compiled when a message of their kind first occurs.
class OomMessagePatterns {
 public:
  const re2::RE2& of(const char* pattern) {
    for (const auto& [text, re] : known_) {
      if (text == pattern) return *re;
    }
    known_.emplace_back(pattern, std::make_unique<re2::RE2>(pattern, re2::RE2::Quiet));
    return *known_.back().second;
  }

 private:
  std::vector<std::pair<const char*, std::unique_ptr<re2::RE2>>> known_;
};

std::optional<uint64_t> size_by(const re2::RE2& pattern, std::string_view text) {
  re2::StringPiece number, unit;
  if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern, &number, &unit))
    return std::nullopt;
  return parse_size({number.data(), number.size()}, {unit.data(), unit.size()});
}

void read_fields(std::span<const Field> fields, std::string_view text, OomMessagePatterns& patterns,
                 OomMessage& out) {
  for (const Field& field : fields) {
    if (!(out.*field.member)) out.*field.member = size_by(patterns.of(field.pattern), text);
  }
}

// The line at `index` and those after it as one text with single blanks, until `stop` occurs
// again.
std::string joined(std::span<const TextLine> lines, size_t index, std::string_view stop) {
  std::string out;
  for (size_t i = index; i < lines.size() && i < index + k_lines_of_message; ++i) {
    if (i > index && contains(lines[i].text, stop)) break;
    if (!out.empty()) out += ' ';
    out += trim(lines[i].text);
    if (out.size() > 8192) break;
  }
  return out;
}

void read_processes(std::string_view text, OomMessage& out) {
  static const re2::RE2 re("Process ([0-9]{1,10}) has " CUFIT_SIZE);
  re2::StringPiece rest(text.data(), text.size()), pid, number, unit;
  while (out.others.size() < k_processes &&
         re2::RE2::FindAndConsume(&rest, re, &pid, &number, &unit)) {
    const std::optional<uint64_t> bytes =
        parse_size({number.data(), number.size()}, {unit.data(), unit.size()});
    const std::string id(pid.data(), pid.size());
    if (bytes) out.others.push_back({std::strtoull(id.c_str(), nullptr, 10), *bytes});
  }
}

OomMessage read_allocator(std::span<const TextLine> lines, size_t index,
                          OomMessagePatterns& patterns) {
  OomMessage out;
  const std::string text = joined(lines, index, "Tried to allocate");
  out.kind = "allocator";
  read_fields(k_allocator, text, patterns, out);
  read_processes(text, out);
  for (const char* pattern : k_unallocated) {
    const std::optional<uint64_t> unallocated = size_by(patterns.of(pattern), text);
    // "allocated" includes the private pools since 2.4, the unallocated part excludes them.
    if (!out.reserved && unallocated && out.allocated) out.reserved = *out.allocated + *unallocated;
  }
  re2::StringPiece gpu;
  static const re2::RE2 re("\\bGPU ([0-9]{1,3})\\b");
  if (re2::RE2::PartialMatch(text, re, &gpu))
    out.gpu = static_cast<uint32_t>(std::atoi(std::string(gpu.data(), gpu.size()).c_str()));
  return out;
}

std::optional<OomMessage> read_hami(const std::string& text) {
  static const re2::RE2 re("Device ([0-9]{1,3}) OOM ([0-9]{1,20}) / ([0-9]{1,20})");
  std::string gpu, used, limit;
  if (!re2::RE2::PartialMatch(text, re, &gpu, &used, &limit)) return std::nullopt;
  OomMessage out;
  out.kind = "hami";
  out.gpu = static_cast<uint32_t>(std::atoi(gpu.c_str()));
  out.own = std::strtoull(used.c_str(), nullptr, 10);
  out.allowed = std::strtoull(limit.c_str(), nullptr, 10);
  return out;
}

std::optional<OomMessage> read_vllm(const std::string& text) {
  static const re2::RE2 re(
      "Free memory on device[^(]{0,40}\\(([0-9.]{1,12})/([0-9.]{1,12}) GiB\\) on startup is less "
      "than desired GPU memory utilization \\(([0-9.]{1,8}), ([0-9.]{1,12}) GiB");
  std::string free, total, fraction, want;
  if (!re2::RE2::PartialMatch(text, re, &free, &total, &fraction, &want)) return std::nullopt;
  OomMessage out;
  out.kind = "vllm";
  out.free = parse_size(free, "GiB");
  out.total = parse_size(total, "GiB");
  out.tried = parse_size(want, "GiB");
  return out;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view number, std::string_view unit) {
  if (number.empty() || number.size() > 24) return std::nullopt;
  double value = std::strtod(std::string(number).c_str(), nullptr);
  if (!(value >= 0)) return std::nullopt;
  static constexpr std::string_view k_letters = "kmgtpe";
  const std::string word = lower(trim(unit));
  if (word.empty()) return std::nullopt;
  if (const size_t power = k_letters.find(word[0]); power != std::string_view::npos)
    value *= std::pow(1024.0, static_cast<double>(power + 1));
  else if (word[0] != 'b')
    return std::nullopt;
  if (value >= 18446744073709551615.0) return UINT64_MAX;
  return static_cast<uint64_t>(value);
}

std::vector<OomMessage> parse_oom_messages(std::span<const TextLine> lines) {
  std::vector<OomMessage> out;
  auto keep = [&](OomMessage message, size_t index) {
    message.line = lines[index].number;
    if (out.size() < k_messages) out.push_back(std::move(message));
  };
  OomMessage prose;
  OomMessagePatterns patterns;
  for (size_t i = 0; i < lines.size() && out.size() < k_messages; ++i) {
    const std::string& line = lines[i].text;
    if (contains(line, "ried to allocate")) {
      OomMessage message = read_allocator(lines, i, patterns);
      if (message.tried || message.total) keep(std::move(message), i);
    } else if (contains(line, "Currently allocated")) {
      OomMessage message;
      message.kind = "malloc_async";
      read_fields(k_malloc_async, joined(lines, i, "Currently allocated"), patterns, message);
      if (message.allocated && message.tried) keep(std::move(message), i);
    } else if (contains(line, " OOM ") && contains(line, "Device ")) {
      if (auto message = read_hami(line)) keep(std::move(*message), i);
    } else if (contains(line, "Free memory on device")) {
      if (auto message = read_vllm(joined(lines, i, "Free memory on device ")))
        keep(std::move(*message), i);
    } else if (line.size() < 1000 && (contains(line, "iB") || contains(line, "GB"))) {
      const size_t before = prose.line;
      read_fields(k_prose, line, patterns, prose);
      if (before == 0 && (prose.tried || prose.reserved)) prose.line = lines[i].number;
    }
  }
  if (out.empty() && (prose.tried || prose.reserved) && prose.line) {
    prose.kind = "prose";
    out.push_back(std::move(prose));
  }
  return out;
}

namespace {

// What stands below every CUDA error, from c10/cuda/CUDAException.cpp.
constexpr std::string_view k_cuda_advice[] = {
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.",
    "CUDA kernel errors might be asynchronously reported at some other API call,so the stacktrace "
    "below might be incorrect.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions",
};

}  // namespace

std::string without_hint(std::string_view line) {
  const size_t begin = line.find("If reserved ");
  if (begin == line.npos) {
    std::string out(line);
    if (contains(line, "Running pip as the 'root' user")) return {};  // under any installation
    if (!contains(line, "CUDA")) return out;
    for (std::string_view advice : k_cuda_advice) {
      if (const size_t at = out.find(advice); at != out.npos) out.erase(at, advice.size());
    }
    return out;
  }
  size_t end = begin;
  for (std::string_view last : {"to avoid fragmentation.", "Memory Management",
                                "and PYTORCH_CUDA_ALLOC_CONF", "#environment-variables)"}) {
    const size_t at = line.find(last, end);
    if (at != line.npos) end = at + last.size();
  }
  if (end == begin) end = line.size();  // cut off in the paste
  return std::string(line.substr(0, begin)) + std::string(line.substr(end));
}

}  // namespace cufit::formats
