// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include <vector>

#include "base/format.h"
#include "formats/pickle_machine.h"
#include "formats/pickle_opcodes.h"
#include "formats/pickle_text.h"

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t k_longest_fixed = 9;  // an opcode and 8 bytes

// One run over one pickle. Functions return false after they left an error.
class Machine {
 public:
  Machine(ByteStream& input, TextPool& texts, PickleSink& sink, const PickleLimits& limits)
      : input_(input), window_(input), texts_(texts), sink_(sink), limits_(limits) {
    stack_.resize(4096);
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
  bool text(Kind kind, uint64_t size);
  bool refuse(unsigned char opcode);

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
  bool push(const PickleValue& value) {
    if (!room()) return false;
    stack_[top_++] = value;
    return true;
  }
  bool push(Kind kind, uint64_t bits) { return push(PickleValue{kind, 0, 0, bits}); }
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
    Kind empty = into == Into::dict ? Kind::empty_dict : Kind::empty_list;
    if (container.kind != empty && container.kind != Kind::object) {
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

  ByteStream& input_;
  PickleWindow window_;
  TextPool& texts_;
  PickleSink& sink_;
  const PickleLimits& limits_;
  const std::array<PickleOpcode, 256>& opcodes_ = pickle_opcodes();
  std::vector<PickleValue> stack_;  // top_ of them are in use
  size_t top_ = 0;
  std::vector<size_t> marks_;
  PickleMemo memo_;
  std::optional<Error> error_;
  uint64_t offset_ = 0;  // of the opcode at work, for messages
  unsigned protocol_ = 0;
  bool stopped_ = false;
};

// The opcodes that nearly all of a snapshot consists of, with the position and the top of the stack
// in registers. Leaves for step() whatever is rare, near the end of the window, or wrong: there
// every opcode is handled again with all its checks.
bool Machine::usual() {
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

bool Machine::step() {
  offset_ = window_.offset();
  if (window_.left() < k_longest_fixed) {
    Result<bool> more = window_.need(k_longest_fixed);
    if (!more) return keep(more.error());
    if (window_.left() == 0) return truncated();
    if (window_.left() < 1u + opcodes_[*window_.at].fixed_bytes) return truncated();
  }
  unsigned char opcode = *window_.at;
  const unsigned char* argument = window_.at + 1;
  window_.at = argument + opcodes_[opcode].fixed_bytes;
  switch (opcode) {
    case 'h':
      return get(argument[0]);
    case 'j':
      return get(load_le<uint32_t>(argument));
    case 0x94:  // MEMOIZE
      if (!has(1)) return false;
      memo_.push(stack_[top_ - 1]);
      return remember(memo_.size() - 1);
    case 0x8c:  // SHORT_BINUNICODE
      return text(Kind::text, argument[0]);
    case '(':
      if (marks_.size() >= limits_.marks) return malformed("too deep a nesting");
      marks_.push_back(top_);
      return true;
    case '}':
      return push(Kind::empty_dict, 0);
    case ']':
      return push(Kind::empty_list, 0);
    case 'u':
    case 'e': {
      size_t mark = 0;
      return pop_mark(mark) && fill(opcode == 'u' ? Into::dict : Into::list, mark);
    }
    case 0x8a:  // LONG1
    case 'J':
    case 'K':
    case 'M':
    case 'G':
    case 'N':
    case 0x88:
    case 0x89:
      return number(opcode, argument);
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'g':
    case 'p':
      return line_argument(opcode);
    case 'q':
      return put(argument[0]);
    case 'r':
      return put(load_le<uint32_t>(argument));
    case 0x80:
      protocol_ = argument[0];
      if (protocol_ > 5) {
        return stop(Code::unsupported, format("pickle protocol {} (known: 0 to 5)", protocol_));
      }
      return true;
    case 0x95:  // FRAME: where a writer cut; says nothing about the data
      return true;
    case '.':
      if (top_ != 1 || !marks_.empty()) {
        return malformed(format("STOP with {} values on the stack", top_));
      }
      stopped_ = true;
      return true;
    default:
      if (!opcodes_[opcode].allowed) return refuse(opcode);
      return opcodes_[opcode].fixed_bytes > 0 ? announced(opcode, argument) : container(opcode);
  }
}

bool Machine::number(unsigned char opcode, const unsigned char* argument) {
  switch (opcode) {
    case 0x8a: {
      size_t size = argument[0];
      if (window_.left() < size) {
        Result<bool> there = window_.need(size);
        if (!there) return keep(there.error());
        if (!*there) return truncated();
      }
      PickleValue value = pickle_long(window_.at, size);
      window_.at += size;
      return push(value);
    }
    case 'J':
      return push(Kind::integer, static_cast<uint64_t>(
                                     int64_t{static_cast<int32_t>(load_le<uint32_t>(argument))}));
    case 'K':
      return push(Kind::integer, argument[0]);
    case 'M':
      return push(Kind::integer, load_le<uint16_t>(argument));
    case 'G': {
      uint64_t bits = 0;
      for (size_t i = 0; i < 8; ++i) bits = bits << 8 | argument[i];
      return push(Kind::real, bits);
    }
    case 'N':
      return push(Kind::none, 0);
    default:
      return push(Kind::boolean, opcode == 0x88);
  }
}

// Opcodes without an argument that real files have rarely.
bool Machine::container(unsigned char opcode) {
  size_t mark = 0;
  switch (opcode) {
    case 'a':
      return has(2) && fill(Into::list, top_ - 1);
    case 's':
      return has(3) && fill(Into::dict, top_ - 2);
    case 't':
      return pop_mark(mark) && tuple(mark);
    case ')':
      return tuple(top_);
    case 0x85:
    case 0x86:
    case 0x87:  // TUPLE1 to TUPLE3
      return has(opcode - 0x84u) && tuple(top_ - (opcode - 0x84u));
    case 'd':
    case 'l': {
      if (!pop_mark(mark)) return false;
      // As if the empty container had been there first.
      if (!push(PickleValue{})) return false;
      for (size_t i = top_ - 1; i > mark; --i) stack_[i] = stack_[i - 1];
      stack_[mark] = {opcode == 'd' ? Kind::empty_dict : Kind::empty_list, 0, 0, 0};
      return fill(opcode == 'd' ? Into::dict : Into::list, mark + 1);
    }
    case '0':
      if (top_ > bottom()) {
        --top_;
        return true;
      }
      return pop_mark(mark);
    case '1':
      if (!pop_mark(mark)) return false;
      top_ = mark;
      return true;
    case '2':
      return has(1) && push(stack_[top_ - 1]);
    default:
      return refuse(opcode);
  }
}

bool Machine::line_argument(unsigned char opcode) {
  Result<std::optional<std::string_view>> line = window_.line();
  if (!line) return keep(line.error());
  if (!*line) return truncated();
  std::string_view argument = **line;
  if (opcode == 'V') return push(Kind::text, texts_.intern(unescape_pickle(argument)));
  if (opcode == 'S') {
    std::optional<std::string> value = unquote_pickle(argument);
    if (!value) return malformed("STRING without quotes");
    return push(Kind::text, texts_.intern(*value));
  }
  std::optional<PickleValue> value =
      opcode == 'F' ? pickle_real(argument) : pickle_integer(argument);
  if (!value) {
    return malformed(format("{} whose argument is no number", opcodes_[opcode].name));
  }
  if (opcode != 'g' && opcode != 'p') return push(*value);
  std::optional<uint64_t> index = value->as_unsigned();
  if (!index) return malformed("a memo entry that is no index");
  return opcode == 'g' ? get(*index) : put(*index);
}

// Opcodes whose fixed argument announces how many bytes follow.
bool Machine::announced(unsigned char opcode, const unsigned char* argument) {
  switch (opcode) {
    case 'X':
    case 'T':
      return text(Kind::text, load_le<uint32_t>(argument));
    case 'U':
      return text(Kind::text, argument[0]);
    case 0x8d:
      return text(Kind::text, load_le<uint64_t>(argument));
    case 'B':
      return text(Kind::bytes, load_le<uint32_t>(argument));
    case 'C':
      return text(Kind::bytes, argument[0]);
    case 0x8e:
    case 0x96:
      return text(Kind::bytes, load_le<uint64_t>(argument));
    case 0x8b: {  // LONG4
      uint32_t size = load_le<uint32_t>(argument);
      if (size > limits_.text_bytes) return malformed("an int longer than any text may be");
      Result<bool> there = window_.need(size);
      if (!there) return keep(there.error());
      if (!*there) return truncated();
      PickleValue value = pickle_long(window_.at, size);
      window_.at += size;
      return push(value);
    }
    default:
      return refuse(opcode);
  }
}

bool Machine::text(Kind kind, uint64_t size) {
  if (window_.left() < size) {
    if (size > limits_.text_bytes) {
      return malformed(format("a text of {} bytes (limit {})", size, limits_.text_bytes));
    }
    Result<bool> there = window_.need(size);
    if (!there) return keep(there.error());
    if (!*there) return truncated();
  }
  std::string_view bytes(reinterpret_cast<const char*>(window_.at), size);
  window_.at += size;
  uint32_t number = texts_.intern(bytes);
  if (number >= limits_.texts) return malformed("too many different texts");
  return push(kind, number);
}

bool Machine::refuse(unsigned char opcode) {
  const char* name = opcodes_[opcode].name;
  if (!name) {
    return malformed(offset_ == 0 ? format("not a pickle: first byte 0x{:02x}", opcode)
                                  : format("0x{:02x}, which is no pickle opcode,", opcode));
  }
  return stop(Code::unsupported,
              format("the pickle holds more than plain data: refused opcode {}", name));
}

}  // namespace

const char* to_string(PickleValue::Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
    case Kind::unsigned_:
    case Kind::huge:
      return "int";
    case Kind::real:
      return "float";
    case Kind::text:
      return "str";
    case Kind::bytes:
      return "bytes";
    case Kind::empty_list:
      return "empty list";
    case Kind::empty_dict:
      return "empty dict";
    case Kind::object:
      return "container";
  }
  return "?";
}

Result<PickleResult> read_pickle(ByteStream& input, TextPool& texts, PickleSink& sink,
                                 const PickleLimits& limits) {
  return Machine(input, texts, sink, limits).run();
}

}  // namespace cufit::formats
