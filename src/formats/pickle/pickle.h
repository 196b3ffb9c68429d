// SPDX-License-Identifier: Apache-2.0
// Python pickles of plain data (None, bool, int, float, str, bytes, list, tuple, dict), protocols 0
// to 5, read in pieces. An allow-list of opcodes: anything that imports, calls or builds objects is
// an error that names the opcode and its byte (pickle_opcodes.cc). Used by memory/.
//
// No tree is made. A pickle builds its containers from the inside: the items lie on a stack, then
// SETITEMS, APPENDS or TUPLE moves them into the dict, list or tuple below. At that moment the
// PickleSink takes the items and answers with a number of its own that stands for the container
// from then on. So a million trace entries become a million rows, and what is large here is the
// memo alone, which the pickle may refer back to until its end: 4 bytes per entry.
//
//   offset  bytes  protocol 2 and later
//   0       2      80 <protocol>
//   2       9      95 <length as u64>   from protocol 4: a frame; lengths are ignored
//   ...            opcodes, each one byte and its argument; integers little-endian, floats
//   big-endian end     1      '.'
//
// Differs from Python: a container that holds itself is an error, or reads as empty where it does;
// integers beyond 64 bits keep no value.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "formats/pickle/text_pool.h"

namespace cufit::formats {

struct PickleValue {
  enum class Kind : uint8_t {
    none,
    boolean,
    integer,    // int64_t in bits
    unsigned_,  // 2^63 .. 2^64-1
    huge,       // an int of more than 64 bits; its value is not kept
    real,
    text,   // number in the TextPool
    bytes,  // the same
    empty_list,
    empty_dict,
    object,  // the sink's: tag and number
  };
  Kind kind = Kind::none;
  uint8_t tag = 0;
  uint32_t memo = 0;  // entry of the memo that follows it, plus 1; the reader's own affair
  uint64_t bits = 0;

  static PickleValue object(uint8_t tag, uint64_t number) { return {Kind::object, tag, 0, number}; }
  bool is_object(uint8_t t) const { return kind == Kind::object && tag == t; }
  uint32_t number() const { return static_cast<uint32_t>(bits); }
  std::optional<uint64_t> as_unsigned() const {
    bool fits = kind == Kind::unsigned_ || kind == Kind::boolean ||
                (kind == Kind::integer && static_cast<int64_t>(bits) >= 0);
    return fits ? std::optional<uint64_t>(bits) : std::nullopt;
  }
  std::optional<double> as_real() const {
    if (kind == Kind::integer) return static_cast<double>(static_cast<int64_t>(bits));
    if (kind != Kind::real) return std::nullopt;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};
const char* to_string(PickleValue::Kind kind);  // Python's name: "int", "str", "dict"

// Where the value of a key goes in rows that come many at a time.
enum class PickleRowPlace : uint8_t { first, second, third, list, shared };

struct PickleRow {
  // Ints from 0 to 2^63 - 1; what no key is for has no value.
  std::array<uint64_t, 3> numbers;
  uint32_t list;    // number of the sink's object, or one of the two below
  uint32_t shared;  // what share_row() made of the others
  static constexpr uint32_t k_no_list = UINT32_MAX, k_empty_list = UINT32_MAX - 1;
};

// What the containers become. Called in the order of the file; an error ends the reading and gets
// the byte added.
class PickleSink {
 public:
  virtual ~PickleSink() = default;
  // `dict` is an empty_dict or an object of this sink; keys and values alternate.
  virtual Result<PickleValue> set_items(PickleValue dict, std::span<const PickleValue> items) = 0;
  virtual Result<PickleValue> append(PickleValue list, std::span<const PickleValue> items) = 0;
  virtual Result<PickleValue> make_tuple(std::span<const PickleValue> items) = 0;

  // Dicts whose keys are those of one before may come as their values alone. Whether a dict that
  // begins with this key is of that kind; whether these keys are, all of which following dicts
  // have; and the values of one, as good as set_items on an empty dict with those keys.
  virtual bool is_row(const PickleValue& first_key) {
    (void)first_key;
    return false;
  }
  virtual bool row_keys(std::span<const PickleValue> keys) {
    (void)keys;
    return false;
  }
  virtual Result<PickleValue> set_row(std::span<const PickleValue> values) {
    (void)values;
    return PickleValue();
  }
  // Rows of the keys of the last row_keys() may also come many at a time. `places`, by key, are
  // where their values shall go; false: they may not.
  virtual bool row_places(std::span<PickleRowPlace> places) {
    (void)places;
    return false;
  }
  // From then on for rows of those keys: a number for values that many rows share (None for the
  // keys of other places); whether a value can be the list of a row; and rows, of which the first
  // becomes the object that is answered and the others those of the numbers after it. None: they
  // shall come one by one, and nothing has been done.
  virtual Result<uint32_t> share_row(std::span<const PickleValue> values) {
    (void)values;
    return uint32_t{0};
  }
  virtual bool is_row_list(const PickleValue& value) {
    (void)value;
    return false;
  }
  virtual std::optional<PickleValue> set_rows(std::span<const PickleRow> rows) {
    (void)rows;
    return std::nullopt;
  }
  // How much of the pickle has been read when the calls after this one come.
  virtual void has_read(uint64_t bytes) { (void)bytes; }
  // Whether a list of these very items is this value whenever it comes again, so that it need not
  // be appended again. Only where no item can become another value later: no empty container, no
  // object of the sink's that set_items or append changes.
  virtual bool is_for_good(std::span<const PickleValue> items, const PickleValue& made) {
    (void)items, (void)made;
    return false;
  }
};

struct PickleLimits {
  uint64_t text_bytes = 16u << 20;   // one str or bytes
  uint64_t texts = 1u << 25;         // different ones; about 30 bytes each beside their own
  uint64_t stack_values = 1u << 25;  // torch's C++ writer puts all entries of a list there at once
  uint64_t marks = 1000;             // Python cannot write deeper nesting either
  uint64_t memo_entries = 1u << 28;  // a snapshot of 3 GB has 80 million
};

struct PickleResult {
  PickleValue value;
  unsigned protocol = 0;
  uint64_t size_bytes = 0;  // up to and with STOP
};

Result<PickleResult> read_pickle(ByteStream& input, TextPool& texts, PickleSink& sink,
                                 const PickleLimits& limits = {});
// The same from blocks that may be read ahead by other threads (pickle_blocks.h).
class PickleBlocks;
Result<PickleResult> read_pickle(PickleBlocks& input, TextPool& texts, PickleSink& sink,
                                 const PickleLimits& limits = {});

}  // namespace cufit::formats
