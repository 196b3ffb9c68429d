// SPDX-License-Identifier: Apache-2.0
// Values of a snapshot into fields: false when the value has another type than the allocator
// writes; None leaves the field as it was. Used by the snapshot readers only.
#pragma once

#include "formats/pickle/pickle.h"
#include "memory/snapshot/snapshot_words.h"

namespace cufit::memory {

inline Word word_of(const formats::PickleValue& key) {
  bool known = key.kind == formats::PickleValue::Kind::text && key.bits < k_words.size();
  return known ? static_cast<Word>(key.bits) : Word::count;
}

inline bool take(uint64_t& field, const formats::PickleValue& value) {
  if (value.kind == formats::PickleValue::Kind::none) return true;
  std::optional<uint64_t> number = value.as_unsigned();
  if (number) field = *number;
  return number.has_value();
}

inline bool take(uint32_t& field, const formats::PickleValue& value) {
  uint64_t wide = field;
  if (!take(wide, value) || wide > UINT32_MAX) return false;
  field = static_cast<uint32_t>(wide);
  return true;
}

inline bool take(bool& field, const formats::PickleValue& value) {
  if (value.kind != formats::PickleValue::Kind::boolean)
    return value.kind == formats::PickleValue::Kind::none;
  field = value.bits != 0;
  return true;
}

// A stream is the value of a pointer, written as a signed number.
inline bool take_stream(uint64_t& field, const formats::PickleValue& value) {
  if (value.kind == formats::PickleValue::Kind::integer) field = value.bits;
  return value.kind == formats::PickleValue::Kind::integer || take(field, value);
}

inline bool take_text(uint32_t& field, const formats::PickleValue& value) {
  if (value.kind == formats::PickleValue::Kind::none) return true;
  if (value.kind == formats::PickleValue::Kind::text) field = value.number();
  return value.kind == formats::PickleValue::Kind::text;
}

}  // namespace cufit::memory
