// SPDX-License-Identifier: Apache-2.0
// A pickle in blocks, read and looked through for rows ahead of the machine that runs it, by as
// many threads as are worth it: inflating a snapshot, finding its rows and putting them together
// can all go on at once. Without threads the machine's own does what it needs next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "formats/pickle/pickle_row_scan.h"

namespace cufit::formats {

struct PickleBlock {
  // Before the bytes there is room for what is left of the block before.
  static constexpr size_t k_headroom = 16u << 10;
  unsigned char* begin = nullptr;
  size_t size = 0;                            // k_scan_margin zeros behind
  std::shared_ptr<const PickleRowForm> form;  // that `rows` were looked for with; null: with none
  FoundRows rows;
};

class PickleBlocks {
 public:
  static constexpr size_t k_usual = 512u << 10;
  // `input` must live longer and is not touched by anybody else from now on.
  PickleBlocks(ByteStream& input, unsigned threads, size_t block_bytes = k_usual);
  ~PickleBlocks();  // waits for the pieces at work

  const std::string& name() const;
  // The next block, which stays until the call after the next; null at the end, again and again.
  // An error comes behind the bytes before it.
  Result<PickleBlock*> next();
  // Blocks that nobody has looked through yet are, for rows of that form.
  void look_for(std::shared_ptr<const PickleRowForm> form);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For a pickle (or a compressed one) of that size on this machine, 0 where a thread costs more than
// it saves.
unsigned pickle_threads(uint64_t bytes, bool compressed);

}  // namespace cufit::formats
