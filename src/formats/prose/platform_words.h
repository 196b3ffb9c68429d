// SPDX-License-Identifier: Apache-2.0
// Two things that a pasted text says without naming them in English: which system its paths and
// tools belong to, and the driver's number in Chinese prose ("驱动版本 536.67").
#pragma once

#include <string_view>
#include <vector>

namespace cufit::formats {

// "Windows" or "Linux" by the paths, prompts and tools of a line; empty = neither.
std::string_view implied_system(std::string_view line);

// Numbers behind 驱动, 驱动版本, 显卡驱动; not those that are asked for ("需要驱动 525 以上").
std::vector<std::string_view> chinese_driver_numbers(std::string_view line);

}  // namespace cufit::formats
