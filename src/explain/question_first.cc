// SPDX-License-Identifier: Apache-2.0
#include "explain/question_first.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace cufit::explain {
namespace {

bool any_of(std::span<const std::string_view> clues, std::span<const std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](std::string_view one) {
    return std::find(clues.begin(), clues.end(), one) != clues.end();
  });
}

bool is_about_what_is_kept(std::string_view layer) {
  constexpr std::string_view k_layers[] = {"capacity", "growth", "distributed", "allocator"};
  return std::find(std::begin(k_layers), std::end(k_layers), layer) != std::end(k_layers);
}

}  // namespace

void mark_question_first(std::vector<Cause>& causes, std::span<const std::string_view> clues,
                         const knowledge::Knowledge& knowledge) {
  constexpr std::string_view k_elsewhere[] = {"foreign_cuda_program", "foreign_memory", "jax_word",
                                              "mps_backend",          "macos",          "tpu_word",
                                              "serving_stack"};
  if (causes.empty() || causes[0].confidence != Confidence::possible) return;
  Cause& first = causes[0];
  const knowledge::FindingTexts* texts = knowledge.find_texts(first.id);
  // What a check of the machine beside found needs no more proof.
  if (texts == nullptr || !starts_with(first.finding.variant, "text")) return;
  const std::string& variant = first.finding.variant;
  if (ends_with(variant, "_check")) return;  // its step asks already
  // "text.late": the text decided which step.
  const bool general =
      variant == "text" || variant == "text.inference" || variant == "text.batch_one";
  const bool measured =
      general && is_about_what_is_kept(texts->category) && !any_of(clues, k_elsewhere);
  first.first = measured ? Cause::First::measure : Cause::First::decide;
}

}  // namespace cufit::explain
