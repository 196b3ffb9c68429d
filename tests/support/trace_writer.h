// SPDX-License-Identifier: Apache-2.0
// Event files of `cufit fit` as bytes, for tests: the records of formats/model/trace_events.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "formats/model/trace_events.h"

namespace cufit::test {

class TraceWriter {
 public:
  TraceWriter() : bytes_("CUFITEV1") {}
  explicit TraceWriter(uint64_t batch) : TraceWriter() { fact("batch", std::to_string(batch)); }

  uint32_t text(std::string_view text) {
    const auto [place, is_new] =
        texts_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
    if (is_new) {
      kind(1);
      number(text.size());
      bytes_ += text;
    }
    return place->second;
  }
  uint32_t site(std::string_view op, formats::TracePhase phase, std::string_view module = "",
                std::string_view source = "", uint8_t stream = 0) {
    const uint32_t texts[] = {text(op), text(module), text(source)};
    kind(2);
    for (const uint32_t one : texts) number(one);
    number(static_cast<uint64_t>(phase) + 8 * stream);
    return sites_++;
  }
  uint32_t alloc(uint64_t bytes, uint32_t site) {
    kind(3);
    number(bytes);
    number(site);
    return storages_++;
  }
  void free(uint32_t storage) {
    kind(4);
    number(storages_ - 1 - storage);
  }
  void mark(formats::TraceMark mark) {
    kind(5);
    kind(static_cast<uint8_t>(mark));
  }
  void call(uint32_t site, const std::vector<uint64_t>& numbers) {
    kind(6);
    number(site);
    number(numbers.size());
    for (const uint64_t one : numbers) number(one);
  }
  void category(uint32_t storage, formats::StorageCategory category) {
    kind(7);
    number(storages_ - 1 - storage);
    kind(static_cast<uint8_t>(category));
  }
  void note(std::string_view what, std::string_view detail, std::string_view source) {
    const uint32_t texts[] = {text(what), text(detail), text(source)};
    kind(8);
    for (const uint32_t one : texts) number(one);
  }
  void fact(std::string_view key, std::string_view value) {
    const uint32_t texts[] = {text(key), text(value)};
    kind(9);
    for (const uint32_t one : texts) number(one);
  }
  // What cuDNN said: `rows` of batch size, bytes, most bytes, tile, cluster, flag, engine.
  void convolution(uint64_t capability, uint64_t pass, const std::vector<uint64_t>& numbers,
                   const std::vector<std::vector<uint64_t>>& rows) {
    kind(12);
    for (const uint64_t value : {capability, pass, uint64_t{numbers.size()}}) number(value);
    for (const uint64_t value : numbers) number(value);
    number(rows.size());
    for (const std::vector<uint64_t>& row : rows)
      for (const uint64_t value : row) number(value);
  }
  void end(formats::TraceEnd end = formats::TraceEnd::steps_seen) {
    kind(10);
    kind(static_cast<uint8_t>(end));
  }
  void kind(uint8_t byte) { bytes_ += static_cast<char>(byte); }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7f));
    bytes_ += static_cast<char>(value);
  }

  const std::string& bytes() const { return bytes_; }
  formats::TraceEvents read() const {
    return formats::read_trace_events(std::make_shared<MemorySource>("trace", bytes_)).value();
  }

 private:
  std::string bytes_;
  std::map<std::string, uint32_t> texts_;
  uint32_t sites_ = 0, storages_ = 0;
};

inline Result<formats::TraceEvents> read_trace(std::string bytes,
                                               const formats::TraceLimits& limits = {}) {
  return formats::read_trace_events(std::make_shared<MemorySource>("trace", std::move(bytes)),
                                    limits);
}

}  // namespace cufit::test
