// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle.h"

#include "formats/pickle/pickle_machine.h"
#include "formats/pickle/pickle_text.h"

namespace cufit::formats {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t k_longest_fixed = 9;  // an opcode and 8 bytes

}  // namespace

bool PickleMachine::step() {
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

bool PickleMachine::number(unsigned char opcode, const unsigned char* argument) {
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
bool PickleMachine::container(unsigned char opcode) {
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

bool PickleMachine::line_argument(unsigned char opcode) {
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
bool PickleMachine::announced(unsigned char opcode, const unsigned char* argument) {
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

bool PickleMachine::text(Kind kind, uint64_t size) {
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

bool PickleMachine::refuse(unsigned char opcode) {
  const char* name = opcodes_[opcode].name;
  if (!name) {
    return malformed(offset_ == 0 ? format("not a pickle: first byte 0x{:02x}", opcode)
                                  : format("0x{:02x}, which is no pickle opcode,", opcode));
  }
  return stop(Code::unsupported,
              format("the pickle holds more than plain data: refused opcode {}", name));
}

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

Result<PickleResult> read_pickle(PickleBlocks& input, TextPool& texts, PickleSink& sink,
                                 const PickleLimits& limits) {
  return PickleMachine(input, texts, sink, limits).run();
}

Result<PickleResult> read_pickle(ByteStream& input, TextPool& texts, PickleSink& sink,
                                 const PickleLimits& limits) {
  PickleBlocks blocks(input, 0);
  return read_pickle(blocks, texts, sink, limits);
}

}  // namespace cufit::formats
