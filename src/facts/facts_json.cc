// SPDX-License-Identifier: Apache-2.0
#include "facts/facts_json.h"

#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "facts/facts_fields.h"

namespace cufit::facts {
namespace {

using Json = nlohmann::ordered_json;  // writing keeps the order of facts_fields.h
using Parsed =
    nlohmann::json;  // reading looks members up; ordered_json would do that in linear time
using formats::CodeKind;

constexpr SourceKind k_source_kinds[] = {
    SourceKind::file,    SourceKind::nvml,    SourceKind::cuda,   SourceKind::env,
    SourceKind::command, SourceKind::claimed, SourceKind::assumed};
constexpr WhyNot k_why_nots[] = {WhyNot::not_present, WhyNot::no_permission, WhyNot::not_supported,
                                 WhyNot::malformed,   WhyNot::timeout,       WhyNot::crashed,
                                 WhyNot::not_asked};
constexpr CodeKind k_code_kinds[] = {CodeKind::cubin, CodeKind::ptx, CodeKind::lto,
                                     CodeKind::other};

// Texts from the machine may hold bytes that are not UTF-8 (a process name); nlohmann would throw
// on them.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// --- writing
// ---------------------------------------------------------------------------------------------------

struct Writer {
  Json out = Json::object();
  // Fields that do not begin as zero, empty or false (`loadable`): left out, they would be read
  // back as something else.
  const std::set<std::string>* always = nullptr;

  template <class T>
  void operator()(const char* name, const T& value) {
    Json json = to_json(value);
    if (!is_default(json) || (always != nullptr && always->count(name) > 0))
      out[name] = std::move(json);
  }

  template <class T>
  static std::set<std::string> names_with_defaults() {
    Writer writer;
    const T fresh{};
    visit_fields(writer, fresh);
    std::set<std::string> names;
    for (const auto& [name, json] : writer.out.items()) names.insert(name);
    return names;
  }

  static bool is_default(const Json& json) {
    switch (json.type()) {
      case Json::value_t::null:
        return true;
      case Json::value_t::boolean:
        return !json.get<bool>();
      case Json::value_t::string:
        return json.get_ref<const std::string&>().empty();
      case Json::value_t::array:
      case Json::value_t::object:
        return json.empty();
      case Json::value_t::number_integer:
        return json.get<int64_t>() == 0;
      case Json::value_t::number_unsigned:
        return json.get<uint64_t>() == 0;
      case Json::value_t::number_float:
        return json.get<double>() == 0;
      default:
        return false;
    }
  }

  static Json to_json(const std::string& value) { return value; }
  static Json to_json(bool value) { return value; }
  static Json to_json(double value) { return value; }
  static Json to_json(int value) { return value; }
  static Json to_json(uint32_t value) { return value; }
  static Json to_json(uint64_t value) { return value; }
  static Json to_json(CodeKind value) { return formats::to_string(value); }
  template <class T>
  static Json to_json(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(to_json(value));
    return array;
  }
  template <class T>
  static Json to_json(const Fact<T>& fact) {
    if (!fact && fact.why == WhyNot::not_asked && fact.source.detail.empty() && fact.note.empty()) {
      return nullptr;
    }
    Json json = Json::object();
    if (fact) {
      json["value"] = to_json(*fact);
    } else {
      json["missing"] = to_string(fact.why);
    }
    json["source"] = {{"kind", to_string(fact.source.kind)}, {"detail", fact.source.detail}};
    if (!fact.note.empty()) json["note"] = fact.note;
    return json;
  }
  template <class T>
  static Json to_json(const T& value) {
    static const std::set<std::string> with_defaults = names_with_defaults<T>();
    Writer writer;
    writer.always = &with_defaults;
    visit_fields(writer, value);
    return std::move(writer.out);
  }
};

// --- reading
// ---------------------------------------------------------------------------------------------------

// Keeps the first mistake and goes on, so that the message names the member where it lies.
struct Problem {
  std::string at, what;
};

struct Reader {
  const Parsed& in;
  std::string at;
  Problem& problem;

  template <class T>
  void operator()(const char* name, T& value) {
    auto found = in.find(name);
    if (found == in.end() || found->is_null()) return;
    read(*found, value, at.empty() ? name : at + "." + name);
  }

  void complain(const std::string& where, const char* what) const {
    if (problem.what.empty()) problem = {where, what};
  }

  void read(const Parsed& json, std::string& value, const std::string& where) const {
    if (!json.is_string()) return complain(where, "is not a text");
    value = json.get<std::string>();
  }
  void read(const Parsed& json, bool& value, const std::string& where) const {
    if (!json.is_boolean()) return complain(where, "is not true or false");
    value = json.get<bool>();
  }
  void read(const Parsed& json, double& value, const std::string& where) const {
    if (!json.is_number()) return complain(where, "is not a number");
    value = json.get<double>();
  }
  template <class T>
  void read_integer(const Parsed& json, T& value, const std::string& where) const {
    if (!json.is_number_integer()) return complain(where, "is not a whole number");
    bool fits;
    if (json.is_number_unsigned()) {
      fits = json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    } else {  // negative: nlohmann parses non-negative literals as unsigned
      fits = std::numeric_limits<T>::is_signed &&
             json.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min());
    }
    if (!fits) return complain(where, "is out of range");
    value = json.get<T>();
  }
  void read(const Parsed& json, int& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  void read(const Parsed& json, uint32_t& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  void read(const Parsed& json, uint64_t& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  template <class Enum, size_t n>
  void read_name(const Parsed& json, const Enum (&all)[n], Enum& value,
                 const std::string& where) const {
    std::string text;
    read(json, text, where);
    for (Enum candidate : all) {
      if (text == to_string(candidate)) {
        value = candidate;
        return;
      }
    }
    complain(where, "is none of the known words");
  }
  void read(const Parsed& json, CodeKind& value, const std::string& where) const {
    read_name(json, k_code_kinds, value, where);
  }
  template <class T>
  void read(const Parsed& json, std::vector<T>& values, const std::string& where) const {
    if (!json.is_array()) return complain(where, "is not a list");
    values.clear();
    for (size_t i = 0; i < json.size(); ++i) {
      values.emplace_back();
      read(json[i], values.back(), where + "[" + std::to_string(i) + "]");
    }
  }
  template <class T>
  void read(const Parsed& json, Fact<T>& fact, const std::string& where) const {
    if (!json.is_object()) return complain(where, "is not an object with `value` or `missing`");
    if (auto source = json.find("source"); source != json.end()) {
      if (!source->is_object()) return complain(where + ".source", "is not an object");
      if (auto kind = source->find("kind"); kind != source->end()) {
        read_name(*kind, k_source_kinds, fact.source.kind, where + ".source.kind");
      }
      if (auto detail = source->find("detail"); detail != source->end()) {
        read(*detail, fact.source.detail, where + ".source.detail");
      }
    }
    if (auto note = json.find("note"); note != json.end()) read(*note, fact.note, where + ".note");
    if (auto value = json.find("value"); value != json.end()) {
      T read_value{};
      read(*value, read_value, where + ".value");
      fact.value = std::move(read_value);
    } else if (auto why = json.find("missing"); why != json.end()) {
      read_name(*why, k_why_nots, fact.why, where + ".missing");
    }
  }
  template <class T>
  void read(const Parsed& json, T& value, const std::string& where) const {
    if (!json.is_object()) return complain(where, "is not an object");
    Reader reader{json, where, problem};
    visit_fields(reader, value);
  }
};

Result<Parsed> parse_object(std::string_view text, const std::string& name) {
  try {
    Parsed json = Parsed::parse(text.begin(), text.end());
    if (!json.is_object()) return fail(Code::malformed, format("`{}`: not a JSON object", name));
    return json;
  } catch (const Parsed::exception& error) {
    auto* parse_error = dynamic_cast<const Parsed::parse_error*>(&error);
    return fail(Code::malformed,
                format("`{}`: not JSON at byte {}", name, parse_error ? parse_error->byte : 0));
  }
}

template <class T>
Result<T> from_object(const Parsed& json, const std::string& name) {
  T value;
  Problem problem;
  Reader reader{json, "", problem};
  visit_fields(reader, value);
  if (!problem.what.empty()) {
    return fail(Code::malformed, format("`{}`: `{}` {}", name, problem.at, problem.what));
  }
  return value;
}

template <class T>
Result<T> from_json(std::string_view text, const std::string& name) {
  CUFIT_TRY(json, parse_object(text, name));
  return from_object<T>(json, name);
}

}  // namespace

std::string facts_to_json(const Facts& facts, int indent) {
  return dump(Writer::to_json(facts), indent);
}

Result<Facts> facts_from_json(std::string_view text, const std::string& name) {
  CUFIT_TRY(json, parse_object(text, name));
  const Parsed schema = json.value("schema", Parsed());
  if (schema == "cufit.facts/1") return from_object<Facts>(json, name);
  auto inner = json.find("facts");
  if (schema == "cufit.doctor/1" && inner != json.end() && inner->is_object()) {
    return from_object<Facts>(*inner, name);
  }
  return fail(Code::unsupported,
              format("`{}`: `schema` is {}, not `cufit.facts/1` or `cufit.doctor/1`", name,
                     schema.is_string() ? "`" + schema.get<std::string>() + "`" : "missing"));
}

std::string nvml_to_json(const NvmlFacts& nvml) { return dump(Writer::to_json(nvml), -1); }
Result<NvmlFacts> nvml_from_json(std::string_view text) {
  return from_json<NvmlFacts>(text, "NVML's answers");
}
std::string cuda_to_json(const CudaFacts& cuda) { return dump(Writer::to_json(cuda), -1); }
Result<CudaFacts> cuda_from_json(std::string_view text) {
  return from_json<CudaFacts>(text, "the CUDA driver's answers");
}

}  // namespace cufit::facts
