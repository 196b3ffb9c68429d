// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/wait_queue.h"

#include <algorithm>

namespace cufit::resolve {
namespace {

// All of an idle card's memory is never free: its driver holds some MiB of what CUDA calls the total.
constexpr uint64_t k_kept_by_driver = uint64_t{512} << 20;

uint64_t less(uint64_t from, uint64_t bytes) { return from > bytes ? from - bytes : 0; }

const QueuedCard* card_of(const QueuedLaunch& launch, const std::string& uuid) {
  for (const QueuedCard& card : launch.cards)
    if (card.uuid == uuid) return &card;
  return nullptr;
}

bool same_group(const QueuedLaunch& a, const QueuedLaunch& b) {
  return !a.group.empty() && a.group == b.group;
}

// Kept and used by started launches on one card. Launches of one group have one quota: the largest
// of what they say counts, once.
struct Kept {
  const QueuedLaunch* first = nullptr;
  uint64_t bytes = 0, used = 0;
};

std::vector<Kept> kept_on(const RoomOfCard& card, const std::vector<QueuedLaunch>& queue) {
  std::vector<Kept> out;
  for (const QueuedLaunch& launch : queue) {
    const QueuedCard* has = launch.started ? card_of(launch, card.uuid) : nullptr;
    if (has == nullptr) continue;
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const Kept& kept) { return same_group(*kept.first, launch); });
    if (at == out.end()) at = out.insert(out.end(), Kept{&launch, 0, 0});
    // A ticket is somebody else's word: no more than the card has.
    const uint64_t bytes =
        card.total_bytes == 0 ? has->bytes : std::min(has->bytes, card.total_bytes);
    at->bytes = std::max(at->bytes, bytes);
    at->used = std::max(at->used, has->used_bytes);
  }
  return out;
}

// What one card is to one launch.
struct Offer {
  size_t place = 0;
  bool fits = false;
  bool has_place = false;   // its group's quota is kept there: nothing new is taken
  size_t users = 0;         // started launches and processes
  uint64_t free_bytes = 0;  // without what is kept for others
  uint64_t kept_bytes = 0;  // for others
};

Offer offer_of(const RoomOfCard& card, size_t place, const QueuedCard& wanted,
               const std::vector<QueuedLaunch>& queue, const QueuedLaunch& mine) {
  Offer out;
  out.place = place;
  uint64_t own = 0, own_used = 0;
  size_t others = 0;
  for (const Kept& kept : kept_on(card, queue)) {
    if (same_group(*kept.first, mine)) {
      own = kept.bytes, own_used = kept.used;
      out.has_place = kept.bytes >= wanted.bytes;
    } else {
      ++others;
      const uint64_t untouched = less(kept.bytes, kept.used);
      out.kept_bytes += std::min(untouched, UINT64_MAX - out.kept_bytes);
    }
  }
  out.users = others + card.processes;
  out.free_bytes = less(card.free_bytes.value_or(0), out.kept_bytes);
  if (!card.usable) return out;
  const bool alone = card.idle && others == 0;
  if (mine.whole || card.exclusive) {
    out.fits = alone;
    return out;
  }
  if (!card.free_bytes) return out;
  // Of a group's quota that is in use only the rest is needed.
  const uint64_t needed = less(std::max(wanted.bytes, own), std::max(own_used, wanted.used_bytes));
  const uint64_t spared = alone && wanted.bytes <= card.total_bytes ? k_kept_by_driver : 0;
  out.fits = out.free_bytes >= less(needed, spared);
  return out;
}

bool could_ever(const RoomOfCard& card, const QueuedLaunch& launch, const QueuedCard& wanted) {
  return card.usable && (launch.whole || card.total_bytes == 0 || wanted.bytes <= card.total_bytes);
}

// A card that is not known here may do.
size_t cards_ever(const std::vector<RoomOfCard>& room, const QueuedLaunch& launch) {
  size_t out = 0;
  for (const QueuedCard& wanted : launch.cards) {
    const auto at = std::find_if(room.begin(), room.end(),
                                 [&](const RoomOfCard& card) { return card.uuid == wanted.uuid; });
    out += at == room.end() || could_ever(*at, launch, wanted) ? 1 : 0;
  }
  return out;
}

bool share_a_card(const QueuedLaunch& a, const QueuedLaunch& b) {
  return std::any_of(a.cards.begin(), a.cards.end(),
                     [&](const QueuedCard& card) { return card_of(b, card.uuid) != nullptr; });
}

void choose(std::vector<Offer> fitting, size_t count, WaitDecision& out) {
  std::stable_sort(fitting.begin(), fitting.end(), [](const Offer& a, const Offer& b) {
    if (a.has_place != b.has_place) return a.has_place;
    if (a.users != b.users) return a.users < b.users;
    return a.free_bytes > b.free_bytes;
  });
  for (size_t i = 0; i < count; ++i) out.cards.push_back(fitting[i].place);
  std::sort(out.cards.begin(), out.cards.end());
}

// Waits since longer, for a card that this one could use, and could have it.
bool is_before(const std::vector<RoomOfCard>& room, const QueuedLaunch& other,
               const QueuedLaunch& mine) {
  return !other.started && !other.stopped && other.number < mine.number &&
         share_a_card(other, mine) && cards_ever(room, other) >= other.count;
}

void describe_earlier(const std::vector<RoomOfCard>& room, const std::vector<QueuedLaunch>& queue,
                      const QueuedLaunch& mine, WaitDecision& out) {
  const QueuedLaunch* first = nullptr;
  for (const QueuedLaunch& other : queue)
    if (is_before(room, other, mine) && (first == nullptr || other.number < first->number))
      first = &other;
  if (first == nullptr) return;
  out.earlier_whole = first->whole;
  for (const QueuedCard& card : first->cards)
    if (card_of(mine, card.uuid) != nullptr)
      out.earlier_bytes = std::max(out.earlier_bytes, card.bytes);
}

size_t launches_before(const std::vector<RoomOfCard>& room, const std::vector<QueuedLaunch>& queue,
                       const QueuedLaunch& mine) {
  size_t out = 0;
  for (const QueuedLaunch& other : queue)
    if (is_before(room, other, mine)) ++out;
  return out;
}

}  // namespace

WaitDecision decide_start(const std::vector<RoomOfCard>& room,
                          const std::vector<QueuedLaunch>& queue, const QueuedLaunch& mine) {
  WaitDecision out;
  std::vector<Offer> fitting;
  size_t ever = 0, places = 0;
  for (size_t i = 0; i < room.size(); ++i) {
    const QueuedCard* wanted = card_of(mine, room[i].uuid);
    if (wanted == nullptr) continue;
    if (could_ever(room[i], mine, *wanted)) ++ever;
    const Offer offer = offer_of(room[i], i, *wanted, queue, mine);
    if (offer.fits) fitting.push_back(offer);
    if (offer.fits && offer.has_place) ++places;
    if (room[i].usable && (!out.best || offer.free_bytes > out.best_bytes)) {
      out.best = i;
      out.best_bytes = offer.free_bytes;
      out.kept_bytes = offer.kept_bytes;
    }
  }
  out.fitting = fitting.size();
  out.before = launches_before(room, queue, mine);
  describe_earlier(room, queue, mine, out);
  if (ever < mine.count || mine.count == 0) {
    out.wait_for = WaitFor::never;
  } else if (fitting.size() < mine.count) {
    out.wait_for = out.before > 0 ? WaitFor::turn : WaitFor::room;
  } else if (out.before > 0 && places < mine.count) {
    out.wait_for = WaitFor::turn;
  } else {
    choose(std::move(fitting), mine.count, out);
  }
  return out;
}

}  // namespace cufit::resolve
