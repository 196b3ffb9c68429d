// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/vram_size.h"

#include <algorithm>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/number.h"

namespace cufit::resolve {
namespace {

constexpr uint64_t k_none = UINT64_MAX;
constexpr uint64_t k_most_gpus = 1024;

// "50%", "12.5 %": at most three places after the point.
bool parse_percent(std::string_view text, VramAmount& out) {
  text = trim(text.substr(0, text.size() - 1));
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view part = point == std::string_view::npos ? "0" : text.substr(point + 1);
  const std::optional<uint64_t> number = parse_uint(whole), places = parse_uint(part);
  if (!number || !places || *number > 100 || part.size() > 3) return false;
  double below = static_cast<double>(*places);
  for (size_t i = 0; i < part.size(); ++i) below /= 10;
  out.fraction = (static_cast<double>(*number) + below) / 100;
  return out.fraction > 0 && out.fraction <= 1;
}

bool parse_amount(std::string_view text, VramAmount& out) {
  text = trim(text);
  if (text.empty()) return false;
  if (text.back() == '%') return parse_percent(text, out);
  const std::optional<uint64_t> bytes = parse_memory_size(text);
  if (!bytes) return false;
  out.bytes = *bytes;
  return true;
}

VramProblem size_problem(std::string_view text) { return {"size", {{"text", std::string(text)}}}; }

std::string gpu_text(const std::vector<QuotaCard>& cards, size_t at) {
  return format("{}: {}", at, cards[at].name.empty() ? std::string("?") : cards[at].name);
}

// A limit against its card; nullopt = good.
std::optional<VramProblem> refusal_of(const std::vector<QuotaCard>& cards, size_t at,
                                      uint64_t bytes) {
  const QuotaCard& card = cards[at];
  std::map<std::string, std::string> args = {{"gpu", gpu_text(cards, at)},
                                             {"size", format_bytes(bytes)},
                                             {"total", format_bytes(card.total_bytes)},
                                             {"least", format_bytes(card.least_bytes)}};
  if (card.total_bytes != 0 && bytes > card.total_bytes) return VramProblem{"too_large", args};
  if (bytes == 0 || bytes < card.least_bytes) return VramProblem{"too_small", args};
  return std::nullopt;
}

// Bytes of an amount on a card; 0 = its total is not known.
uint64_t bytes_on(const VramAmount& amount, const QuotaCard& card) {
  if (amount.bytes != 0) return amount.bytes;
  return static_cast<uint64_t>(amount.fraction * static_cast<double>(card.total_bytes));
}

std::optional<VramProblem> shard_fraction(const VramRequest& request, const SlurmShards& slurm,
                                          size_t gpus, VramAmount& out) {
  const std::optional<uint64_t> shards = parse_uint(slurm.on_node);
  if (slurm.on_node.empty()) return VramProblem{"no_shards", {}};
  if (!shards || *shards == 0) return VramProblem{"shards_words", {{"text", slurm.on_node}}};
  double per_gpu = static_cast<double>(request.shards_per_gpu);
  if (request.shards_per_gpu == 0) {
    if (slurm.node_shards == 0 || slurm.node_gpus == 0)
      return VramProblem{"shards_total", {{"shards", slurm.on_node}}};
    per_gpu = static_cast<double>(slurm.node_shards) / static_cast<double>(slurm.node_gpus);
  }
  const double all = per_gpu * static_cast<double>(gpus);
  if (static_cast<double>(*shards) > all)
    return VramProblem{
        "shards_many",
        {{"shards", slurm.on_node}, {"all", format("{}", static_cast<uint64_t>(all))}}};
  out.fraction = static_cast<double>(*shards) / all;
  return std::nullopt;
}

}  // namespace

std::optional<VramProblem> parse_vram(std::string_view text, VramRequest& out) {
  out = {};
  text = trim(text);
  if (text == "shards" || starts_with(text, "shards/")) {
    out.form = VramRequest::Form::shards;
    if (text == "shards") return std::nullopt;
    const std::optional<uint64_t> total = parse_uint(text.substr(7));
    if (!total || *total == 0 || *total > 1'000'000) return size_problem(text);
    out.shards_per_gpu = *total;
    return std::nullopt;
  }
  if (text.find(':') == std::string_view::npos) {
    if (!parse_amount(text, out.all)) return size_problem(text);
    return std::nullopt;
  }
  out.form = VramRequest::Form::each;
  for (std::string_view part : split(text, ',')) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos) return size_problem(part);
    const std::optional<uint64_t> number = parse_uint(trim(part.substr(0, colon)));
    VramAmount amount;
    if (!number || *number >= k_most_gpus || !parse_amount(part.substr(colon + 1), amount))
      return size_problem(part);
    for (const auto& [known, ignored] : out.each)
      if (known == *number) return VramProblem{"twice", {{"gpu", std::to_string(*number)}}};
    out.each.emplace_back(static_cast<uint32_t>(*number), amount);
  }
  std::sort(out.each.begin(), out.each.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return std::nullopt;
}

std::optional<VramProblem> vram_limits(const VramRequest& request,
                                       const std::vector<QuotaCard>& cards,
                                       const SlurmShards& slurm, std::vector<uint64_t>& out) {
  out.assign(cards.size(), k_none);
  VramAmount all = request.all;
  const bool share_of_card = all.fraction > 0 || request.form == VramRequest::Form::shards;
  if (cards.empty() && (share_of_card || request.form == VramRequest::Form::each))
    return VramProblem{"no_gpu", {}};
  if (request.form == VramRequest::Form::shards)
    if (auto problem = shard_fraction(request, slurm, cards.size(), all)) return problem;
  std::vector<std::pair<uint32_t, VramAmount>> wanted = request.each;
  if (request.form != VramRequest::Form::each)
    for (size_t i = 0; i < cards.size(); ++i) wanted.emplace_back(static_cast<uint32_t>(i), all);
  for (const auto& [number, amount] : wanted) {
    if (number >= cards.size())
      return VramProblem{cards.size() == 1 ? "number_one" : "number",
                         {{"gpu", std::to_string(number)},
                          {"count", std::to_string(cards.size())},
                          {"last", std::to_string(cards.size() - 1)}}};
    if (amount.bytes == 0 && cards[number].total_bytes == 0)
      return VramProblem{"total", {{"gpu", gpu_text(cards, number)}}};
    const uint64_t bytes = bytes_on(amount, cards[number]);
    if (auto problem = refusal_of(cards, number, bytes)) return problem;
    out[number] = bytes;
  }
  return std::nullopt;
}

std::vector<size_t> tight_cards(const std::vector<QuotaCard>& cards,
                                const std::vector<uint64_t>& limits) {
  std::vector<size_t> out;
  for (size_t i = 0; i < cards.size(); ++i)
    if (limits[i] <= cards[i].context_bytes) out.push_back(i);
  return out;
}

uint64_t context_charge(const QuotaCard& card, uint64_t limit) {
  return limit > card.context_bytes ? card.context_bytes : card.least_bytes;
}

double torch_fraction(const std::vector<QuotaCard>& cards, const std::vector<uint64_t>& limits,
                      bool guarded) {
  double out = 0;
  for (size_t i = 0; i < cards.size(); ++i) {
    if (limits[i] == k_none) {
      if (guarded) return 0;  // one setting for all: a GPU without a limit would get one
      continue;
    }
    if (limits[i] <= cards[i].context_bytes) continue;
    const uint64_t total = guarded ? limits[i] : cards[i].total_bytes;
    if (total == 0) return 0;
    const double share =
        static_cast<double>(limits[i] - cards[i].context_bytes) / static_cast<double>(total);
    out = out == 0 ? share : guarded ? std::max(out, share) : std::min(out, share);
  }
  return std::min(out, 1.0);
}

}  // namespace cufit::resolve
