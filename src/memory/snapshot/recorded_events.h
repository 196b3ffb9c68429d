// SPDX-License-Identifier: Apache-2.0
// The events of one device's trace as a replay reads them: the rows of a snapshot where they lie,
// which are most of what a large file takes, or rows of its own (tests, fuzzing). Either way an
// event is made when it is asked for and handed out by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "memory/snapshot/snapshot.h"

namespace cufit::memory {

// As the trace has it, where what is absent is 0: `size` is the requested one, for an oom the
// rounded request; an oom has no address.
struct RecordedEvent {
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint32_t pool = 0;  // 0: the default pool, else numbers of the caller's choice from 1
  Action action = Action::other;
  uint32_t stack = k_no_stack;  // of Snapshot::stacks
};

class RecordedEvents {
 public:
  // What a context of the snapshot says of its events.
  struct Context {
    uint64_t stream = 0;
    uint32_t pool = 0;
  };
  // Addresses that belong to a pool from an event on.
  struct PoolRange {
    uint64_t address = 0, size = 0;
    uint32_t pool = 0;
    size_t since = 0;
  };

  RecordedEvents() = default;
  RecordedEvents(std::initializer_list<RecordedEvent> own) : own_(own) {}
  explicit RecordedEvents(std::vector<RecordedEvent> own) : own_(std::move(own)) {}
  // Shares the snapshot's rows. `pools`, by address, where the events do not name theirs.
  RecordedEvents(const Snapshot& snapshot, const Trace& trace, std::vector<Context> contexts,
                 std::vector<PoolRange> pools);

  size_t size() const { return own_.empty() ? count_ : own_.size(); }
  bool empty() const { return size() == 0; }
  RecordedEvent operator[](size_t i) const {
    return own_.empty() ? of_row(rows_[first_ + i], i) : own_[i];
  }
  Action action(size_t i) const { return own_.empty() ? rows_[first_ + i].action : own_[i].action; }

  void push_back(const RecordedEvent& event) { own_.push_back(event); }  // of own rows
  // As if the ring had held no more than the last `count`.
  void keep_last(size_t count);

  class Iterator {
   public:
    Iterator(const RecordedEvents& of, size_t at) : of_(of), at_(at) {}
    RecordedEvent operator*() const { return of_[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const RecordedEvents& of_;
    size_t at_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  RecordedEvent of_row(const TraceEvent& row, size_t i) const {
    RecordedEvent event;
    event.action = row.action;
    const bool has_address = event.action != Action::oom && row.address != k_absent;
    event.address = has_address ? row.address : 0;
    event.size = row.size == k_absent ? 0 : row.size;
    const Context& context = contexts_[row.context];
    event.stream = context.stream;
    event.pool = context.pool;
    event.stack = row.stack;
    if (!pools_.empty() && event.action != Action::oom)
      event.pool = pool_at(event.address, i, event.pool);
    return event;
  }
  uint32_t pool_at(uint64_t address, size_t event, uint32_t otherwise) const;

  std::vector<RecordedEvent> own_;
  TraceEvents::Shared rows_;
  size_t first_ = 0, count_ = 0;
  std::vector<Context> contexts_;
  std::vector<PoolRange> pools_;
};

}  // namespace cufit::memory
