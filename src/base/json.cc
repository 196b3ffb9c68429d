// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

namespace cufit {

namespace {

// Reading and writing go down one level of the stack for each of these.
constexpr size_t k_deepest = 512;

using Library = nlohmann::ordered_json;

}  // namespace

Json::Json(const char* text) : type_(Type::text), text_(text) {}
Json::Json(std::string text) : type_(Type::text), text_(std::move(text)) {}
Json::Json(std::string_view text) : type_(Type::text), text_(text) {}

Json::Json(std::initializer_list<Json> list) {
  const bool members = std::all_of(list.begin(), list.end(), [](const Json& item) {
    return item.is_array() && item.size() == 2 && item[0].is_string();
  });
  type_ = members ? Type::object : Type::array;
  for (const Json& item : list) {
    if (members)
      (*this)[item[0].text_] = item[1];
    else
      items_.push_back(item);
  }
}

Json::Json(const Json& other) = default;
Json& Json::operator=(const Json& other) = default;
Json::~Json() = default;

Json::Json(Json&& other) noexcept
    : type_(std::exchange(other.type_, Type::null)),
      sorted_(other.sorted_),
      natural_(other.natural_),
      text_(std::move(other.text_)),
      items_(std::move(other.items_)),
      keys_(std::move(other.keys_)) {
  other.items_.clear();
  other.keys_.clear();
}

Json& Json::operator=(Json&& other) noexcept {
  if (this == &other) return *this;
  Json taken(std::move(other));  // `other` may be a part of this
  type_ = taken.type_;
  sorted_ = taken.sorted_;
  natural_ = taken.natural_;
  text_.swap(taken.text_);
  items_.swap(taken.items_);
  keys_.swap(taken.keys_);
  return *this;
}

Json Json::array() {
  Json out;
  out.type_ = Type::array;
  return out;
}

Json Json::array(std::initializer_list<Json> list) {
  Json out = array();
  out.items_ = list;
  return out;
}

Json Json::object() {
  Json out;
  out.type_ = Type::object;
  return out;
}

void Json::set_integer(int64_t value) {
  type_ = Type::integer;
  integer_ = value;
}

void Json::set_natural(uint64_t value) {
  type_ = Type::natural;
  natural_ = value;
}

int64_t Json::integer() const {
  if (type_ == Type::number) return static_cast<int64_t>(number_);
  return is_number_integer() ? integer_ : 0;
}

uint64_t Json::natural() const {
  if (type_ == Type::number) return static_cast<uint64_t>(number_);
  return is_number_integer() ? natural_ : 0;
}

double Json::number() const {
  if (type_ == Type::number) return number_;
  if (type_ == Type::integer) return static_cast<double>(integer_);
  return type_ == Type::natural ? static_cast<double>(natural_) : 0;
}

const std::string& Json::text() const {
  return text_;  // empty where this is no text
}

size_t Json::index_of(std::string_view key) const {
  if (!sorted_) {
    const auto at = std::find(keys_.begin(), keys_.end(), key);
    return at == keys_.end() ? items_.size() : static_cast<size_t>(at - keys_.begin());
  }
  const auto at = std::lower_bound(keys_.begin(), keys_.end(), key);
  return at == keys_.end() || *at != key ? items_.size() : static_cast<size_t>(at - keys_.begin());
}

const Json* Json::member(std::string_view key) const {
  const size_t index = index_of(key);
  return index == items_.size() ? nullptr : &items_[index];
}

const std::string& Json::text_at(std::string_view key) const {
  static const std::string k_none;
  const Json* found = member(key);
  return found == nullptr ? k_none : found->text();
}

Json& Json::operator[](std::string_view key) {
  if (type_ == Type::null) type_ = Type::object;
  const size_t index = index_of(key);
  if (index != items_.size()) return items_[index];
  sorted_ = false;
  keys_.emplace_back(key);
  return items_.emplace_back();
}

void Json::push_back(Json value) {
  if (type_ == Type::null) type_ = Type::array;
  items_.push_back(std::move(value));
}

void Json::update(const Json& object) {
  for (size_t i = 0; i < object.keys_.size(); ++i) (*this)[object.keys_[i]] = object.items_[i];
}

void Json::erase(std::string_view key) {
  const size_t index = index_of(key);
  if (index != items_.size()) erase(index);
}

void Json::erase(size_t index) {
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(index));
  if (is_object()) keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(index));
}

// By name, so that a file with a million members is looked up and checked for doubles fast.
void Json::sort_members() {
  std::vector<size_t> order(keys_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys_[a] < keys_[b]; });
  std::vector<std::string> keys;
  std::vector<Json> items;
  keys.reserve(order.size());
  items.reserve(order.size());
  for (const size_t index : order) {
    if (!keys.empty() && keys.back() == keys_[index]) {
      items.back() = std::move(items_[index]);
      continue;
    }
    keys.push_back(std::move(keys_[index]));
    items.push_back(std::move(items_[index]));
  }
  keys_ = std::move(keys);
  items_ = std::move(items);
  sorted_ = true;
}

namespace {

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
    open_.back()->keys_.push_back(std::move(value));
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
      open_.back()->items_.push_back(std::move(value));
    return true;
  }
  bool begin(Json value) {
    if (open_.size() == k_deepest) return false;
    add(std::move(value));
    // Elements are added to the innermost value alone, so that those above do not move.
    open_.push_back(open_.empty() ? &root : &open_.back()->items_.back());
    return true;
  }

  std::vector<Json*> open_;
};

std::string Json::dump(int indent, bool ascii) const {
  return of(*this).dump(indent, ' ', ascii, Library::error_handler_t::replace);
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
