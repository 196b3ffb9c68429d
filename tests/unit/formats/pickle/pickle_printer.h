// SPDX-License-Identifier: Apache-2.0
// What a pickle holds as text, for tests of its reader.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/format.h"
#include "formats/pickle/pickle.h"

namespace cufit::formats {

using Kind = PickleValue::Kind;

// Writes containers down as Python prints them.
class Printer : public PickleSink {
 public:
  explicit Printer(const TextPool& texts) : texts_(texts) {}

  Result<PickleValue> set_items(PickleValue to, std::span<const PickleValue> items) override {
    std::string& out = open(to, "{}");
    for (size_t i = 0; i < items.size(); i += 2) {
      add(out, show(items[i]) + ": " + show(items[i + 1]));
    }
    return to;
  }
  Result<PickleValue> append(PickleValue to, std::span<const PickleValue> items) override {
    std::string& out = open(to, "[]");
    for (const PickleValue& item : items) add(out, show(item));
    return to;
  }
  Result<PickleValue> make_tuple(std::span<const PickleValue> items) override {
    PickleValue to;
    std::string& out = open(to, "()");
    for (const PickleValue& item : items) add(out, show(item));
    return to;
  }
  std::string show(const PickleValue& value) const {
    switch (value.kind) {
      case Kind::none:
        return "None";
      case Kind::boolean:
        return value.bits ? "True" : "False";
      case Kind::integer:
        return format("{}", static_cast<int64_t>(value.bits));
      case Kind::unsigned_:
        return format("{}", value.bits);
      case Kind::huge:
        return "huge";
      case Kind::real:
        return format("{}", *value.as_real());
      case Kind::text:
        return "'" + std::string(texts_[value.number()]) + "'";
      case Kind::bytes:
        return "b'" + std::string(texts_[value.number()]) + "'";
      case Kind::empty_list:
        return "[]";
      case Kind::empty_dict:
        return "{}";
      case Kind::object:
        return made_.at(value.number());
    }
    return "?";
  }

 protected:
  PickleValue copy_of(const PickleValue& value) {
    made_.push_back(std::string(made_.at(value.number())));
    return PickleValue::object(static_cast<uint8_t>(made_.size() % 13), made_.size() - 1);
  }

 private:
  std::string& open(PickleValue& to, const char* empty) {
    if (to.kind != Kind::object) {
      made_.emplace_back(empty);
      to = PickleValue::object(static_cast<uint8_t>(made_.size() % 13), made_.size() - 1);
    }
    return made_[to.number()];
  }
  static void add(std::string& out, const std::string& item) {
    if (out.size() > 2) out.insert(out.size() - 1, ", ");
    out.insert(out.size() - 1, item);
  }
  const TextPool& texts_;
  std::vector<std::string> made_;
};

// Hands out `piece` bytes at a time.
class Pieces final : public ByteStream {
 public:
  Pieces(std::string bytes, size_t piece) : bytes_(std::move(bytes)), piece_(piece) {}
  Result<size_t> read(std::span<std::byte> out) override {
    size_t size = std::min({piece_, out.size(), bytes_.size() - at_});
    std::memcpy(out.data(), bytes_.data() + at_, size);
    at_ += size;
    return size;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string bytes_, name_ = "t.pkl";
  size_t piece_, at_ = 0;
};

}  // namespace cufit::formats
