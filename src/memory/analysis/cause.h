// SPDX-License-Identifier: Apache-2.0
// Why memory ran out, or what will make it run out: ids of data/findings, each with the numbers
// that say so. No sentences: report/ finds "mem.evidence.<id>" and fills in the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/analysis/footprint.h"
#include "memory/analysis/history.h"
#include "memory/analysis/moment.h"

namespace cufit::analysis {

enum class Confidence : uint8_t { certain, likely, possible };
const char* to_string(Confidence confidence);

struct Number {
  enum class Kind : uint8_t { bytes, count, text };
  std::string name;
  Kind kind = Kind::bytes;
  uint64_t value = 0;
  std::string text;
};
Number bytes(std::string name, uint64_t value);
Number count(std::string name, uint64_t value);
Number text(std::string name, std::string value);

struct EvidenceItem {
  std::string id;
  std::vector<Number> numbers;
};

struct Cause {
  std::string id;
  Confidence confidence = Confidence::possible;
  std::vector<EvidenceItem> evidence;
  // Not empty: title and why have words of their own, "mem.cause.<id>.<variant>".
  std::string variant;
};

// What the program could get when it died. Equal where the card was full or the limit is known.
struct Limits {
  uint64_t at_least = 0;  // certainly
  uint64_t at_most = 0;   // and no more than this
  bool card_full = false;
  bool given = false;   // by the user
  bool caught = false;  // what was refused: the run went on all the same
};

// How a replay under other settings meets the recorded end.
struct Rescue {
  std::string settings;
  bool at_least = false;  // survives the request that failed, under Limits::at_least
  bool at_most = false;
};

// All that the rules look at.
struct OomCase {
  const memory::Snapshot& snapshot;
  const memory::VerifiedRecording& verified;
  const Lifetimes& lifetimes;
  const Steps& steps;
  const std::vector<Category>& categories;
  const History& history;
  // Of the out-of-memory; absent where the program lived.
  std::optional<memory::OutOfMemory> oom;
  uint32_t oom_stack = memory::k_no_stack;
  std::optional<uint64_t> device_free;
  Moment at;  // of the out-of-memory, else of the peak
  Footprint held{};
  std::optional<Limits> limits;
  std::optional<Rescue> rescue;  // by expandable segments, or by defaults if they were on
  std::optional<Rescue> without_pools;  // by asking the default pool alone
  uint64_t highest_pending_bytes = 0;
};

// The event of the out-of-memory, which must be there.
inline uint32_t oom_event(const OomCase& facts) { return static_cast<uint32_t>(facts.oom->event); }

// Best first; the first is the root cause. Empty: nothing is wrong, or nothing says what is.
std::vector<Cause> causes_of(const OomCase& facts);

}  // namespace cufit::analysis
