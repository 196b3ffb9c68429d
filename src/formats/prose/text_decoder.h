// SPDX-License-Identifier: Apache-2.0
// Bytes of any pasted or logged text to UTF-8 without terminal control: UTF-16 (with or without a
// byte order mark), a UTF-8 mark, CR LF, ANSI colours and cursor moves. Bytes come in pieces of any
// size. A lone CR (a progress bar drawing over itself) becomes a vertical tab: a new piece of the
// same line, so that what the bar hid is not lost and line numbers stay those of an editor.
// Bytes that are no UTF-8 pass as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cufit::formats {

class TextDecoder {
 public:
  // Appends the decoded text to `out`; up to 64 bytes may be held back for the next call.
  void add(std::string_view bytes, std::string& out);
  void finish(std::string& out);  // what was held back

 private:
  enum class Encoding { unknown, utf8, utf16_le, utf16_be };
  void detect(std::string_view bytes);
  void add_utf16(std::string_view bytes);
  void clean(std::string& out, bool last);

  Encoding encoding_ = Encoding::unknown;
  std::string first_;    // before the encoding is known
  std::string pending_;  // UTF-8 that may end within a control sequence
  std::string half_;     // of a UTF-16 unit
  uint32_t high_ = 0;    // first half of a surrogate pair
};

}  // namespace cufit::formats
