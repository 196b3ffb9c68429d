// SPDX-License-Identifier: Apache-2.0
// Tokens of a settings string with their places, and the typed values that keys ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::memory {

class SettingsTokens {
 public:
  explicit SettingsTokens(std::string_view text);

  bool done() const { return next_ >= tokens_.size(); }
  bool at(std::string_view text) const { return !done() && tokens_[next_].text == text; }
  // The byte of the next token, or the end of the text.
  size_t place() const { return done() ? end_ : tokens_[next_].place; }
  std::string_view peek() const { return done() ? std::string_view() : tokens_[next_].text; }
  std::string_view take() { return done() ? std::string_view() : tokens_[next_++].text; }

  // Each names `key` and the place in its error.
  Result<bool> expect(std::string_view token, std::string_view key);
  Result<uint64_t> number(std::string_view key);
  Result<double> real(std::string_view key);
  Result<bool> boolean(std::string_view key);
  Error wrong(std::string_view key, std::string_view what) const;  // at the next token

 private:
  struct Token {
    std::string text;  // a copy: spaces inside a word are dropped, as PyTorch does
    size_t place;
  };
  std::vector<Token> tokens_;
  size_t next_ = 0;
  size_t end_ = 0;
};

}  // namespace cufit::memory
