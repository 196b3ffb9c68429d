// SPDX-License-Identifier: Apache-2.0
#include "facts/text_claims.h"

#include "base/format.h"
#include "base/number.h"

namespace cufit::facts {

std::vector<Claim> mentions_of(const formats::MachineWords& words, formats::MachineWord what) {
  std::vector<Claim> claims;
  for (const formats::MachineMention& word : words.mentions)
    if (word.what == what && !word.value.empty())
      claims.push_back({word.value, word.line, word.weak ? Weight::passing : Weight::prose});
  return claims;
}

bool says_more(std::string_view longer, std::string_view shorter) {
  if (!starts_with(longer, shorter)) return false;
  return longer.size() == shorter.size() || longer[shorter.size()] == '.' ||
         longer[shorter.size()] == '+' || longer[shorter.size()] == ' ';
}

Fact<std::string> TextSource::settle(const std::vector<Claim>& claims) const {
  const Claim* best = nullptr;
  for (const Claim& claim : claims)
    if (!best || claim.weight > best->weight) best = &claim;
  if (!best) return unsaid<std::string>();
  for (const Claim& claim : claims) {
    if (claim.weight != best->weight || says_more(best->value, claim.value)) continue;
    if (!says_more(claim.value, best->value)) return contradicted<std::string>(*best, claim);
    best = &claim;
  }
  return claim<std::string>(best->value, best->line);
}

void TextSource::add(const Fact<std::string>& fact, Weight weight,
                     std::vector<Claim>& claims) const {
  if (!fact) return;
  size_t colon = fact.source.detail.rfind(':');
  std::optional<uint64_t> line =
      colon == std::string::npos
          ? std::nullopt
          : parse_uint(std::string_view(fact.source.detail).substr(colon + 1));
  claims.push_back({*fact, line.value_or(0), weight});
}

}  // namespace cufit::facts
