// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/resolve_variants.h"

#include "base/format.h"
#include "base/shell_word.h"
#include "formats/python/index_config.h"
#include "report/message.h"

namespace cufit::report {
namespace {

using resolve::VariantChoice;

std::string labels_of(const VariantChoice& choice, facts::VariantFit fit, const std::string& list) {
  std::vector<std::string> out;
  for (const VariantChoice::Row& row : choice.rows)
    if (row.fit == fit) out.push_back(row.label);
  return join(out, list);
}

// Which sentence says what an installer takes.
const char* taken_key(const resolve::Answer& answer, const VariantChoice& choice) {
  if (choice.taken.empty()) return "resolve.variants_none";
  if (choice.taken != "null" || answer.target.gpus.empty()) return "resolve.variants";
  const bool runs = !answer.usable.empty() && !answer.usable.front().wheel.is_cpu();
  return runs ? "resolve.variants_null" : "resolve.variants_cpu";
}

}  // namespace

std::vector<std::string> variant_sentences(const ResolveView& view, size_t i,
                                           std::string_view lang) {
  std::vector<std::string> out;
  if (i >= view.variants.size()) return out;
  const VariantChoice& choice = view.variants[i];
  const resolve::Target& target = view.answers[i].target;
  if (choice.taken.empty() && target.driver_state == resolve::Target::Driver::not_told) return out;
  const auto say = [&](const char* key, const std::map<std::string, std::string>& args) {
    out.push_back(label(view.knowledge, lang, key, args));
  };
  const std::string list = label(view.knowledge, lang, "list");
  const std::string differ = labels_of(choice, facts::VariantFit::differs, list);
  const std::string unjudged = labels_of(choice, facts::VariantFit::not_known, list);
  if (!choice.taken.empty() || unjudged.empty())
    say(taken_key(view.answers[i], choice),
        {{"torch", view.variants_torch}, {"taken", choice.taken}, {"labels", differ}});
  if (!choice.left_out.empty()) {
    resolve::Target left;
    left.gpus = choice.left_out;
    const std::string gpus = resolve::gpus_text(left);
    say("resolve.variants_left",
        {{"taken", choice.taken}, {"gpus", lang == "zh" ? chinese_signs(gpus) : gpus}});
  }
  if (!unjudged.empty()) say("resolve.variants_unjudged", {{"labels", unjudged}});
  return out;
}

std::string variant_step(const ResolveView& view, const resolve::Answer& answer) {
  for (size_t i = 0; i < view.variants.size(); ++i) {
    const VariantChoice& choice = view.variants[i];
    if (&view.answers[i] != &answer || choice.taken.empty() || choice.taken == "null" ||
        !choice.left_out.empty())
      continue;
    std::string command = "uv pip install --preview-features wheel-variants";
    for (const std::string& index : view.request.asked_indexes)
      command += " --index " + shell_word(formats::without_credentials(index));
    return command + " torch==" + view.variants_torch;
  }
  return {};
}

}  // namespace cufit::report
