// SPDX-License-Identifier: Apache-2.0
// Text formatting with fmt's compile-time checked format strings. Only fmt/core.h (0.3 s) is
// included here; the heavy part (3.8 s) is compiled once in format.cc, so no libfmt is needed at
// link or run time.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace cufit {

std::string format_runtime(fmt::string_view format, fmt::format_args args);

// An object and no function, so that the standard library's own, where it has one, is not looked for
// beside it whatever the arguments are.
struct Format {
  template <class... Args>
  std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return format_runtime(text, fmt::make_format_args(args...));
  }
};
inline constexpr Format format;

// "24.0 GiB", "512 MiB", "1.5 KiB": binary units, one decimal from 1 GiB on and below 10.
std::string format_bytes(unsigned long long bytes);
std::string_view trim(std::string_view text);
// Splits at every `separator`; empty fields are kept.
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> split_lines(std::string_view text);  // accepts \n and \r\n
// What a temporary string is split into is gone before it is read.
template <class Text>
requires std::same_as<std::remove_const_t<Text>, std::string>
void split(Text&& text, char separator) = delete;
template <class Text>
requires std::same_as<std::remove_const_t<Text>, std::string>
void split_lines(Text&& text) = delete;
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string lower(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);
bool contains(std::string_view text, std::string_view part);

}  // namespace cufit
