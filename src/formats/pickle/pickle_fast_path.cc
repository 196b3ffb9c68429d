// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_machine.h"

namespace cufit::formats {

using Kind = PickleValue::Kind;

// The opcodes that nearly all of a snapshot consists of, with the position and the top of the stack
// in registers. Leaves for step() whatever is rare, near the end of the window, or wrong: there
// every opcode is handled again with all its checks.
bool PickleMachine::usual() {
  constexpr size_t k_margin = 16;
  if (window_.left() < k_margin) return true;
  const unsigned char* at = window_.at;
  const unsigned char* const end = window_.end - k_margin;  // no fixed argument crosses it
  PickleValue* const base = stack_.data();
  PickleValue* const full = base + stack_.size();
  PickleValue* top = base + top_;
  // Field by field in its place: a value put together elsewhere and copied whole stalls the
  // processor, which cost a third of the time.
  auto put = [&](Kind kind, uint64_t bits) {
    top->kind = kind;
    top->tag = 0;
    top->memo = 0;
    top->bits = bits;
    ++top;
  };
  bool going = true;
  while (going && at < end && top < full) {
    switch (*at) {
      case 'h':
      case 'j': {
        bool wide = *at == 'j';
        going = memo_.get(wide ? load_le<uint32_t>(at + 1) : at[1], *top);
        top += going;
        at += going ? (wide ? 5 : 2) : 0;
        break;
      }
      case 0x94:  // MEMOIZE
        going = top > base + bottom() && memo_.size() < limits_.memo_entries;
        if (!going) break;
        memo_.push(top[-1]);
        top[-1].memo = static_cast<uint32_t>(memo_.size());
        ++at;
        break;
      case 0x8c: {  // SHORT_BINUNICODE
        size_t size = at[1];
        going = at + 2 + size <= end && texts_.size() < limits_.texts;
        if (!going) break;
        put(Kind::text, texts_.intern({reinterpret_cast<const char*>(at) + 2, size}));
        at += 2 + size;
        break;
      }
      case 'J':
      case 'K':
      case 'M': {  // one path for all: which of them comes next is what nothing can foretell
        unsigned bytes = *at == 'J' ? 4 : *at == 'K' ? 1 : 2, shift = 64 - 8 * bytes;
        uint64_t raised = load_le<uint64_t>(at + 1) << shift;
        uint64_t extended = static_cast<uint64_t>(static_cast<int64_t>(raised) >> shift);
        put(Kind::integer, *at == 'J' ? extended : raised >> shift);
        at += 1 + bytes;
        break;
      }
      case 0x8a: {  // LONG1
        going = at[1] - 1u < 8;
        if (!going) break;
        unsigned shift = 64 - 8 * at[1];
        uint64_t raised = load_le<uint64_t>(at + 2) << shift;
        put(Kind::integer, static_cast<uint64_t>(static_cast<int64_t>(raised) >> shift));
        at += 2 + at[1];
        break;
      }
      case '(':
        going = marks_.size() < limits_.marks;
        if (!going) break;
        marks_.push_back(static_cast<size_t>(top - base));
        ++at;
        break;
      case '}':
        if (at[1] == 0x94 && at[2] == '(') {
          top_ = static_cast<size_t>(top - base);
          const Rows got = rows(at, end);
          if (got == Rows::failed) return false;
          if (got == Rows::left) {  // the stack may have moved
            window_.at = at;
            return true;
          }
          top = base + top_;
          if (got == Rows::done) break;
        }
        put(Kind::empty_dict, 0);
        ++at;
        break;
      case ']':
        put(Kind::empty_list, 0);
        ++at;
        break;
      case 'u':
      case 'e': {
        window_.at = at;
        offset_ = window_.offset();
        top_ = static_cast<size_t>(top - base);
        size_t mark = 0;
        if (!pop_mark(mark) || !fill(*at == 'u' ? Into::dict : Into::list, mark)) return false;
        top = base + top_;
        ++at;
        break;
      }
      default:
        going = false;
    }
  }
  window_.at = at;
  top_ = static_cast<size_t>(top - base);
  return true;
}

}  // namespace cufit::formats
