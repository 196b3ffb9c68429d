// SPDX-License-Identifier: Apache-2.0
#include "commands/run/wait_needs.h"

#include <map>

#include "base/duration.h"
#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/run/run_vram.h"
#include "formats/prose/printable.h"
#include "host/driver/nvml_room.h"
#include "host/probe.h"
#include "host/process/this_process.h"
#include "resolve/quota/wait_cards.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_most_gpus_asked = 64;

resolve::QuotaCard quota_card(const facts::NvmlGpu& card, uint64_t total,
                              const knowledge::Knowledge& knowledge) {
  resolve::QuotaCard out;
  out.name = card.name.value_or("");
  out.uuid = card.uuid.value_or("");
  out.total_bytes = total;
  out.least_bytes = knowledge.quota_size_bytes("least_context");
  out.context_bytes = knowledge.context_bytes(card.compute_capability.value_or(""));
  return out;
}

// Why CUDA shows no device; empty: it does not say.
std::string why_no_device(const facts::CudaFacts& cuda) {
  if (!cuda.library) return cuda.library.note;
  if (cuda.init_result.value_or(0) != 0) return format("cuInit: {}", *cuda.init_result);
  return cuda.init_result.note;
}

// A share of cards that have the same memory is a size.
void say_size(WaitNeeds& needs) {
  for (const resolve::QueuedCard& card : needs.mine.cards)
    if (card.bytes != needs.mine.cards[0].bytes) return;
  if (needs.mine.cards.empty()) return;
  needs.bytes = needs.mine.cards[0].bytes;
  needs.size = format_bytes(needs.bytes);
}

}  // namespace

std::optional<Error> wait_words_problem(const Context& context, const WaitOptions& options) {
  const auto problem = [&](const std::string& key,
                           const std::map<std::string, std::string>& words) {
    return fail(Code::usage, context.message("run.wait." + key, words));
  };
  if (options.timeout && !parse_duration(*options.timeout))
    return problem("timeout_words", {{"text", shell_argument(*options.timeout)}});
  if (!options.gpus) return std::nullopt;
  const std::optional<uint64_t> count = parse_uint(*options.gpus);
  if (!count || *count == 0 || *count > k_most_gpus_asked)
    return problem("gpus_words", {{"text", shell_argument(*options.gpus)}});
  return std::nullopt;
}

Result<void> read_wait_words(const Context& context, const WaitOptions& options, WaitNeeds& needs) {
  if (auto problem = wait_words_problem(context, options)) return std::move(*problem);
  needs.mine.whole = !options.vram;
  if (options.gpus) needs.mine.count = parse_uint(*options.gpus).value_or(1);
  if (options.timeout) needs.timeout = parse_duration(*options.timeout);
  if (options.share) needs.mine.group = group_of(host::user_id(), *options.share);
  if (!options.vram) return {};
  if (auto problem = vram_words_problem(context, *options.vram, options.share, needs.request))
    return std::move(*problem);
  using Form = resolve::VramRequest::Form;
  if (needs.request.form != Form::all)
    return fail(Code::usage, context.message(needs.request.form == Form::each ? "run.wait.each"
                                                                              : "run.wait.shards"));
  const uint64_t bytes = needs.request.all.bytes;
  needs.size = bytes != 0 ? format_bytes(bytes) : *options.vram;
  return {};
}

Result<void> find_wait_cards(const Context& context, const WaitOptions& options, WaitNeeds& needs,
                             QueueLook& look) {
  facts::Facts facts;
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  host::read_driver_answers(context.machine, probe, facts);
  const Result<facts::NvmlFacts> told = host::read_gpu_room(context.machine);
  if (!told)
    return fail(told.error().code,
                context.message("run.wait.no_nvml", {{"why", told.error().text()}}));
  bool any = false;
  for (facts::NvmlGpu& card :
       resolve::usable_cards(*told, facts.cuda, context.machine.variable("CUDA_VISIBLE_DEVICES"))) {
    if (!resolve::room_of_card(card, 0).usable) continue;
    any = true;
    if (!options.suits || options.suits(*card.uuid.value)) needs.cards.push_back(std::move(card));
  }
  needs.unsuited = any && needs.cards.empty();
  if (!any) {
    const std::string why = formats::printable(why_no_device(facts.cuda));
    if (const auto visible = context.machine.variable("CUDA_VISIBLE_DEVICES");
        visible && !told->gpus.empty())
      return fail(Code::unsupported,
                  context.message("run.wait.no_gpu_visible",
                                  {{"value", visible->empty() ? "" : shell_argument(*visible)},
                                   {"count", std::to_string(told->gpus.size())}}));
    return fail(
        Code::unsupported,
        context.message(why.empty() ? "run.wait.no_gpu" : "run.wait.no_gpu_why", {{"why", why}}));
  }
  for (const facts::NvmlGpu& card : needs.cards) {
    needs.totals.push_back(0);
    for (const facts::CudaDevice& device : facts.cuda.devices)
      if (device.uuid.value_or("") == *card.uuid.value)
        needs.totals.back() = device.memory_total_bytes.value_or(0);
  }
  look.take(*told, needs.cards, needs.totals);
  return {};
}

// Cards that never could have it are left out.
Result<void> find_wait_needs(const Context& context, const WaitOptions& options, WaitNeeds& needs,
                             const QueueLook& look) {
  std::optional<resolve::VramProblem> problem;
  for (size_t i = 0; i < needs.cards.size(); ++i) {
    const resolve::QuotaCard card =
        quota_card(needs.cards[i], look.room[i].total_bytes, context.knowledge);
    std::vector<uint64_t> limits = {card.total_bytes};
    std::optional<resolve::VramProblem> one;
    if (options.vram) one = resolve::vram_limits(needs.request, {card}, {}, limits);
    if (!one && options.vram && !look.room[i].free_bytes)
      one = resolve::VramProblem{"free_unknown", {}};
    if (!one) needs.mine.cards.push_back({card.uuid, limits[0], 0});
    if (one && !problem) {
      problem = std::move(one);
      problem->args["gpu"] = format("{}: {}", needs.cards[i].index, card.name);
    }
  }
  if (needs.mine.cards.empty() && problem)
    return fail(Code::usage, context.message("run.vram." + problem->id, problem->args));
  if (options.vram) say_size(needs);
  if (needs.mine.cards.size() >= needs.mine.count) return {};
  return fail(Code::usage,
              context.message("run.wait.too_few",
                              {{"count", std::to_string(needs.mine.count)},
                               {"there", std::to_string(needs.mine.cards.size())},
                               {"need", need_text(view_of_wait(context, needs, look))}}));
}

WaitView view_of_wait(const Context& context, const WaitNeeds& needs, const QueueLook& look) {
  return {context, look.now, look.room, needs.mine.count, needs.size, needs.bytes};
}

}  // namespace cufit::commands
