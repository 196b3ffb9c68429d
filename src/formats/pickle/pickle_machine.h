// SPDX-License-Identifier: Apache-2.0
// The stack machine that a pickle is a program for. Used by pickle.cc, pickle_fast_path.cc,
// pickle_rows.cc and pickle_runs.cc only.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_list_cache.h"
#include "formats/pickle/pickle_memory.h"
#include "formats/pickle/pickle_opcodes.h"
#include "formats/pickle/pickle_rows.h"
#include "formats/pickle/pickle_runs.h"

namespace cufit::formats {

// One run over one pickle. Functions return false after they left an error.
class PickleMachine {
 public:
  PickleMachine(PickleBlocks& input, TextPool& texts, PickleSink& sink, const PickleLimits& limits)
      : input_(input), window_(input, sink), texts_(texts), sink_(sink), limits_(limits) {
    stack_.resize(4096);  // more than Python puts there of a list at once, 1000
  }

  Result<PickleResult> run() {
    while (!stopped_) {
      if (!usual() || !step()) return std::move(*error_);
    }
    return PickleResult{stack_[0], protocol_, window_.offset()};
  }

 private:
  bool usual();
  bool step();
  bool number(unsigned char opcode, const unsigned char* argument);
  bool container(unsigned char opcode);
  bool line_argument(unsigned char opcode);
  bool announced(unsigned char opcode, const unsigned char* argument);
  bool text(PickleValue::Kind kind, uint64_t size);
  bool refuse(unsigned char opcode);

  // Dicts with the keys of the one before (pickle_rows.cc). none: not begun; done: as many as
  // there were; left: the next opcode is for others; failed: an error is left.
  enum class Rows { none, done, left, failed };
  Rows rows(const unsigned char*& at, const unsigned char* end);
  Rows row_value(const unsigned char*& at, const unsigned char* end, PickleValue& out);
  Rows row_list(const unsigned char*& at, const unsigned char* end, PickleValue& out);
  bool learn_row(const unsigned char* at, const unsigned char* end);
  bool leave_row(uint32_t memo, size_t values, bool has_key, bool in_list);

  // Rows that were found ahead (pickle_runs.cc).
  void publish_form();
  size_t take_run(const unsigned char*& at, size_t room);
  bool resolve_run(const PickleBlock& block, const FoundRows::Run& run);
  bool resolve_list(const PickleBlock& block, uint32_t number);
  bool resolve_shared(const PickleBlock& block, uint32_t number);
  bool resolve_get(const FoundMemo* memos, uint64_t end, uint32_t& list);
  void remember_run(const FoundRows::Run& run, const FoundMemo* memos, PickleValue first);

  bool malformed(std::string_view what) { return stop(Code::malformed, what); }
  bool stop(Code code, std::string_view what) {
    error_ = fail(code, format("{}: {} at byte {}", input_.name(), what, offset_));
    return false;
  }
  bool keep(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool truncated() {
    return malformed(window_.left() == 0 ? "the pickle is cut off: it ends without STOP"
                                         : "the pickle is cut off: it ends within an opcode");
  }

  bool room() {
    if (top_ < stack_.size()) return true;
    if (top_ >= limits_.stack_values) return malformed("too many values on the stack");
    stack_.resize(2 * stack_.size());
    return true;
  }
  // By value: what is doubled (DUP) lies in the stack, which moves when it grows.
  bool push(PickleValue value) {
    if (!room()) return false;
    stack_[top_++] = value;
    return true;
  }
  bool push(PickleValue::Kind kind, uint64_t bits) { return push(PickleValue{kind, 0, 0, bits}); }
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  bool has(size_t values) {
    return top_ - bottom() >= values || malformed("too few values on the stack");
  }
  bool pop_mark(size_t& mark) {
    if (marks_.empty()) return malformed("no MARK to go back to");
    mark = marks_.back();
    marks_.pop_back();
    return true;
  }
  bool get(uint64_t index) {
    if (!room()) return false;
    if (!memo_.get(index, stack_[top_])) {
      return malformed(format("memo entry {}, which was never put,", index));
    }
    ++top_;
    return true;
  }
  bool put(uint64_t index) {
    if (!has(1)) return false;
    row_.off = row_.off || index < memo_.size();
    if (!memo_.put(index, stack_[top_ - 1])) {
      return malformed(format("memo entry {} after only {}", index, memo_.size()));
    }
    return remember(index);
  }
  bool remember(uint64_t index) {
    if (memo_.size() > limits_.memo_entries) return malformed("too many memo entries");
    stack_[top_ - 1].memo = static_cast<uint32_t>(index) + 1;
    return true;
  }

  // The items from `from` on go into the container before them.
  enum class Into { dict, list };
  bool fill(Into into, size_t from) {
    std::span<const PickleValue> items(stack_.data() + from, top_ - from);
    if (from < bottom() + 1) return malformed("items without a container");
    PickleValue& container = stack_[from - 1];
    PickleValue::Kind empty =
        into == Into::dict ? PickleValue::Kind::empty_dict : PickleValue::Kind::empty_list;
    if (container.kind != empty && container.kind != PickleValue::Kind::object) {
      return malformed(format("items for a value of type {}", to_string(container.kind)));
    }
    if (into == Into::dict && items.size() % 2 != 0) return malformed("a key without a value");
    top_ = from;
    if (items.empty()) return true;
    Result<PickleValue> filled =
        into == Into::dict ? sink_.set_items(container, items) : sink_.append(container, items);
    if (!filled) return stop(filled.error().code, filled.error().what);
    filled->memo = container.memo;
    bool changed = filled->kind != container.kind || filled->bits != container.bits ||
                   filled->tag != container.tag;
    if (changed && container.memo != 0) memo_.update(container.memo - 1, *filled);
    container = *filled;
    return true;
  }
  bool tuple(size_t from) {
    std::span<const PickleValue> items(stack_.data() + from, top_ - from);
    Result<PickleValue> made = sink_.make_tuple(items);
    if (!made) return stop(made.error().code, made.error().what);
    made->memo = 0;
    top_ = from;
    return push(*made);
  }

  PickleBlocks& input_;
  PickleWindow window_;
  TextPool& texts_;
  PickleSink& sink_;
  const PickleLimits& limits_;
  const std::array<PickleOpcode, 256>& opcodes_ = pickle_opcodes();
  std::vector<PickleValue> stack_;  // top_ of them are in use
  size_t top_ = 0;
  std::vector<size_t> marks_;
  PickleMemo memo_;
  PickleRowKeys row_;
  std::array<PickleValue, k_row_keys> row_values_;
  std::vector<PickleValue> row_items_;
  PickleLists lists_;
  PickleRuns runs_;
  std::optional<Error> error_;
  uint64_t offset_ = 0;  // of the opcode at work, for messages
  unsigned protocol_ = 0;
  bool stopped_ = false;
};

}  // namespace cufit::formats
