// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle, read whole and a few bytes at a time, by a sink that takes dicts with
// repeated keys as rows, by one that takes them many at a time from blocks looked through before,
// and by one that does neither: all must say the same.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_blocks.h"

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

// Keeps a sum of what each container holds; what is put into one makes another, so that a list of
// texts stays what it is.
class Counter : public formats::PickleSink {
 public:
  Counter(const formats::TextPool& texts, bool rows) : texts_(texts), rows_(rows) {}
  uint64_t sum_of(const PickleValue& value) const {
    if (value.kind == PickleValue::Kind::object) return made_[value.number()];
    uint64_t sum = static_cast<uint64_t>(value.kind) * 977;
    const bool is_text =
        value.kind == PickleValue::Kind::text || value.kind == PickleValue::Kind::bytes;
    if (!is_text) return sum + value.bits;
    for (const char c : texts_[value.number()]) sum = sum * 131 + static_cast<unsigned char>(c);
    return sum;
  }
  Result<PickleValue> set_items(PickleValue to, std::span<const PickleValue> items) override {
    return add(to, items, 3);
  }
  Result<PickleValue> append(PickleValue to, std::span<const PickleValue> items) override {
    return add(to, items, 5);
  }
  Result<PickleValue> make_tuple(std::span<const PickleValue> items) override {
    return add({}, items, 7);
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
    return set_items({PickleValue::Kind::empty_dict, 0, 0, 0}, items);
  }
  bool is_for_good(std::span<const PickleValue> items, const PickleValue&) override {
    return std::all_of(items.begin(), items.end(), [](const PickleValue& item) {
      return item.kind == PickleValue::Kind::text;
    });
  }

 protected:
  std::vector<PickleValue> keys_;

 private:
  Result<PickleValue> add(PickleValue to, std::span<const PickleValue> items, uint64_t of) {
    uint64_t sum = to.kind == PickleValue::Kind::object ? made_[to.number()] : of;
    for (const PickleValue& item : items) sum = sum * 31 + sum_of(item);
    made_.push_back(sum);
    return PickleValue::object(static_cast<uint8_t>(of), made_.size() - 1);
  }
  const formats::TextPool& texts_;
  const bool rows_;
  std::vector<uint64_t> made_;
};

// Takes rows many at a time; the first keys are numbers or lists as the input likes.
class RunCounter final : public Counter {
 public:
  RunCounter(const formats::TextPool& texts, unsigned places)
      : Counter(texts, true), places_(places) {}
  bool row_places(std::span<formats::PickleRowPlace> places) override {
    using Place = formats::PickleRowPlace;
    std::fill(places.begin(), places.end(), Place::shared);
    size_t next = places_ % 2;  // of keys, one of them shared
    for (unsigned i = 0; i < 4 && next < places.size(); ++i, next += 1 + (places_ >> (4 + i)) % 2)
      places[next] = static_cast<Place>((i + places_ / 2) % 4);
    of_.assign(places.begin(), places.end());
    run_keys_ = keys_;
    return true;
  }
  Result<uint32_t> share_row(std::span<const PickleValue> values) override {
    shared_.emplace_back(values.begin(), values.end());
    return static_cast<uint32_t>(shared_.size() - 1);
  }
  bool is_row_list(const PickleValue& value) override { return value.is_object(5); }
  std::optional<PickleValue> set_rows(std::span<const formats::PickleRow> rows) override {
    using formats::PickleRow, formats::PickleRowPlace;
    std::optional<PickleValue> first;
    for (const PickleRow& row : rows) {
      std::vector<PickleValue> items;
      for (size_t i = 0; i < of_.size(); ++i) {
        items.push_back(run_keys_[i]);
        PickleValue value = shared_[row.shared][i];
        if (of_[i] == PickleRowPlace::list) {
          value = PickleValue::object(5, row.list);
          if (row.list == PickleRow::k_empty_list) value = {PickleValue::Kind::empty_list, 0, 0, 0};
          if (row.list == PickleRow::k_no_list) value = PickleValue();
        } else if (of_[i] != PickleRowPlace::shared) {
          value = {PickleValue::Kind::integer, 0, 0, row.numbers[static_cast<size_t>(of_[i])]};
        }
        items.push_back(value);
      }
      const Result<PickleValue> made = set_items({PickleValue::Kind::empty_dict, 0, 0, 0}, items);
      if (!first) first = *made;
    }
    return first;
  }

 private:
  const unsigned places_;
  std::vector<PickleValue> run_keys_;
  std::vector<formats::PickleRowPlace> of_;
  std::vector<std::vector<PickleValue>> shared_;
};

formats::PickleLimits small_limits() {
  formats::PickleLimits limits;
  limits.stack_values = 1u << 16;
  limits.text_bytes = 1u << 16;
  return limits;
}

std::string told(const Result<formats::PickleResult>& result, const Counter& sink) {
  if (!result) return result.error().what;
  return std::to_string(sink.sum_of(result->value)) + " " + std::to_string(result->size_bytes);
}

std::string outcome(const uint8_t* data, size_t size, size_t piece, bool rows) {
  Pieces input(data, size, piece);
  formats::TextPool texts;
  Counter sink(texts, rows);
  const auto result = formats::read_pickle(input, texts, sink, small_limits());
  return told(result, sink);
}

std::string outcome_ahead(const uint8_t* data, size_t size, size_t block, unsigned places) {
  Pieces input(data, size, 1u << 20);
  formats::TextPool texts;
  RunCounter sink(texts, places);
  formats::PickleBlocks blocks(input, 0, block);
  const auto result = formats::read_pickle(blocks, texts, sink, small_limits());
  return told(result, sink);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string whole = outcome(data, size, 1u << 20, false);
  if (whole != outcome(data, size, 1 + size % 13, false)) std::abort();
  if (whole != outcome(data, size, 1u << 20, true)) std::abort();
  if (whole != outcome(data, size, 1 + size % 13, true)) std::abort();
  for (const size_t block : {size_t{64}, 100 + size % 400})
    if (whole != outcome_ahead(data, size, block, data[size / 2])) std::abort();
  return 0;
}
