// SPDX-License-Identifier: Apache-2.0
// What `cufit fit` says of a program of several ranks.
#pragma once

#include <string>
#include <vector>

#include "report/fit.h"

namespace cufit::report {

// Tables of ranks and of numbers of ranks, with their headings; empty where there is one of each.
std::string fit_ranks(const FitView& view, const Style& style);

// Sentences: which ranks were traced, which takes most and why. None for a program of one.
std::vector<std::string> fit_rank_lines(const FitView& view, const std::string& lang);

// "8 x H100 SXM".
std::string fit_card_name(const FitView& view, const fit::CardAnswer& card,
                          const std::string& lang);

}  // namespace cufit::report
