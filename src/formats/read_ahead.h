// SPDX-License-Identifier: Apache-2.0
// A ByteStream read by a thread of its own, a few pieces ahead: inflating a snapshot takes as long
// as reading the pickle inside, and both can go on at once. Used by memory/snapshot.cc.
#pragma once

#include <memory>

#include "base/bytes.h"

namespace cufit::formats {

class ReadAhead final : public ByteStream {
 public:
  // `input` must live longer and is not touched by anybody else from now on.
  explicit ReadAhead(ByteStream& input);
  ~ReadAhead() override;  // stops the thread after the piece at work
  Result<size_t> read(std::span<std::byte> out) override;
  const std::string& name() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cufit::formats
