// SPDX-License-Identifier: Apache-2.0
// Rows of a trace found in a piece of a pickle without the machine that runs it, so that several
// threads can look at several pieces at once: pickle_rows.cc says what a row is. Nothing found here
// is believed before the machine arrives at the very byte where a run of rows begins: from there on
// the bytes alone say what they are, given the keys they were looked for with. Entries of the memo
// and lists are left as the bytes that name them. Used by pickle_blocks.h and pickle_machine.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_list_cache.h"
#include "formats/pickle/pickle_rows.h"

namespace cufit::formats {

// The keys that rows have, and where their values go.
struct PickleRowForm {
  std::array<PickleRowKeys::Key, k_row_keys> keys;
  std::array<PickleValue, k_row_keys> names;
  std::array<PickleRowPlace, k_row_keys> places;
  size_t count = 0;
};

// What MEMOIZE keeps in a row, in their order.
struct FoundMemo {
  enum class Kind : uint32_t { row, text, list, empty_list };
  explicit FoundMemo(Kind of = Kind::row, uint32_t n = 0) : kind(of), number(n & 0x3fffffff) {}
  Kind kind : 2;
  uint32_t number : 30;  // text: of the key; list: of the block
};

// A list as it stands in a row before it is resolved: its kind in the upper two bits of
// PickleRow::list.
struct FoundList {
  static constexpr uint32_t k_none = 0u << 30, k_empty = 1u << 30, k_list = 2u << 30,
                            k_get = 3u << 30, k_kind = 3u << 30;
};

struct FoundRows {
  struct Run {
    uint32_t begin = 0, end = 0;  // bytes of the block
    uint32_t first_row = 0, rows = 0;
    uint32_t first_memo = 0, memos = 0;
  };
  struct List {
    uint32_t begin = 0, size = 0;  // its items, bytes of the block
  };
  // Values that rows share: where they stand in the first row that has them, by key.
  using Shared = std::array<uint32_t, k_row_keys>;

  std::vector<Run> runs;  // by begin
  std::vector<PickleRow> rows;
  std::vector<FoundMemo> memos;
  std::vector<List> lists;
  std::vector<Shared> shared;
  void clear();
};

constexpr size_t k_scan_margin = 64;  // bytes behind a block that may be read

class PickleRowScan {
 public:
  // All the rows of that form in `block`, behind which k_scan_margin bytes may be read.
  void find(std::span<const unsigned char> block, const PickleRowForm& form, FoundRows& out);

 private:
  const unsigned char* row(const unsigned char* at);
  const unsigned char* list(const unsigned char* at, uint32_t& out);
  const unsigned char* shared_value(const unsigned char* at, size_t key);
  uint32_t shared_number();
  const unsigned char* next_row(const unsigned char* at) const;
  void run_from(const unsigned char*& at);

  struct Known {
    uint32_t round = 0, number = 0;  // of the block that it was last seen in
  };
  ListsByBytes<Known> lists_;
  uint32_t round_ = 0;

  // Of the block at work.
  const unsigned char* begin_ = nullptr;
  const unsigned char* end_ = nullptr;
  const PickleRowForm* form_ = nullptr;
  FoundRows* out_ = nullptr;
  size_t first_shared_ = 0;

  // The shared values of a row: up to 8 bytes as they are, longer ones as their hash.
  using Values = std::array<uint64_t, k_row_keys>;
  Values values_;
  std::array<uint32_t, k_row_keys> offsets_;
  std::array<uint8_t, k_row_keys> long_sizes_;  // 0: up to 8 bytes
  struct SharedRow {
    Values values;
    std::array<uint8_t, k_row_keys> long_sizes;
  };
  std::vector<SharedRow> shared_;
  std::array<uint32_t, 64> guess_;  // number + 1, by the first shared value
};

}  // namespace cufit::formats
