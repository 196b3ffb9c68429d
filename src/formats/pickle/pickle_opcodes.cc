// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_opcodes.h"

namespace cufit::formats {
namespace {

struct Row {
  unsigned char code;
  PickleOpcode opcode;
};

constexpr Row k_rows[] = {
    // plain data
    {'(', {"MARK", true}},
    {'.', {"STOP", true}},
    {'0', {"POP", true}},
    {'1', {"POP_MARK", true}},
    {'2', {"DUP", true}},
    {'F', {"FLOAT", true}},
    {'I', {"INT", true}},
    {'J', {"BININT", true, 4}},
    {'K', {"BININT1", true, 1}},
    {'L', {"LONG", true}},
    {'M', {"BININT2", true, 2}},
    {'N', {"NONE", true}},
    {'S', {"STRING", true}},
    {'T', {"BINSTRING", true, 4}},
    {'U', {"SHORT_BINSTRING", true, 1}},
    {'V', {"UNICODE", true}},
    {'X', {"BINUNICODE", true, 4}},
    {'B', {"BINBYTES", true, 4}},
    {'C', {"SHORT_BINBYTES", true, 1}},
    {'a', {"APPEND", true}},
    {'d', {"DICT", true}},
    {'}', {"EMPTY_DICT", true}},
    {'e', {"APPENDS", true}},
    {'g', {"GET", true}},
    {'h', {"BINGET", true, 1}},
    {'j', {"LONG_BINGET", true, 4}},
    {'l', {"LIST", true}},
    {']', {"EMPTY_LIST", true}},
    {'p', {"PUT", true}},
    {'q', {"BINPUT", true, 1}},
    {'r', {"LONG_BINPUT", true, 4}},
    {'s', {"SETITEM", true}},
    {'t', {"TUPLE", true}},
    {')', {"EMPTY_TUPLE", true}},
    {'u', {"SETITEMS", true}},
    {'G', {"BINFLOAT", true, 8}},
    {0x80, {"PROTO", true, 1}},
    {0x85, {"TUPLE1", true}},
    {0x86, {"TUPLE2", true}},
    {0x87, {"TUPLE3", true}},
    {0x88, {"NEWTRUE", true}},
    {0x89, {"NEWFALSE", true}},
    {0x8a, {"LONG1", true, 1}},
    {0x8b, {"LONG4", true, 4}},
    {0x8c, {"SHORT_BINUNICODE", true, 1}},
    {0x8d, {"BINUNICODE8", true, 8}},
    {0x8e, {"BINBYTES8", true, 8}},
    {0x94, {"MEMOIZE", true}},
    {0x95, {"FRAME", true, 8}},
    {0x96, {"BYTEARRAY8", true, 8}},
    // refused: imports, calls, objects, references outside the file, and sets, which no snapshot
    // has
    {'P', {"PERSID"}},
    {'Q', {"BINPERSID"}},
    {'R', {"REDUCE"}},
    {'b', {"BUILD"}},
    {'c', {"GLOBAL"}},
    {'i', {"INST"}},
    {'o', {"OBJ"}},
    {0x81, {"NEWOBJ"}},
    {0x82, {"EXT1"}},
    {0x83, {"EXT2"}},
    {0x84, {"EXT4"}},
    {0x8f, {"EMPTY_SET"}},
    {0x90, {"ADDITEMS"}},
    {0x91, {"FROZENSET"}},
    {0x92, {"NEWOBJ_EX"}},
    {0x93, {"STACK_GLOBAL"}},
    {0x97, {"NEXT_BUFFER"}},
    {0x98, {"READONLY_BUFFER"}},
};

std::array<PickleOpcode, 256> opcode_table() {
  std::array<PickleOpcode, 256> opcodes{};
  for (const Row& row : k_rows) opcodes[row.code] = row.opcode;
  return opcodes;
}

}  // namespace

const std::array<PickleOpcode, 256>& pickle_opcodes() {
  static const std::array<PickleOpcode, 256> k_opcodes = opcode_table();
  return k_opcodes;
}

}  // namespace cufit::formats
