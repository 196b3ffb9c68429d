// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/result.h"

namespace cufit {

Json::Json(const char* text) : Json(std::string(text)) {}
Json::Json(std::string text)
    : type_(Type::text), text_(std::make_unique<std::string>(std::move(text))) {}
Json::Json(std::string_view text) : Json(std::string(text)) {}

Json::Json(std::initializer_list<Json> list) {
  const bool members = std::all_of(list.begin(), list.end(), [](const Json& item) {
    return item.is_array() && item.size() == 2 && item[0].is_string();
  });
  *this = members ? object() : array();
  for (const Json& item : list) {
    if (members)
      (*this)[item[0].text()] = item[1];
    else
      push_back(item);
  }
}

Json::Json(const Json& other) : type_(other.type_), natural_(other.natural_) {
  if (other.text_) text_ = std::make_unique<std::string>(*other.text_);
  if (other.parts_) parts_ = std::make_unique<Parts>(*other.parts_);
}

Json::Json(Json&& other) noexcept
    : type_(std::exchange(other.type_, Type::null)),
      natural_(other.natural_),
      text_(std::move(other.text_)),
      parts_(std::move(other.parts_)) {}

Json& Json::operator=(Json other) noexcept {
  std::swap(type_, other.type_);
  std::swap(natural_, other.natural_);
  text_.swap(other.text_);
  parts_.swap(other.parts_);
  return *this;
}

Json::~Json() = default;

Json Json::array() {
  Json out;
  out.type_ = Type::array;
  out.parts_ = std::make_unique<Parts>();
  return out;
}

Json Json::array(std::initializer_list<Json> list) {
  Json out = array();
  out.parts_->items = list;
  return out;
}

Json Json::object() {
  Json out = array();
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
  static const std::string k_none;
  return text_ ? *text_ : k_none;
}

size_t Json::index_of(std::string_view key) const {
  if (!is_object()) return size();
  const std::vector<std::string>& keys = parts_->keys;
  const auto at = parts_->sorted ? std::lower_bound(keys.begin(), keys.end(), key)
                                 : std::find(keys.begin(), keys.end(), key);
  return at == keys.end() || *at != key ? keys.size() : static_cast<size_t>(at - keys.begin());
}

const Json* Json::member(std::string_view key) const {
  const size_t index = index_of(key);
  return index == size() ? nullptr : &parts_->items[index];
}

const std::string& Json::text_at(std::string_view key) const {
  static const std::string k_none;
  const Json* found = member(key);
  return found == nullptr ? k_none : found->text();
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  CUFIT_CHECK(is_object(), "only an object has members");
  const size_t index = index_of(key);
  if (index != size()) return parts_->items[index];
  parts_->sorted = false;
  parts_->keys.emplace_back(key);
  return parts_->items.emplace_back();
}

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  CUFIT_CHECK(is_array(), "only an array has elements without a name");
  parts_->items.push_back(std::move(value));
}

void Json::update(const Json& object) {
  for (auto at = object.begin(); at != object.end(); ++at) (*this)[at.key()] = at.value();
}

void Json::erase(std::string_view key) {
  const size_t index = index_of(key);
  if (index != size()) erase(index);
}

void Json::erase(size_t index) {
  parts_->items.erase(parts_->items.begin() + static_cast<std::ptrdiff_t>(index));
  if (is_object()) parts_->keys.erase(parts_->keys.begin() + static_cast<std::ptrdiff_t>(index));
}

// By name, so that a file with a million members is looked up and checked for doubles fast.
void Json::sort_members() {
  std::vector<std::string>& keys = parts_->keys;
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  Parts sorted;
  sorted.sorted = true;
  for (const size_t index : order) {
    if (!sorted.keys.empty() && sorted.keys.back() == keys[index]) {
      sorted.items.back() = std::move(parts_->items[index]);
      continue;
    }
    sorted.keys.push_back(std::move(keys[index]));
    sorted.items.push_back(std::move(parts_->items[index]));
  }
  *parts_ = std::move(sorted);
}

}  // namespace cufit
