// SPDX-License-Identifier: Apache-2.0
// Allocator settings as texts: in PyTorch's form, as options of cufit give them, and those that are
// worth trying.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "memory/allocator/allocator_settings.h"

namespace cufit::memory {

// "expandable_segments:True,max_split_size_mb:128"; empty for the defaults.
std::string settings_text(const Settings& settings);
// "KEY=VALUE,..." or PyTorch's "KEY:VALUE,..." in PyTorch's form.
std::string settings_from_option(std::string_view text);

// Settings worth trying without knowing the program: each key alone at its usual values, and the
// pairs that do not exclude each other. Twelve, the defaults among them.
std::span<const std::string_view> usual_settings();

}  // namespace cufit::memory
