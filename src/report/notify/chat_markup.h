// SPDX-License-Identifier: Apache-2.0
// Signs that chat services obey, and texts without them.
#pragma once

#include <string>
#include <string_view>

#include "report/notify/receiver.h"

namespace cufit::report {

struct ChatMarkup {
  std::string_view bold, code;  // around a text
  std::string_view end;         // of a line
  std::string_view wide;        // signs of names that the service would obey
};

ChatMarkup markup_of(ReceiverKind kind);

// The same signs at full width: a name that would call everybody, or be a link, is only read.
std::string with_wide(std::string_view name, std::string_view marks);
// A rule's own words may have bold and code; calls and links are no part of them either: they may come from a file that
// somebody else wrote.
std::string without_calls(std::string_view text, std::string_view wide);
// A command stands in a code span, which only its own mark ends; there every other sign stays, or a pasted step would be
// another one. `<@` and `<at` are calls also where a service has no code.
std::string in_code(std::string_view command, const ChatMarkup& markup);
// Slack reads `<!channel>` as a call, and these three as its own signs.
std::string slack_text(std::string_view text);

}  // namespace cufit::report
