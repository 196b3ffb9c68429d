// SPDX-License-Identifier: Apache-2.0
#include "facts/facts_json.h"

#include <limits>
#include <set>
#include <type_traits>

#include "base/format.h"
#include "base/json.h"
#include "facts/facts_fields.h"

namespace cufit::facts {
namespace {

using formats::CodeKind;

constexpr SourceKind k_source_kinds[] = {
    SourceKind::file,    SourceKind::nvml,    SourceKind::cuda,   SourceKind::env,
    SourceKind::command, SourceKind::claimed, SourceKind::assumed};
constexpr WhyNot k_why_nots[] = {WhyNot::not_present, WhyNot::no_permission, WhyNot::not_supported,
                                 WhyNot::malformed,   WhyNot::timeout,       WhyNot::crashed,
                                 WhyNot::not_asked};
constexpr CodeKind k_code_kinds[] = {CodeKind::cubin, CodeKind::ptx, CodeKind::lto,
                                     CodeKind::other};

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
    for (auto at = writer.out.begin(); at != writer.out.end(); ++at) names.insert(at.key());
    return names;
  }

  static bool is_default(const Json& json) {
    if (json.is_number()) return json.number() == 0;
    return json.is_null() || (json.is_boolean() && !json.boolean()) ||
           (json.is_string() && json.text().empty()) ||
           ((json.is_array() || json.is_object()) && json.empty());
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
      return Json();
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
  const Json& in;
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

  void read(const Json& json, std::string& value, const std::string& where) const {
    if (!json.is_string()) return complain(where, "is not a text");
    value = json.text();
  }
  void read(const Json& json, bool& value, const std::string& where) const {
    if (!json.is_boolean()) return complain(where, "is not true or false");
    value = json.boolean();
  }
  void read(const Json& json, double& value, const std::string& where) const {
    if (!json.is_number()) return complain(where, "is not a number");
    value = json.number();
  }
  template <class T>
  void read_integer(const Json& json, T& value, const std::string& where) const {
    if (!json.is_number_integer()) return complain(where, "is not a whole number");
    bool fits;
    if (json.is_number_unsigned()) {
      fits = json.natural() <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    } else {  // negative
      fits = std::numeric_limits<T>::is_signed &&
             json.integer() >= static_cast<int64_t>(std::numeric_limits<T>::min());
    }
    if (!fits) return complain(where, "is out of range");
    value =
        json.is_number_unsigned() ? static_cast<T>(json.natural()) : static_cast<T>(json.integer());
  }
  void read(const Json& json, int& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  void read(const Json& json, uint32_t& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  void read(const Json& json, uint64_t& value, const std::string& where) const {
    read_integer(json, value, where);
  }
  template <class Enum, size_t n>
  void read_name(const Json& json, const Enum (&all)[n], Enum& value,
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
  void read(const Json& json, CodeKind& value, const std::string& where) const {
    read_name(json, k_code_kinds, value, where);
  }
  // Checks compare GPUs with each other and with environments: no machine has more than these, and
  // a page about them would be read by nobody.
  static constexpr size_t k_most_gpus = 256, k_most_envs = 1000;
  template <class T>
  static constexpr size_t most_of() {
    if (std::is_same_v<T, NvmlGpu> || std::is_same_v<T, CudaDevice>) return k_most_gpus;
    if (std::is_same_v<T, PciGpu>) return 16 * k_most_gpus;  // sound and bridges are among them
    if (std::is_same_v<T, PythonEnv>) return k_most_envs;
    return std::numeric_limits<size_t>::max();
  }

  template <class T>
  void read(const Json& json, std::vector<T>& values, const std::string& where) const {
    if (!json.is_array()) return complain(where, "is not a list");
    if (json.size() > most_of<T>()) return complain(where, "has more entries than any machine");
    values.clear();
    for (size_t i = 0; i < json.size(); ++i) {
      values.emplace_back();
      read(json[i], values.back(), where + "[" + std::to_string(i) + "]");
    }
  }
  template <class T>
  void read(const Json& json, Fact<T>& fact, const std::string& where) const {
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
  void read(const Json& json, T& value, const std::string& where) const {
    if (!json.is_object()) return complain(where, "is not an object");
    Reader reader{json, where, problem};
    visit_fields(reader, value);
  }
};

Result<Json> parse_object(std::string_view text, const std::string& name) {
  std::optional<Json> json = Json::parse(text);
  if (!json) {
    const size_t byte = damaged_json_byte(text);
    return fail(Code::malformed,
                byte == 0 ? format("`{}`: JSON with a number that is too large, or nested too "
                                   "deeply",
                                   name)
                          : format("`{}`: not JSON at byte {}", name, byte));
  }
  if (!json->is_object()) return fail(Code::malformed, format("`{}`: not a JSON object", name));
  return std::move(*json);
}

template <class T>
Result<T> from_object(const Json& json, const std::string& name) {
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

Json facts_value(const Facts& facts) { return Writer::to_json(facts); }

std::string facts_to_json(const Facts& facts, int indent) {
  return Writer::to_json(facts).dump(indent);
}

Result<Json> read_json_object(std::string_view text, const std::string& name) {
  return parse_object(text, name);
}

Result<Facts> facts_from_json(std::string_view text, const std::string& name) {
  CUFIT_TRY(json, parse_object(text, name));
  return facts_from_value(json, name);
}

Result<Facts> facts_from_value(const Json& json, const std::string& name) {
  const Json* schema = json.member("schema");
  const std::string& name_of_schema = json.text_at("schema");
  if (name_of_schema == "cufit.facts/1") return from_object<Facts>(json, name);
  auto inner = json.find("facts");
  if (name_of_schema == "cufit.doctor/1") {
    if (inner != json.end() && inner->is_object()) return from_object<Facts>(*inner, name);
    return fail(Code::malformed, format("`{}`: `facts` of the report is missing", name));
  }
  return fail(
      Code::unsupported,
      format("`{}`: `schema` is {}, not `cufit.facts/1` or `cufit.doctor/1`", name,
             schema != nullptr && schema->is_string() ? "`" + name_of_schema + "`" : "missing"));
}

std::string nvml_to_json(const NvmlFacts& nvml) { return Writer::to_json(nvml).dump(); }
Result<NvmlFacts> nvml_from_json(std::string_view text) {
  return from_json<NvmlFacts>(text, "NVML's answers");
}
std::string cuda_to_json(const CudaFacts& cuda) { return Writer::to_json(cuda).dump(); }
Result<CudaFacts> cuda_from_json(std::string_view text) {
  return from_json<CudaFacts>(text, "the CUDA driver's answers");
}

}  // namespace cufit::facts
