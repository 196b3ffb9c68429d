// SPDX-License-Identifier: Apache-2.0
#include "formats/model/trace_facts.h"

#include "base/format.h"

namespace cufit::formats {
namespace {

// Kinds of records, and the length of the last one (trace_events.h).
constexpr char k_text_record = 1, k_fact_record = 9;
constexpr size_t k_end_record_bytes = 2;

std::string leb128(uint64_t number) {
  std::string out;
  for (; number > 0x7f; number >>= 7) out += static_cast<char>((number & 0x7f) | 0x80);
  return out + static_cast<char>(number);
}

}  // namespace

void add_fact(TraceEvents& events, std::string_view key, std::string_view value) {
  const auto number = static_cast<uint32_t>(events.texts.size());
  events.texts.emplace_back(key);
  events.texts.emplace_back(value);
  events.facts.push_back({number, number + 1});
}

Result<std::string> with_fact(std::string file, const TraceEvents& read, std::string_view key,
                              std::string_view value) {
  if (!read.complete || file.size() < k_end_record_bytes)
    return fail(Code::malformed,
                format("{}: it was cut off, and a fact goes before its end", read.name));
  std::string added;
  for (const std::string_view text : {key, value})
    added += k_text_record + leb128(text.size()) + std::string(text);
  added += k_fact_record + leb128(read.texts.size()) + leb128(read.texts.size() + 1);
  file.insert(file.size() - k_end_record_bytes, added);
  return file;
}

}  // namespace cufit::formats
