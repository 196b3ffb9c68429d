// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/platform_words.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "base/format.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_platform_words_npos = std::string_view::npos;

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains(text, word); });
}

// "C:\Users", "(venv) D:\sd": a letter of its own before ":\".
bool has_drive(std::string_view line) {
  for (size_t at = line.find(":\\"); at != k_platform_words_npos; at = line.find(":\\", at + 2)) {
    const auto is_letter = [&](size_t i) {
      return std::isalpha(static_cast<unsigned char>(line[i])) != 0;
    };
    if (at > 0 && is_letter(at - 1) &&
        (at == 1 || !std::isalnum(static_cast<unsigned char>(line[at - 2]))))
      return true;
  }
  return false;
}

std::string_view skip(std::string_view text, std::initializer_list<std::string_view> words) {
  for (bool again = true; again;) {
    again = false;
    text = text.substr(std::min(text.find_first_not_of(" \t:=(`*|"), text.size()));
    for (std::string_view word : words) {
      if (!starts_with(text, word)) continue;
      text.remove_prefix(word.size());
      again = true;
    }
  }
  return text;
}

}  // namespace

std::string_view implied_system(std::string_view line) {
  if (has_drive(line) || has_any(line, {"WDDM", "win_amd64", "[WinError "})) return "Windows";
  if (has_any(line, {"/usr/", "/home/", "/root/", "/opt/", "-linux-gnu", "linux_x86_64",
                     "apt install ", "apt-get install ", "sudo "}))
    return "Linux";
  return {};
}

std::vector<std::string_view> chinese_driver_numbers(std::string_view line) {
  constexpr std::string_view driver = "驱动";
  std::vector<std::string_view> out;
  for (size_t at = line.find(driver); at != k_platform_words_npos;
       at = line.find(driver, at + driver.size())) {
    const std::string_view before = line.substr(at > 30 ? at - 30 : 0, std::min<size_t>(at, 30));
    if (has_any(before, {"需要", "要求", "升级", "更新", "至少", "最低", "换成", "改用", "安装"}))
      continue;
    const std::string_view value =
        skip(line.substr(at + driver.size()),
             {"程序", "版本号", "版本", "号", "是", "为", "：", "（", "，", "用的", "NVIDIA", "v"});
    const std::string_view number = dotted_number_at(value);
    const std::string_view behind = value.substr(number.size());
    if (!has_inner_dot(number) || number.find('.') != 3 || number[0] < '3' || number.size() > 11)
      continue;
    if (has_any(behind.substr(0, std::min<size_t>(behind.size(), 16)),
                {"以上", "及以上", "或更高", "或更新"}))
      continue;
    out.push_back(number);
  }
  return out;
}

}  // namespace cufit::formats
