// SPDX-License-Identifier: Apache-2.0
#include "explain/oom_clues.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace cufit::explain {
namespace {

using formats::OomMessage;

constexpr uint64_t k_mib = 1ull << 20, k_gib = 1ull << 30, k_tib = 1ull << 40;
// A CUDA context with its libraries, measured from 0.3 GiB (bare) to 1.2 GiB (cuBLAS, cuDNN, NCCL)
constexpr uint64_t k_context = k_gib;
// What NVML prints when it does not know a process' use (2^64 - 1, or near it): no size
constexpr uint64_t k_not_available = 1ull << 60;
// Two decimals of a GiB, as the messages print them.
constexpr uint64_t k_rounding = 10 * k_mib;
// The driver serves from a free list of its own: a few MiB more free than asked for are no proof
// that the request would fit (25 MiB free and 20 MiB refused is common on a full card).
constexpr uint64_t k_free_margin = 128 * k_mib;
// Far more than any card has (some 300 GB in 2026): such a request fits none, whichever it is.
constexpr uint64_t k_beyond_all_cards = 512 * k_gib;

int count_of(const OomMessage& m) {
  return int{m.tried.has_value()} + m.total.has_value() + m.free.has_value() +
         m.allocated.has_value() + m.reserved.has_value() + m.own.has_value() + !m.others.empty();
}

class Clues {
 public:
  explicit Clues(const OomMessage& message) : m_(message) {}

  std::vector<ComputedClue> all() {
    if (m_.kind == "vllm" || m_.kind == "hami") return {};  // their own messages name the cause
    own();
    request();
    others();
    slack();
    size_of_things();
    return std::move(out_);
  }

 private:
  void add(const char* id, std::string fact) { out_.push_back({id, m_.line, std::move(fact)}); }
  static std::string gib(uint64_t bytes) { return format_bytes(bytes); }

  bool is_free() const { return m_.free && m_.tried && *m_.free >= *m_.tried + k_free_margin; }

  // What this process holds: the larger of its reserve and what NVML says of it. In a container
  // NVML's host pid is not ours and the program's own entry reads "Process N has ...": the one that
  // is as large as the reserve and a context.
  void own() {
    others_ = m_.others;
    own_ = std::max(m_.reserved.value_or(0), m_.allocated.value_or(0));
    if (m_.own && *m_.own < k_not_available) {
      own_ = std::max(own_, *m_.own);
      has_context_ = true;
    } else if (own_ > 0) {
      auto mine = std::find_if(others_.begin(), others_.end(), [&](const formats::OomProcess& p) {
        return own_ <= p.bytes + 64 * k_mib && p.bytes <= own_ + 2 * k_gib;
      });
      if (mine != others_.end()) {
        own_ = mine->bytes;
        has_context_ = true;
        others_.erase(mine);
      }
    }
  }

  void request() {
    if (m_.tried && (m_.total || m_.allocated) && m_.kind != "prose")
      add("oom_message", "asked for " + gib(*m_.tried));
    if (!m_.tried) return;
    const uint64_t tried = *m_.tried;
    // 2 MiB and 20 MiB segments serve requests of up to 1 and 10 MiB.
    if (tried <= 64 * k_mib) add("oom_tried_small", "asked for only " + gib(tried));
    if (m_.total && tried > *m_.total / 4)
      add("oom_tried_large", format("asked for {} of a card of {}", gib(tried), gib(*m_.total)));
    if (m_.total && tried > *m_.total)
      add("oom_tried_over_capacity",
          format("asked for {}, the card has {}", gib(tried), gib(*m_.total)));
    // Ten times the largest card (288 GB) is less, so the card need not be named.
    if (tried >= 4 * k_tib || (m_.total && tried / 10 > *m_.total))
      add("oom_tried_absurd", "asked for " + gib(tried));
    if (!m_.total && tried > k_beyond_all_cards)
      add("oom_tried_over_capacity", format("asked for {}, no card has that", gib(tried)));
    if (!is_free()) return;
    add("oom_free_enough", format("{} were free, {} were asked for", gib(*m_.free), gib(tried)));
    // A segment rounded up, a neighbour that gave memory back in between: not by a tenth of the
    // card and four times the request.
    if (m_.total && *m_.free / 4 >= tried && *m_.free >= *m_.total / 10)
      add("oom_free_plenty", format("{} were free, {} were asked for", gib(*m_.free), gib(tried)));
  }

  void others() {
    if (!others_.empty())
      add("oom_other_process_clause", format("{} other processes are named", others_.size()));
    if (others_.size() >= 3) {
      std::vector<uint64_t> sizes;
      for (const formats::OomProcess& p : others_) sizes.push_back(p.bytes);
      std::sort(sizes.begin(), sizes.end());
      const uint64_t middle = sizes[sizes.size() / 2];
      const auto alike = std::count_if(sizes.begin(), sizes.end(), [&](uint64_t size) {
        return size > middle - middle / 4 && size < middle + middle / 4;
      });
      if (alike >= 3)
        add("oom_many_equal_processes", format("{} processes of about {}", alike, gib(middle)));
    }
    if (!m_.total || !m_.free || own_ == 0) return;
    const uint64_t mine = own_ + (has_context_ ? 0 : k_context) + *m_.free;
    const uint64_t left = *m_.total > mine ? *m_.total - mine : 0;
    // The message names every process that NVML sees; where these hold far less than what is left
    // over, the rest is the driver's.
    uint64_t named = 0;
    for (const formats::OomProcess& p : others_) named += std::min(p.bytes, *m_.total);
    // More than 2 GiB is no driver's: other containers' processes are not always named.
    const bool few =
        !others_.empty() && has_context_ && named < left / 2 && left < named + 2 * k_gib;
    const uint64_t outside = few ? named : left;
    // Below 1 GiB or 8 % of the card it may be the display, NCCL, or a larger context.
    const bool is_outside = outside > std::max(k_gib, *m_.total / 100 * 8);
    add(is_outside ? "oom_outside_memory" : "oom_no_outside",
        few ? format("the other processes that are named hold {}", gib(named))
            : format("total {} - free {} - this process {} = {} held by others", gib(*m_.total),
                     gib(*m_.free), gib(mine - *m_.free), gib(outside)));
    if (outside >= *m_.total / 2)
      add("oom_outside_half",
          format("others hold {} of a card of {}", gib(outside), gib(*m_.total)));
    if (own_ >= *m_.total / 10 * 8)
      add("oom_own_full", format("this process holds {} of {}", gib(own_), gib(*m_.total)));
  }

  void slack() {
    if (!m_.reserved || !m_.allocated || *m_.reserved < *m_.allocated) return;
    const uint64_t slack = *m_.reserved - *m_.allocated;
    const std::string fact = format("reserved {} - allocated {} = {} unused", gib(*m_.reserved),
                                    gib(*m_.allocated), gib(slack));
    if (!m_.tried) {
      if (slack >= *m_.reserved / 10 * 3) add("oom_reserved_slack", fact);
    } else if (slack < *m_.tried) {
      add("oom_no_slack", fact + format(", {} were asked for", gib(*m_.tried)));
    } else if (slack >= *m_.reserved / 20 && !is_free()) {
      add("oom_reserved_slack", fact + format(", {} were asked for", gib(*m_.tried)));
      if (slack / 3 >= *m_.tried && slack >= *m_.reserved / 10)
        add("oom_slack_large", format("{} unused, {} were asked for", gib(slack), gib(*m_.tried)));
    }
  }

  void size_of_things() {
    if (m_.pools && m_.allocated && *m_.pools >= *m_.allocated / 5)
      add("oom_private_pools", gib(*m_.pools) + " in private pools");
    if (m_.pools && m_.allocated && *m_.pools > 0 && *m_.pools >= *m_.allocated / 2)
      add("oom_pools_half",
          format("{} of {} in private pools", gib(*m_.pools), gib(*m_.allocated)));
    const uint64_t most = std::max(m_.allocated.value_or(0), m_.reserved.value_or(0));
    if (m_.total && most > *m_.total + *m_.total / 50)
      add("oom_over_capacity", format("{} on a card of {}", gib(most), gib(*m_.total)));
    else if (m_.own && *m_.own >= k_not_available)
      add("oom_over_capacity",
          "17179869184.00 GiB is the driver's way to say that it does not know");
    limit();
    if (m_.total && m_.allocated && *m_.allocated < *m_.total / 10)
      add("oom_little_allocated",
          format("PyTorch holds {} of {}", gib(*m_.allocated), gib(*m_.total)));
  }

  // Who is refused while the card has room meets a limit of his own. Some versions do not print it;
  // then a small request that crosses a twentieth of the card (a fraction is a round number) tells.
  void limit() {
    // The asynchronous allocator prints the whole card where no limit is set.
    const bool is_limit = m_.allowed && (!m_.total || *m_.allowed < *m_.total / 50 * 49);
    if (is_limit) add("oom_allowed_limit", "allowed: " + gib(*m_.allowed));
    const uint64_t held = std::max(m_.allocated.value_or(0), m_.reserved.value_or(0));
    if (!is_free() || held == 0) return;
    const uint64_t wanted = held + *m_.tried;
    if (is_limit) {
      if (wanted + k_rounding > *m_.allowed)
        add("oom_limit_reached", format("holds {} of {} allowed, asked for {}", gib(held),
                                        gib(*m_.allowed), gib(*m_.tried)));
      return;
    }
    if (!m_.total || !m_.reserved || *m_.tried > *m_.total / 200) return;
    const uint64_t step = *m_.total / 20, parts = (wanted + k_rounding) / step;
    if (parts >= 1 && parts < 20 && held <= parts * step + k_rounding)
      add("oom_limit_reached", format("holds {} and asked for {}: {} % of {}", gib(held),
                                      gib(*m_.tried), parts * 5, gib(*m_.total)));
  }

  const OomMessage& m_;
  uint64_t own_ = 0;
  bool has_context_ = false;  // own_ includes it
  std::vector<formats::OomProcess> others_;
  std::vector<ComputedClue> out_;
};

}  // namespace

std::optional<OomMessage> main_message(std::span<const OomMessage> messages) {
  // A request that no card could serve says more than the numbers of any other message.
  const auto rank = [](const OomMessage& message) {
    const bool unservable = message.tried && *message.tried > k_beyond_all_cards;
    return std::pair(unservable, count_of(message));
  };
  const OomMessage* best = nullptr;
  for (const OomMessage& message : messages) {
    if (!best || rank(message) > rank(*best)) best = &message;
  }
  if (!best) return std::nullopt;
  return *best;
}

std::vector<ComputedClue> oom_clues(const OomMessage& message) { return Clues(message).all(); }

}  // namespace cufit::explain
