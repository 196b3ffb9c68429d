// SPDX-License-Identifier: Apache-2.0
// "Did you mean": candidates closest to a word that was typed wrong. Used for commands, options and
// GPU names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cufit {

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours
// cost 1.
size_t edit_distance(std::string_view a, std::string_view b);

// At most `count` candidates within a distance of a third of the word's length (at least 2),
// nearest first; case is ignored. Words over 64 bytes have no nearest candidate.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 size_t count);

}  // namespace cufit
