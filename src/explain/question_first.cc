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
  // A program's own step names what to look at first; what these rest on stands in the text: the
  // card, the line that fails, what the program says of its option.
  constexpr std::string_view k_shown[] = {"text.turing",         "text.turing_xformers",
                                          "text.encode",         "text.eval",
                                          "text.engine_request", "text.lmdeploy_workspace",
                                          "text.ollama_holder",  "text.batch_one_logits"};
  const std::string_view chosen[] = {first.finding.variant};
  if (first.step || any_of(chosen, k_shown)) return;
  const knowledge::FindingTexts* texts = knowledge.find_texts(first.id);
  // What a check of the machine beside found needs no more proof.
  if (texts == nullptr || !starts_with(first.finding.variant, "text")) return;
  const std::string& variant = first.finding.variant;
  if (ends_with(variant, "_check")) return;  // its step asks already
  // "text.late": the text decided which step.
  const bool general =
      variant == "text" || variant == "text.inference" || variant == "text.batch_one";
  // Of one request that is much of the card while little is held, no recording tells more.
  constexpr std::string_view k_one_large[] = {"oom_tried_large"},
                             k_little[] = {"oom_little_allocated"};
  const bool one_request = any_of(clues, k_one_large) && any_of(clues, k_little);
  const bool measured = general && is_about_what_is_kept(texts->category) && !one_request &&
                        !any_of(clues, k_elsewhere);
  first.first = measured ? Cause::First::measure : Cause::First::decide;
}

}  // namespace cufit::explain
