// SPDX-License-Identifier: Apache-2.0
// One row per option, bound to a member of the command's request: the member's type says whether it
// is a switch (bool), takes a value (std::string, std::optional<std::string>), one of several words
// (an enum whose members stand in the order of the words) or many values (std::vector).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cufit::commands {

// Its address stands for the type of a request.
template <class Request>
inline constexpr char k_request_type = 0;

struct Option {
  std::string_view flags;  // "-v,--verbose" or "--env"; positional: "PATH"
  std::string_view value;  // "DIR"; empty = a switch
  bool repeats = false;
  std::string_view choices;   // "en zh": completion and validation; empty = free
  bool required = false;      // a positional that the command cannot do without: shown unbracketed
  bool may_be_empty = false;  // `--set ""`: no settings is an answer
  const void* request_type = nullptr;
  // Puts a value that was typed into the request; `choice`: its place among `choices`.
  void (*put)(void* request, const std::string& value, size_t choice) = nullptr;

  constexpr Option needed() const {
    Option out = *this;
    out.required = true;
    return out;
  }
  constexpr Option or_empty() const {
    Option out = *this;
    out.may_be_empty = true;
    return out;
  }
};

inline bool is_positional(const Option& option) { return option.flags[0] != '-'; }

inline void put_value(bool& member, const std::string&, size_t) { member = true; }
inline void put_value(std::string& member, const std::string& value, size_t) { member = value; }
template <class Enum>
requires std::is_enum_v<Enum>
void put_value(Enum& member, const std::string&, size_t choice) {
  member = static_cast<Enum>(choice);
}
template <class Value>
void put_value(std::optional<Value>& member, const std::string& value, size_t choice) {
  put_value(member.emplace(), value, choice);
}
template <class Value>
void put_value(std::vector<Value>& member, const std::string& value, size_t choice) {
  put_value(member.emplace_back(), value, choice);
}

template <class Member>
inline constexpr bool k_is_vector = false;
template <class Value>
inline constexpr bool k_is_vector<std::vector<Value>> = true;

// Of a member that Request inherits.
template <class Request, auto Member>
constexpr Option inherited_option(std::string_view flags, std::string_view value = {},
                                  std::string_view choices = {}) {
  using Value = std::remove_cvref_t<decltype(std::declval<Request&>().*Member)>;
  Option out;
  out.flags = flags;
  out.value = value;
  out.choices = choices;
  out.repeats = k_is_vector<Value>;
  out.request_type = &k_request_type<Request>;
  out.put = [](void* request, const std::string& text, size_t choice) {
    put_value(static_cast<Request*>(request)->*Member, text, choice);
  };
  return out;
}

template <class Pointer>
struct MemberOf;
template <class Request, class Value>
struct MemberOf<Value Request::*> {
  using Class = Request;
};

// `option<&DoctorRequest::env>("--env", "DIR")`: a row of doctor's options, which fills this member.
template <auto Member>
constexpr Option option(std::string_view flags, std::string_view value = {},
                        std::string_view choices = {}) {
  return inherited_option<typename MemberOf<decltype(Member)>::Class, Member>(flags, value,
                                                                              choices);
}

}  // namespace cufit::commands
