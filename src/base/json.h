// SPDX-License-Identifier: Apache-2.0
// JSON as a value: what writers build and readers look into. nlohmann/json reads and writes the
// text, in json_text.cc alone: its header and templates cost seconds for every file that includes them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cufit {

class Json {
 public:
  enum class Type : uint8_t { null, boolean, integer, natural, number, text, array, object };
  class Iterator;

  Json() = default;
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Json(T value) : type_(Type::boolean), natural_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) {
    if constexpr (std::is_signed_v<T>)
      set_integer(value);
    else
      set_natural(value);
  }
  Json(double value) : type_(Type::number), number_(value) {}
  Json(const char* text);
  Json(std::string text);
  Json(std::string_view text);
  // An object where every element is a list of a name and a value, else an array.
  Json(std::initializer_list<Json> list);
  template <class T>
  Json(const std::vector<T>& values) : Json(array()) {
    for (const T& value : values) push_back(Json(value));
  }
  template <class T>
  Json(const std::map<std::string, T>& members) : Json(object()) {
    for (const auto& [key, value] : members) (*this)[key] = Json(value);
  }
  template <class First, class Second>
  Json(const std::pair<First, Second>& two) : Json(array()) {
    push_back(Json(two.first));
    push_back(Json(two.second));
  }
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(Json other) noexcept;  // by value: `other` may be a part of this
  ~Json();

  static Json array();
  static Json array(std::initializer_list<Json> list);
  static Json object();

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::null; }
  bool is_boolean() const { return type_ == Type::boolean; }
  bool is_string() const { return type_ == Type::text; }
  bool is_array() const { return type_ == Type::array; }
  bool is_object() const { return type_ == Type::object; }
  bool is_number_integer() const { return type_ == Type::integer || type_ == Type::natural; }
  bool is_number_unsigned() const { return type_ == Type::natural; }
  bool is_number() const { return is_number_integer() || type_ == Type::number; }

  // Of another type: false, 0, an empty text. Numbers convert into each other as C++ does it.
  bool boolean() const { return type_ == Type::boolean && natural_ != 0; }
  int64_t integer() const;
  uint64_t natural() const;
  double number() const;
  const std::string& text() const;

  // Elements of an array, members of an object; 0 for anything else.
  size_t size() const { return parts_ == nullptr ? 0 : parts_->items.size(); }
  bool empty() const { return size() == 0; }
  Iterator begin() const;
  Iterator end() const;
  const Json& operator[](size_t index) const { return parts_->items[index]; }
  Json& operator[](size_t index) { return parts_->items[index]; }
  const Json& back() const { return parts_->items.back(); }
  Json& back() { return parts_->items.back(); }

  // A member; of what is no object: none.
  Iterator find(std::string_view key) const;
  const Json* member(std::string_view key) const;  // null: there is none
  bool contains(std::string_view key) const { return member(key) != nullptr; }
  // The text of a member; empty where it is none.
  const std::string& text_at(std::string_view key) const;

  // Adds a member where there is none; null becomes an object. That moves the other members, so
  // `json["new"] = json["old"]` needs a copy of the old one.
  Json& operator[](std::string_view key);
  Json& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  Json& operator[](const std::string& key) { return (*this)[std::string_view(key)]; }
  void push_back(Json value);  // null becomes an array
  void update(const Json& object);
  void erase(std::string_view key);
  void erase(size_t index);

  // `indent` below 0: on one line. Bytes that are not UTF-8 become U+FFFD; `ascii`: letters beyond
  // ASCII are escaped.
  std::string dump(int indent = -1, bool ascii = false) const;

  // Of what is no JSON, or is nested deeper than 512 levels: nothing. Members are sorted by name; of
  // several with one name the last counts.
  static std::optional<Json> parse(std::string_view text);

 private:
  friend class JsonBuilder;
  // Of an array or an object: apart, so that a number takes 32 bytes.
  struct Parts {
    std::vector<Json> items;
    std::vector<std::string> keys;  // of an object, beside items
    bool sorted = false;            // by key
  };

  void set_integer(int64_t value);
  void set_natural(uint64_t value);
  void sort_members();
  size_t index_of(std::string_view key) const;  // size() where there is none

  Type type_ = Type::null;
  union {
    uint64_t natural_ = 0;
    int64_t integer_;
    double number_;
  };
  std::unique_ptr<std::string> text_;  // null: empty
  std::unique_ptr<Parts> parts_;       // there in every array and object
};

class Json::Iterator {
 public:
  Iterator(const Json* owner, size_t index) : owner_(owner), index_(index) {}
  const Json& operator*() const { return owner_->parts_->items[index_]; }
  const Json* operator->() const { return &owner_->parts_->items[index_]; }
  const Json& value() const { return **this; }
  const std::string& key() const { return owner_->parts_->keys[index_]; }  // of an object's member
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  bool operator==(const Iterator& other) const = default;

 private:
  const Json* owner_;
  size_t index_;
};

inline Json::Iterator Json::begin() const { return {this, 0}; }
inline Json::Iterator Json::end() const { return {this, size()}; }
inline Json::Iterator Json::find(std::string_view key) const { return {this, index_of(key)}; }

// What stands in a text, in order, for files that are too large to be kept as values. Each returns
// whether to go on.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool null() { return true; }
  virtual bool boolean(bool) { return true; }
  virtual bool integer(int64_t) { return true; }  // below 0
  virtual bool natural(uint64_t) { return true; }
  virtual bool number(double) { return true; }
  virtual bool text(std::string&) { return true; }
  virtual bool key(std::string&) { return true; }
  virtual bool start_object() { return true; }
  virtual bool end_object() { return true; }
  virtual bool start_array() { return true; }
  virtual bool end_array() { return true; }
  virtual void damaged(size_t byte) { (void)byte; }  // counted from 1; then nothing follows
};
// false: it is no JSON, or a callback ended it.
bool read_json(std::string_view text, JsonEvents& events);

// Where a text stops being JSON, counted from 1; 0 = it is JSON, though a number may be too large
// or the nesting too deep for Json::parse.
size_t damaged_json_byte(std::string_view text);

}  // namespace cufit
