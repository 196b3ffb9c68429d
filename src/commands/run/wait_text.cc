// SPDX-License-Identifier: Apache-2.0
#include "commands/run/wait_text.h"

#include "base/format.h"
#include "formats/prose/printable.h"
#include "resolve/quota/wait_cards.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_mib = uint64_t{1} << 20;

// "needs 4.0 GiB; most free is 4.0 GiB" would explain nothing.
bool reads_the_same(const WaitView& view, const resolve::WaitDecision& decision) {
  return decision.best && view.bytes > decision.best_bytes &&
         format_bytes(view.bytes) == format_bytes(decision.best_bytes);
}

}  // namespace

std::string card_text(const Context& context, const facts::NvmlGpu& card) {
  return context.message("run.wait.gpu",
                         {{"gpu", std::to_string(card.index)},
                          {"name", formats::printable(card.name.value_or("?"), 96)}});
}

std::string need_text(const WaitView& view, const resolve::WaitDecision* beside) {
  const bool one = view.count == 1;
  const char* const key =
      view.size.empty() ? (one ? "need_whole" : "need_wholes") : (one ? "need_size" : "need_sizes");
  return view.context.message(std::string("run.wait.") + key,
                              {{"size", beside != nullptr && reads_the_same(view, *beside)
                                            ? format("{} MiB", (view.bytes + k_mib - 1) / k_mib)
                                            : view.size},
                               {"count", std::to_string(view.count)}});
}

std::string free_text(const WaitView& view, const resolve::WaitDecision& decision) {
  const auto said = [&](const char* key, const std::map<std::string, std::string>& words) {
    return view.context.message(std::string("run.wait.") + key, words);
  };
  if (!decision.best) return said("free_none", {});
  const facts::NvmlGpu& card = view.now[*decision.best];
  std::string out = said("free", {{"size", reads_the_same(view, decision)
                                               ? format("{} MiB", decision.best_bytes / k_mib)
                                               : format_bytes(decision.best_bytes)},
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
  if (decision.wait_for == resolve::WaitFor::turn && decision.fitting >= view.count)
    out += said(decision.earlier_whole ? "came_first_whole" : "came_first",
                {{"size", format_bytes(decision.earlier_bytes)}});
  return out;
}

}  // namespace cufit::commands
