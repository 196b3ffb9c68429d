// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle, read whole and a few bytes at a time: both must say the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

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

 private:
  Result<PickleValue> count(PickleValue to, std::span<const PickleValue> items) {
    for (const PickleValue& item : items) {
      sum = sum * 31 + item.bits + static_cast<uint64_t>(item.kind) + item.tag;
    }
    if (to.kind == PickleValue::Kind::object) return to;
    ++made_;
    return PickleValue::object(static_cast<uint8_t>(made_ % 13), made_);
  }
  uint64_t made_ = 0;
};

std::string outcome(const uint8_t* data, size_t size, size_t piece) {
  formats::PickleLimits limits;
  limits.stack_values = 1u << 16;
  limits.text_bytes = 1u << 16;
  Pieces input(data, size, piece);
  formats::TextPool texts;
  Counter sink;
  auto result = formats::read_pickle(input, texts, sink, limits);
  if (!result) return result.error().what;
  return std::to_string(sink.sum) + " " + std::to_string(result->value.bits) + " " +
         std::to_string(result->size_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (outcome(data, size, 1u << 20) != outcome(data, size, 1 + size % 13)) std::abort();
  return 0;
}
