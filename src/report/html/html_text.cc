// SPDX-License-Identifier: Apache-2.0
#include "report/html/html_text.h"

#include <algorithm>

#include "base/format.h"
#include "report/html/html_style.h"

namespace cufit::report {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string rich_html(std::string_view text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t open = text.find('`', at);
    size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) break;
    out += escape_html(text.substr(at, open - at));
    out += "<code>" + escape_html(text.substr(open + 1, close - open - 1)) + "</code>";
    at = close + 1;
  }
  return out + escape_html(text.substr(std::min(at, text.size())));
}

std::string html_head(std::string_view title, std::string_view lang, std::string_view more_style) {
  std::string out =
      format("<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n",
             lang == "zh" ? "zh-CN" : "en");
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"robots\" content=\"noindex\">\n";
  out += "<title>" + escape_html(title) + "</title>\n";
  out += std::string("<style>") + k_page_style + std::string(more_style) +
         "</style>\n</head>\n<body>\n<main>\n";
  return out;
}

}  // namespace cufit::report
