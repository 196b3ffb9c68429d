// SPDX-License-Identifier: Apache-2.0
#include "report/fit_ranks.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "report/error_translation.h"
#include "report/terminal/fit_words.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_fit_ranks_size = 12;

class RanksPainter : private TerminalWriter {
 public:
  RanksPainter(const FitView& view, const Style& style)
      : TerminalWriter(view.knowledge, style),
        of_(view.answer.distributed),
        cards_(view.answer.cards) {}

  std::string paint() {
    ranks();
    worlds();
    return std::move(out_);
  }

 private:
  void head(const char* first) {
    std::string line = "  " + right(say(first), 6);
    for (const char* column : {"fit.column.allocated", "fit.column.reserved", "fit.column.upper",
                               "fit.column.outside"})
      line += right(say(column), k_fit_ranks_size);
    out_ += coloured(line, "1") + "\n";
  }

  template <typename Row>
  std::string numbers(uint64_t first, const Row& row) const {
    std::string line = "  " + right(thousands(first), 6);
    for (const uint64_t bytes : {row.peak_allocated, row.peak_reserved, row.peak_reserved_upper,
                                 row.outside_allocator})
      line += right(gib(bytes), k_fit_ranks_size);
    return line;
  }

  void ranks() {
    if (of_.ranks.size() < 2) return;
    heading(say("fit.heading.ranks"));
    head("fit.column.rank");
    for (const fit::RankAnswer& rank : of_.ranks) {
      std::string note;
      if (rank.like)
        note = say("fit.like_rank", {{"rank", thousands(*rank.like)}});
      else if (rank.rank == of_.rank && of_.more)
        note = say("fit.largest_of_ranks");
      out_ += numbers(rank.rank, rank) + (note.empty() ? "" : "  " + note) + "\n";
    }
  }

  void worlds() {
    if (of_.worlds.empty()) return;
    heading(say("fit.heading.worlds"));
    head("fit.column.ranks");
    for (const fit::WorldAnswer& world : of_.worlds) out_ += numbers(world.world, world) + "\n";
    if (fit::none_shrinks(of_.worlds)) flow(say("fit.none_shrinks"), "  ", "  ");
    least_of_all();
  }

  // Of `--gpu all`, which has more cards than lines: from which card on a number is enough.
  void least_of_all() {
    size_t none = 0;
    std::map<uint64_t, const fit::CardAnswer*> smallest;
    for (const fit::CardAnswer& card : cards_) {
      if (card.asked) continue;
      if (!card.least_world) {
        ++none;
        continue;
      }
      const fit::CardAnswer*& kept = smallest[*card.least_world];
      if (kept == nullptr || card.usable < kept->usable) kept = &card;
    }
    for (const auto& [world, card] : smallest)
      flow(say("fit.least_from",
               {{"world", thousands(world)}, {"card", card->name}, {"usable", gib(card->usable)}}),
           "  ", "  ");
    if (none != 0 && !smallest.empty())
      flow(say(counted("fit.least_none", none), {{"count", thousands(none)}}), "  ", "  ");
  }

  const fit::Distributed& of_;
  const std::vector<fit::CardAnswer>& cards_;
};

std::string traced_ranks(const fit::Distributed& of) {
  std::vector<std::string> out;
  for (const fit::RankAnswer& rank : of.ranks) out.push_back(std::to_string(rank.rank));
  return join(out, ", ");
}

}  // namespace

std::string fit_ranks(const FitView& view, const Style& style) {
  return RanksPainter(view, style).paint();
}

std::vector<std::string> fit_rank_lines(const FitView& view, const std::string& lang) {
  const fit::Distributed& of = view.answer.distributed;
  std::vector<std::string> out;
  if (of.world < 2) return out;
  const auto say = [&](const char* key, const std::map<std::string, std::string>& args) {
    out.push_back(label(view.knowledge, lang, std::string("fit.") + key, args));
  };
  std::map<std::string, std::string> args = {{"rank", thousands(of.rank)},
                                             {"world", thousands(of.world)},
                                             {"traced", traced_ranks(of)}};
  say(of.ranks.size() < 2 ? "of_rank" : of.more ? "largest_rank" : "equal_ranks", args);
  if (of.ranks.size() > 1 && of.more) {
    // Contexts and libraries are as large on each rank.
    const std::string part = of.more->part == "outside_allocator" ? "of_nccl" : of.more->part;
    say("more_than_rank",
        {{"bytes", gib(of.more->bytes)},
         {"least", thousands(of.least)},
         {"part", label(view.knowledge, lang, "fit.part." + part)}});
  }
  if (!of.differ.empty())
    say("ranks_differ",
        {{"detail", printable(reworded(of.differ, "said.fit.", lang, view.knowledge))}});
  return out;
}

std::string fit_card_name(const FitView& view, const fit::CardAnswer& card,
                          const std::string& lang) {
  const uint64_t world = view.answer.distributed.world;
  if (world < 2) return card.name;
  return label(view.knowledge, lang, "fit.several_cards",
               {{"world", thousands(world)}, {"card", card.name}});
}

}  // namespace cufit::report
