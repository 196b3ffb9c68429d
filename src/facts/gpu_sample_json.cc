// SPDX-License-Identifier: Apache-2.0
#include "facts/gpu_sample_json.h"

#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/json.h"
#include "facts/gpu_sample_fields.h"

namespace cufit::facts {
namespace {

struct SampleWriter {
  Json out = Json::object();

  template <class T>
  void operator()(const char* name, const T& value) {
    put(name, value);
  }
  template <class T>
  void put(const char* name, const std::optional<T>& value) {
    if (value) out[name] = to_json(*value);
  }
  template <class T>
  void put(const char* name, const T& value) {
    if (value == T{}) return;
    out[name] = to_json(value);
  }
  template <class T>
  void put(const char* name, const std::vector<T>& values) {
    if (!values.empty()) out[name] = to_json(values);
  }
  void put(const char* name, const ProcessOwner& owner) { out[name] = to_json(owner); }

  static Json to_json(const std::string& value) { return value; }
  template <class T>
  requires std::is_arithmetic_v<T>
  static Json to_json(T value) { return Json(value); }
  template <class T>
  static Json to_json(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(to_json(value));
    return array;
  }
  template <class T>
  requires std::is_class_v<T>
  static Json to_json(const T& value) {
    SampleWriter writer;
    visit_sample(writer, value);
    return std::move(writer.out);
  }
};

// Reads what is there; the first member of another type is named.
struct SampleReader {
  const Json& in;
  std::string& wrong;

  template <class T>
  void operator()(const char* name, T& value) {
    const Json* const member = in.member(name);
    if (member == nullptr || member->is_null() || !wrong.empty()) return;
    if (!get(*member, value) && wrong.empty()) wrong = name;
  }

  bool get(const Json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = json.text();
    return true;
  }
  bool get(const Json& json, bool& value) {
    if (!json.is_boolean()) return false;
    value = json.boolean();
    return true;
  }
  bool get(const Json& json, double& value) {
    if (!json.is_number() || !std::isfinite(json.number())) return false;
    value = json.number();
    return true;
  }
  template <class T>
  requires(std::is_integral_v<T> && !std::same_as<T, bool>) bool get(const Json& json, T& value) {
    if (!json.is_number_integer()) return false;
    if (std::is_unsigned_v<T> && !json.is_number_unsigned()) return false;
    if (std::is_unsigned_v<T> ? json.natural() > std::numeric_limits<T>::max()
                              : (json.integer() > std::numeric_limits<T>::max() ||
                                 json.integer() < std::numeric_limits<T>::min()))
      return false;
    value = std::is_unsigned_v<T> ? static_cast<T>(json.natural()) : static_cast<T>(json.integer());
    return true;
  }
  template <class T>
  bool get(const Json& json, std::optional<T>& value) {
    return get(json, value.emplace());
  }
  template <class T>
  bool get(const Json& json, std::vector<T>& values) {
    if (!json.is_array() || json.size() > k_most_sampled_processes) return false;
    for (const Json& one : json)
      if (!get(one, values.emplace_back())) return false;
    return true;
  }
  template <class T>
  requires(std::is_class_v<T>) bool get(const Json& json, T& value) {
    if (!json.is_object()) return false;
    SampleReader inner{json, wrong};
    visit_sample(inner, value);
    return wrong.empty();
  }
};

}  // namespace

std::string sample_to_json(const GpuSample& sample) { return SampleWriter::to_json(sample).dump(); }

Result<GpuSample> sample_from_json(std::string_view line) {
  if (line.size() > k_most_sample_bytes)
    return fail(Code::malformed, format("a sample of more than {} MiB", k_most_sample_bytes >> 20));
  const std::optional<Json> json = Json::parse(line);
  if (!json || !json->is_object()) return fail(Code::malformed, "no JSON object");
  GpuSample out;
  std::string wrong;
  SampleReader reader{*json, wrong};
  visit_sample(reader, out);
  if (!wrong.empty()) return fail(Code::malformed, format("`{}` is of another type", wrong));
  if (out.gpus.size() > k_most_sampled_gpus)
    return fail(Code::malformed, format("more than {} GPUs", k_most_sampled_gpus));
  for (const SampledProcess& process : out.processes)
    if (process.gpu >= out.gpus.size())
      return fail(Code::malformed, "a process on a GPU that is not there");
  return out;
}

}  // namespace cufit::facts
