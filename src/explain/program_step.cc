// SPDX-License-Identifier: Apache-2.0
#include "explain/program_step.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "explain/captures.h"

namespace cufit::explain {
namespace {

constexpr const char* k_steps = "program_memory";

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Nothing but the operating system or the container chose the step.
bool is_general(std::string_view variant) {
  constexpr std::string_view k_general[] = {"text",        "text.inference",  "text.windows",
                                            "text.docker", "text.compose",    "text.podman",
                                            "text.lxc",    "text.apptainer",  "text.portable",
                                            "text.conda",  "text.kubernetes", "text.ubuntu",
                                            "text.debian"};
  return is_one_of(variant, k_general);
}

// Causes that know no step of their own for a program: too much at once, or kept. Of what a text
// proves beside them (who holds the memory, which stage is the peak), the cause knows the cure.
bool suits(const Cause& cause, std::string_view layer) {
  constexpr std::string_view k_plain[] = {"activation_peak",       "weights_exceed_capacity",
                                          "oversized_input",       "memory_saver_not_active",
                                          "graph_retained",        "eval_without_no_grad",
                                          "tensors_kept",          "library_leak",
                                          "trains_too_many_params"};
  constexpr std::string_view k_if_open[] = {"capacity",  "growth",      "serving",
                                            "allocator", "outside",     "bug",
                                            "quota",     "application", "distributed"};
  return is_one_of(cause.id, k_plain) ||
         (cause.confidence == Confidence::possible && is_one_of(layer, k_if_open));
}

}  // namespace

void fill_program_steps(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                        std::span<const std::string_view> clues, const facts::Facts& facts,
                        const knowledge::Knowledge& knowledge, const Setting& setting) {
  if (knowledge.find_texts(k_steps) == nullptr) return;
  std::vector<Cause> steps;
  std::vector<Cause*> causes_of_steps;
  for (Cause& cause : causes) {
    const knowledge::FindingTexts* texts = knowledge.find_texts(cause.id);
    if (texts == nullptr || !is_general(cause.finding.variant) || !suits(cause, texts->category))
      continue;
    Cause& step = steps.emplace_back();
    step.id = step.finding.id = k_steps;
    step.finding.variant = "text";
    step.evidence = cause.evidence;
    causes_of_steps.push_back(&cause);
  }
  if (steps.empty()) return;
  fill_captures(steps, lines, clues, facts, knowledge, setting);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!is_general(steps[i].finding.variant))
      causes_of_steps[i]->step = std::move(steps[i].finding);
  }
}

}  // namespace cufit::explain
