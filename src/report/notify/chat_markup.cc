// SPDX-License-Identifier: Apache-2.0
#include "report/notify/chat_markup.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"

namespace cufit::report {

std::string with_wide(std::string_view name, std::string_view marks) {
  constexpr std::pair<char, std::string_view> k_wide[] = {{'<', "＜"}, {'>', "＞"},  {'[', "［"},
                                                          {']', "］"}, {'`', "｀"},  {'*', "＊"},
                                                          {'@', "＠"}, {'\\', "＼"}, {'~', "～"}};
  std::string out;
  for (const char c : name) {
    const auto wide = std::find_if(std::begin(k_wide), std::end(k_wide),
                                   [c](const auto& row) { return row.first == c; });
    if (wide != std::end(k_wide) && contains(marks, std::string_view(&c, 1)))
      out += wide->second;
    else
      out += c;
  }
  return out;
}

ChatMarkup markup_of(ReceiverKind kind) {
  switch (kind) {
    case ReceiverKind::slack:  // also what takes Slack's form, such as Mattermost, which obeys @all
      return {"*", "`", "\n", "[]@`*~"};
    case ReceiverKind::dingtalk:  // one line end is a blank in its Markdown
      return {"**", "`", "\n\n", "<>[]`*@\\~"};
    case ReceiverKind::wecom:
      return {"**", "`", "\n", "<>[]`*@\\~"};
    case ReceiverKind::feishu:  // literal text
      return {"", "", "\n", "<>@"};
    default:
      return {"", "", "\n", ""};
  }
}

std::string without_calls(std::string_view text, std::string_view wide) {
  std::string marks;
  for (const char c : std::string_view("<>[]@"))
    if (contains(wide, std::string_view(&c, 1))) marks += c;
  return with_wide(text, marks);
}

std::string in_code(std::string_view command, const ChatMarkup& markup) {
  std::string text = markup.code.empty() ? std::string(command) : with_wide(command, markup.code);
  if (!contains(markup.wide, "<")) return text;
  for (const std::string_view call : {"<@", "<at"})
    for (size_t at = text.find(call); at != text.npos; at = text.find(call, at + 1))
      text.replace(at, 1, "＜");
  return text;
}

std::string slack_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

}  // namespace cufit::report
