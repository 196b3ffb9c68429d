// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle, read whole and a few bytes at a time, by a sink that takes dicts with
// repeated keys as rows and by one that does not: all must say the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "formats/pickle.h"

namespace {

using namespace cufit;
using formats::PickleValue;

class Pieces final : public ByteStream {
 public:
  Pieces(const uint8_t* data, size_t size, size_t piece) : at_(data), left_(size), piece_(piece) {}
  Result<size_t> read(std::span<std::byte> out) override {
    size_t size = std::min({piece_, out.size(), left_});
    std::memcpy(out.data(), at_, size);
    at_ += size;
    left_ -= size;
    return size;
  }
  const std::string& name() const override { return name_; }

 private:
  const uint8_t* at_;
  size_t left_, piece_;
  std::string name_ = "fuzz";
};

// Counts what it is given; every container is an object of changing tag.
class Counter final : public formats::PickleSink {
 public:
  explicit Counter(bool rows) : rows_(rows) {}
  uint64_t sum = 0;
  Result<PickleValue> set_items(PickleValue to, std::span<const PickleValue> items) override {
    return count(to, items);
  }
  Result<PickleValue> append(PickleValue to, std::span<const PickleValue> items) override {
    return count(to, items);
  }
  Result<PickleValue> make_tuple(std::span<const PickleValue> items) override {
    return count({}, items);
  }
  bool is_row(const PickleValue&) override { return rows_; }
  bool row_keys(std::span<const PickleValue> keys) override {
    keys_.assign(keys.begin(), keys.end());
    return true;
  }
  Result<PickleValue> set_row(std::span<const PickleValue> values) override {
    std::vector<PickleValue> items;
    for (size_t i = 0; i < values.size(); ++i) {
      items.push_back(keys_[i]);
      items.push_back(values[i]);
    }
    return count({PickleValue::Kind::empty_dict, 0, 0, 0}, items);
  }

 private:
  Result<PickleValue> count(PickleValue to, std::span<const PickleValue> items) {
    for (const PickleValue& item : items) {
      sum = sum * 31 + item.bits + static_cast<uint64_t>(item.kind) + item.tag;
    }
    if (to.kind == PickleValue::Kind::object) return to;
    ++made_;
    return PickleValue::object(static_cast<uint8_t>(made_ % 13), made_);
  }
  const bool rows_;
  std::vector<PickleValue> keys_;
  uint64_t made_ = 0;
};

std::string outcome(const uint8_t* data, size_t size, size_t piece, bool rows) {
  formats::PickleLimits limits;
  limits.stack_values = 1u << 16;
  limits.text_bytes = 1u << 16;
  Pieces input(data, size, piece);
  formats::TextPool texts;
  Counter sink(rows);
  auto result = formats::read_pickle(input, texts, sink, limits);
  if (!result) return result.error().what;
  return std::to_string(sink.sum) + " " + std::to_string(result->value.bits) + " " +
         std::to_string(result->size_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string whole = outcome(data, size, 1u << 20, false);
  if (whole != outcome(data, size, 1 + size % 13, false)) std::abort();
  if (whole != outcome(data, size, 1u << 20, true)) std::abort();
  if (whole != outcome(data, size, 1 + size % 13, true)) std::abort();
  return 0;
}
