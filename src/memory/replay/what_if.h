// SPDX-License-Identifier: Apache-2.0
// The questions that `cufit mem` asks of a recording: what other settings, limits and cards would
// have done. All sizes in bytes.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/allocator/settings_text.h"
#include "memory/replay/verified_recording.h"

namespace cufit::memory {

struct Question {
  std::string settings;                         // in PyTorch's form
  std::optional<uint64_t> allowed;              // set_per_process_memory_fraction, as bytes
  std::optional<uint64_t> capacity;             // of the card, as far as this process can have it
  std::optional<uint64_t> total_memory;         // of the card: sizes expandable segments
  bool with_reasons = true;                     // as of ReplayOptions
  const std::vector<bool>* left_out = nullptr;  // the same
  bool without_pools = false;                   // the same
};

struct Answer {
  Question question;
  ReplayResult result;
  // What was allowed, or else the settings' part of the card; and no more than its capacity.
  std::optional<uint64_t> limit;
  bool survives() const { return !result.oom; }
};

// Several questions that threads answer side by side: each takes the next that nobody has begun.
// Alike ones are answered once.
class Inquiry {
 public:
  // A usage error names the settings that PyTorch of this version would refuse.
  static Result<std::shared_ptr<Inquiry>> make(std::shared_ptr<const VerifiedRecording> verified,
                                               std::span<const Question> questions);

  // Returns when none is left to begin. `progress` hears how many are done.
  void work(const std::function<void(size_t done)>& progress = {});
  // In the order of the questions. Works, then waits for those that others are at.
  std::vector<Answer> answers();
  size_t replays() const { return distinct_.size(); }

 private:
  std::shared_ptr<const VerifiedRecording> verified_;
  std::vector<Answer> answers_;
  std::vector<ReplayOptions> options_;
  std::vector<size_t> first_;     // for each the first alike
  std::vector<size_t> distinct_;  // those that are their own first
  std::mutex mutex_;
  std::condition_variable finished_;
  size_t begun_ = 0, ended_ = 0, done_ = 0;  // of distinct_; done_: with those alike
  std::exception_ptr failure_;
};

// Whether it asks for the recorded run itself: its settings and no limit.
bool asks_for_recorded(const VerifiedRecording& verified, const Question& question);

// Answers in the order of the questions, several at a time where there are processors. A usage
// error names the settings that PyTorch of this version would refuse.
Result<std::vector<Answer>> ask(const VerifiedRecording& verified,
                                std::span<const Question> questions,
                                const std::function<void(size_t done)>& progress = {});

// Best first: survives, the lowest peak of reserved bytes, the fewest retries, the fewest calls.
bool better(const Answer& a, const Answer& b);

}  // namespace cufit::memory
