// SPDX-License-Identifier: Apache-2.0
#include "commands/run/wait_text.h"

#include "base/format.h"
#include "formats/prose/printable.h"
#include "resolve/quota/wait_cards.h"

namespace cufit::commands {

std::string card_text(const Context& context, const facts::NvmlGpu& card) {
  return context.message("run.wait.gpu",
                         {{"gpu", std::to_string(card.index)},
                          {"name", formats::printable(card.name.value_or("?"), 96)}});
}

std::string need_text(const WaitView& view) {
  const bool one = view.count == 1;
  const char* const key =
      view.size.empty() ? (one ? "need_whole" : "need_wholes") : (one ? "need_size" : "need_sizes");
  return view.context.message(std::string("run.wait.") + key,
                              {{"size", view.size}, {"count", std::to_string(view.count)}});
}

std::string free_text(const WaitView& view, const resolve::WaitDecision& decision) {
  const auto said = [&](const char* key, const std::map<std::string, std::string>& words) {
    return view.context.message(std::string("run.wait.") + key, words);
  };
  if (!decision.best) return said("free_none", {});
  const facts::NvmlGpu& card = view.now[*decision.best];
  std::string out = said("free", {{"size", format_bytes(decision.best_bytes)},
                                  {"gpu", card_text(view.context, card)}});
  if (decision.kept_bytes > 0) out += said("kept", {{"size", format_bytes(decision.kept_bytes)}});
  if (const std::optional<resolve::CardUser> user = resolve::main_user(card)) {
    out += said(user->bytes ? "used_by_size" : "used_by",
                {{"name", user->name.empty() ? "?" : user->name},
                 {"pid", std::to_string(user->pid)},
                 {"size", format_bytes(user->bytes.value_or(0))}});
  } else if (view.size.empty() && !view.room[*decision.best].idle) {
    out += said("used_by_hidden", {{"size", format_bytes(card.memory_used_bytes.value_or(0))}});
  }
  if (view.count > 1)
    out += said("fitting", {{"fitting", std::to_string(decision.fitting)},
                            {"count", std::to_string(view.count)}});
  return out;
}

}  // namespace cufit::commands
