// SPDX-License-Identifier: Apache-2.0
// JSON as text, by nlohmann/json: this file alone includes it.
#include "base/terminal_marks.h"
#include "base/format.h"
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace cufit {

namespace {

// Reading and writing go down one level of the stack for each of these.
constexpr size_t k_deepest = 512;

using Library = nlohmann::ordered_json;

Library of(const Json& json) {
  switch (json.type()) {
    case Json::Type::null:
      return nullptr;
    case Json::Type::boolean:
      return json.boolean();
    case Json::Type::integer:
      return json.integer();
    case Json::Type::natural:
      return json.natural();
    case Json::Type::number:
      return json.number();
    case Json::Type::text:
      return json.text();
    case Json::Type::array: {
      Library out = Library::array();
      for (const Json& item : json) out.push_back(of(item));
      return out;
    }
    case Json::Type::object: {
      Library out = Library::object();
      auto& members = out.get_ref<Library::object_t&>();
      // Names are different: emplace() would look for each among those before it.
      for (auto at = json.begin(); at != json.end(); ++at)
        members.emplace_back(at.key(), of(at.value()));
      return out;
    }
  }
  return nullptr;
}

// The library's events as those of json.h.
class Adapter final : public nlohmann::json_sax<Library> {
 public:
  explicit Adapter(JsonEvents& events) : events_(events) {}
  bool null() override { return events_.null(); }
  bool boolean(bool value) override { return events_.boolean(value); }
  bool number_integer(number_integer_t value) override { return events_.integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return events_.natural(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return events_.number(value);
  }
  bool string(string_t& value) override { return events_.text(value); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return events_.start_object(); }
  bool key(string_t& value) override { return events_.key(value); }
  bool end_object() override { return events_.end_object(); }
  bool start_array(size_t) override { return events_.start_array(); }
  bool end_array() override { return events_.end_array(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // A number that no double holds is an error of another type, without a position.
    const bool has_place = dynamic_cast<const Library::parse_error*>(&error) != nullptr;
    events_.damaged(has_place ? position : 0);
    return false;
  }

 private:
  JsonEvents& events_;
};

class Place final : public JsonEvents {
 public:
  size_t byte = 0;
  void damaged(size_t at) override { byte = at; }
};

// How many bytes at `at`, inside of a string, a terminal would obey (terminal_marks.h); 0 = it is
// none. `value`: its number.
size_t obeyed(std::string_view text, size_t at, unsigned& value) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first == 0x7f) {
    value = first;
    return 1;
  }
  if ((first == 0xc2 && byte(1) < 0xa0) || (first == 0xd8 && byte(1) == 0x9c)) {
    value = (first & 0x1f) << 6 | (byte(1) & 0x3f);
    return 2;
  }
  if (first != 0xe2 && first != 0xef) return 0;
  value = (first & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  return is_direction_mark(value) ? 3 : 0;
}

// JSON lets these stand as they are.
std::string for_a_terminal(std::string text) {
  constexpr std::string_view k_first = "\x7f\xc2\xd8\xe2\xef";
  size_t at = text.find_first_of(k_first);
  if (at == text.npos) return text;
  std::string out;
  size_t kept = 0;
  for (; at != text.npos; at = text.find_first_of(k_first, at)) {
    unsigned value = 0;
    const size_t length = obeyed(text, at, value);
    if (length == 0) {
      ++at;
      continue;
    }
    out.append(text, kept, at - kept).append(format("\\u{:04x}", value));
    kept = at += length;
  }
  return out.append(text, kept);
}

}  // namespace

class JsonBuilder final : public JsonEvents {
 public:
  Json root;

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool integer(int64_t value) override { return add(Json(value)); }
  bool natural(uint64_t value) override { return add(Json(value)); }
  bool number(double value) override { return add(Json(value)); }
  bool text(std::string& value) override { return add(Json(std::move(value))); }
  bool key(std::string& value) override {
    open_.back()->parts_->keys.push_back(std::move(value));
    return true;
  }
  bool start_object() override { return begin(Json::object()); }
  bool start_array() override { return begin(Json::array()); }
  bool end_object() override {
    open_.back()->sort_members();
    return end_array();
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

 private:
  bool add(Json value) {
    if (open_.empty())
      root = std::move(value);
    else
      open_.back()->parts_->items.push_back(std::move(value));
    return true;
  }
  bool begin(Json value) {
    if (open_.size() == k_deepest) return false;
    add(std::move(value));
    // Elements are added to the innermost value alone, so that those above do not move.
    open_.push_back(open_.empty() ? &root : &open_.back()->parts_->items.back());
    return true;
  }

  std::vector<Json*> open_;
};

std::string Json::dump(int indent, bool ascii) const {
  return for_a_terminal(of(*this).dump(indent, ' ', ascii, Library::error_handler_t::replace));
}

std::optional<Json> Json::parse(std::string_view text) {
  JsonBuilder builder;
  if (!read_json(text, builder)) return std::nullopt;
  return std::move(builder.root);
}

bool read_json(std::string_view text, JsonEvents& events) {
  Adapter adapter(events);
  return Library::sax_parse(text.begin(), text.end(), &adapter);
}

size_t damaged_json_byte(std::string_view text) {
  Place place;
  (void)read_json(text, place);
  return place.byte;
}

}  // namespace cufit
