// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_gpus.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "commands/size_argument.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_fit_gpus_most_bytes = uint64_t{1} << 40;  // "3091" is a name that was mistyped

Result<fit::Card> card_by_size(const std::string& text, const knowledge::Knowledge& knowledge) {
  CUFIT_TRY(bytes, size_argument("--gpu", text));
  if (bytes > k_fit_gpus_most_bytes)
    return fail(Code::usage, format("`--gpu {}`: no card has so many GiB, and no name of the table "
                                    "fits",
                                    text));
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](unsigned char c) { return c == '.' || std::isdigit(c) != 0; });
  return fit::card_of_size(plain ? text + " GiB" : text, bytes, knowledge);
}

// "8 x A100", as the answer writes it: each rank has a card of its own, and only the card is asked.
// Empty: no such text.
std::string without_count(const std::string& text, const knowledge::Knowledge& knowledge) {
  const size_t x = text.find_first_not_of("0123456789 ");
  if (x == 0 || x == std::string::npos || (text[x] != 'x' && text[x] != 'X')) return {};
  const std::string card(trim(std::string_view(text).substr(x + 1)));
  return knowledge.gpus_meant(card).empty() ? std::string() : card;
}

}  // namespace

Result<std::vector<fit::Card>> asked_cards(const std::vector<std::string>& gpus,
                                           const knowledge::Knowledge& knowledge) {
  std::vector<fit::Card> cards;
  for (const std::string& text : gpus) {
    if (text == "all") {
      for (fit::Card& card : fit::all_cards(knowledge)) cards.push_back(std::move(card));
      continue;
    }
    if (const std::vector<const knowledge::Gpu*> meant = knowledge.gpus_meant(text);
        !meant.empty()) {
      // Sold with several sizes: each is answered.
      for (const knowledge::Gpu* gpu : meant) {
        cards.push_back(fit::card_of(*gpu, knowledge));
        cards.back().asked = true;
      }
      continue;
    }
    if (const std::string card = without_count(text, knowledge); !card.empty())
      return fail(Code::usage, format("`--gpu {}`: name the card alone, `--gpu \"{}\"`; each rank "
                                      "has one of its own",
                                      text, card));
    if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
      CUFIT_TRY(card, card_by_size(text, knowledge));
      cards.push_back(std::move(card));
    } else {
      const std::vector<std::string> near = knowledge.nearest_gpus(text, 3);
      return fail(Code::usage, format("`--gpu {}`: no such GPU in the table{}", text,
                                      near.empty() ? "" : "; nearest: " + join(near, ", ")));
    }
    cards.back().asked = true;
  }
  return fit::each_once(std::move(cards));
}

}  // namespace cufit::commands
