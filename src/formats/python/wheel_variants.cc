// SPDX-License-Identifier: Apache-2.0
#include "formats/python/wheel_variants.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_variants_bytes = 4u << 20;
constexpr size_t k_most_variants = 1000, k_most_features = 100, k_most_values = 1000;
constexpr size_t k_longest_word = 64;

// What the draft allows: the value of a property may hold a dot, too.
bool is_word(std::string_view text, bool dot) {
  return !text.empty() && text.size() <= k_longest_word &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || (dot && c == '.');
         });
}

Result<LabelledVariant> variant_of(const std::string& label, const Json& namespaces,
                                   const std::string& where) {
  LabelledVariant out;
  out.label = label;
  const auto wrong = [&](const std::string& what) {
    return fail(Code::malformed, format("{}: variant `{}`: {}", where, label, what));
  };
  if (!namespaces.is_object()) return wrong("no table of properties");
  for (auto space = namespaces.begin(); space != namespaces.end(); ++space) {
    if (!is_word(space.key(), false) || !space->is_object()) return wrong("no table of properties");
    for (auto feature = space->begin(); feature != space->end(); ++feature) {
      if (out.features.size() >= k_most_features) return wrong("too many properties");
      VariantFeature one{space.key(), feature.key(), {}};
      if (!is_word(one.name, false) || !feature->is_array()) return wrong("no list of values");
      for (const Json& value : *feature) {
        if (!value.is_string() || !is_word(value.text(), true) ||
            one.values.size() >= k_most_values)
          return wrong("no list of values");
        one.values.push_back(value.text());
      }
      out.features.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace

Result<WheelVariants> parse_wheel_variants(std::string_view json, const std::string& where) {
  const Json root =
      json.size() > k_most_variants_bytes ? Json() : Json::parse(json).value_or(Json());
  const auto variants = root.is_object() ? root.find("variants") : root.end();
  if (!root.is_object() || variants == root.end() || !variants->is_object())
    return fail(Code::malformed, format("{}: no table of wheel variants", where));
  if (variants->size() > k_most_variants)
    return fail(Code::malformed, format("{}: no table of wheel variants", where));
  WheelVariants out;
  for (auto each = variants->begin(); each != variants->end(); ++each) {
    if (!is_word(each.key(), true))
      return fail(Code::malformed, format("{}: no table of wheel variants", where));
    CUFIT_TRY(one, variant_of(each.key(), *each, where));
    out.variants.push_back(std::move(one));
  }
  if (const auto priorities = root.find("default-priorities");
      priorities != root.end() && priorities->is_object())
    if (const auto list = priorities->find("namespace");
        list != priorities->end() && list->is_array())
      for (const Json& one : *list)
        if (one.is_string() && is_word(one.text(), false)) out.namespaces.push_back(one.text());
  return out;
}

std::string property_text(const VariantFeature& feature, std::string_view value) {
  return format("{} :: {} :: {}", feature.name_space, feature.name, value);
}

}  // namespace cufit::formats
