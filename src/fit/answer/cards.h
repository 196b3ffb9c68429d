// SPDX-License-Identifier: Apache-2.0
// The cards that a question is about, what the tracer is told of them, and what the answer says of
// each. All sizes in bytes.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "fit/search.h"
#include "knowledge/knowledge.h"

namespace cufit::fit {

// From here on a card computes in bf16.
constexpr ComputeCapability k_first_with_bf16{8, 0};

struct Card {
  std::string name;       // of the table, or "24 GiB"
  std::string cc;         // "8.6"; empty where only a size was named
  bool asked = false;     // by its name or size, not by `all`
  bool measured = false;  // its capacity is known from reports
  uint64_t total = 0;
  uint64_t outside_allocator = 0;  // context and libraries on this card
  uint64_t usable = 0;             // total less outside
};

struct CardAnswer : Card {
  bool fits = false;                     // by the upper value, at the batch size asked for
  std::optional<Prediction> prediction;  // with the card's bounds
  LargestBatch largest;
  // Retries of the largest batch: above 0 it fits only by giving cached memory back, at least by its
  // upper value.
  uint64_t largest_retries = 0;
  // The largest batch whose upper value is at most `usable`: nothing has to be given back. 0: none.
  uint64_t largest_whole = 0;
  // Of the numbers of ranks that were asked for the least with which it fits; nullopt: none does.
  std::optional<uint64_t> least_world;
};

Card card_of(const knowledge::Gpu& gpu, const knowledge::Knowledge& knowledge);
// A card of which only the memory is known, as CUDA tells it: the context of the default card comes
// off.
Card card_of_size(std::string name, uint64_t bytes, const knowledge::Knowledge& knowledge);
// Every card of the table that torch still has kernels for and that has memory of its own, the
// smallest first.
std::vector<Card> all_cards(const knowledge::Knowledge& knowledge);
// In their order, each name once; asked where one of the name is.
std::vector<Card> each_once(std::vector<Card> cards);

// The card that the program is traced for and whose libraries the figures without a bound count:
// the first that was asked for by name, else the one whose libraries take most.
Card traced_card(const std::vector<Card>& cards, const knowledge::Knowledge& knowledge);

// What the tracer says of NCCL in its process (program/communicators.py): how many communicators it
// has, how many of them with rings, and to and from how many ranks these send and receive.
inline constexpr std::array<std::string_view, 4> k_nccl_facts = {"nccl_communicators", "nccl_rings",
                                                                 "nccl_sends", "nccl_receives"};

// What NCCL takes beside the allocator in the traced process on such a card; 0: it is the only one.
uint64_t nccl_bytes(const formats::TraceEvents& events, const Card& card,
                    const knowledge::Knowledge& knowledge);
void take_outside(Card& card, uint64_t bytes);

// With what is this card's: its libraries, its size. No bound.
Setup setup_on(Setup setup, const Card& card);

// The answers for all cards: `answer` fills one of each group that is alike, side by side, and the
// others get the same.
std::vector<CardAnswer> answer_once(const std::vector<Card>& cards,
                                    const std::function<bool(const Card&, const Card&)>& alike,
                                    const std::function<void(CardAnswer&)>& answer);
// Fills what is said of `largest` beside it. `retries`: of it on this card; `capacity`: what the card
// leaves; `upper`: without a bound.
void judge_largest(CardAnswer& card, uint64_t retries, uint64_t capacity, const UpperAt& upper);
// The first that was asked for by its name or size; null: none.
const CardAnswer* first_asked(const std::vector<CardAnswer>& cards);

// "NVIDIA H200,9.0,150110011392" for the tracer.
std::string pretended_gpu(const Card& card, const knowledge::Knowledge& knowledge);

// [[90, {..}], ..]: a GPU of the traced card's compute capability and of up to three others that
// were asked for, as cuDNN wants them described. Other cards of a capability get the same answers.
std::string cudnn_devices(const Card& traced, const std::vector<Card>& cards,
                          const knowledge::Knowledge& knowledge);

}  // namespace cufit::fit
