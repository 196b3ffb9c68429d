// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <numeric>

namespace cufit {

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

}  // namespace cufit
