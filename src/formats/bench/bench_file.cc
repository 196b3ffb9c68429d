// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_bench_file_text = 200, k_most_torches = 64, k_most_pairs = 10'000;
constexpr double k_most_ratio = 1e6;

class BenchFileReader {
 public:
  explicit BenchFileReader(const std::string& file) : file_(file) {}

  Result<BenchFile> read(const Json& json) {
    if (json.text_at("schema") != "cufit.bench/1")
      return fail(Code::unsupported, format("`{}`: no result of `cufit bench -o` (schema "
                                            "cufit.bench/1)",
                                            file_));
    if (const Json* device = json.member("device"); device != nullptr)
      out_.gpu = printable(device->text_at("name"), k_bench_file_text);
    for (const Json& env : list(json, "environments")) {
      const std::string torch = printable(env.text_at("torch"), k_bench_file_text);
      out_.torches.push_back(
          torch.empty() ? BenchTorch{}
                        : bench_torch(torch, printable(env.text_at("cuda"), k_bench_file_text)));
    }
    if (out_.torches.size() > k_most_torches) wrong("environments");
    const Json* const others = json.member("neighbours");
    out_.doubtful = others != nullptr && others->is_array() && !others->empty();
    for (const Json& one : list(json, "cases")) read_case(one);
    if (!wrong_.empty())
      return fail(Code::malformed, format("`{}`: `{}` is missing or no such value", file_, wrong_));
    return std::move(out_);
  }

 private:
  void wrong(const char* member) {
    if (wrong_.empty()) wrong_ = member;
  }
  const Json& list(const Json& in, const char* key) {
    static const Json k_none = Json::array();
    const Json* const value = in.member(key);
    if (value != nullptr && value->is_array()) return *value;
    wrong(key);
    return k_none;
  }
  // `most`: one above the largest.
  size_t place(const Json& in, const char* key, size_t most) {
    const Json* const value = in.member(key);
    if (value != nullptr && value->is_number_unsigned() && value->natural() < most)
      return static_cast<size_t>(value->natural());
    wrong(key);
    return 0;
  }
  double ratio(const Json& in, const char* key) {
    const Json* const value = in.member(key);
    const double out = value != nullptr && value->is_number() ? value->number() : 0;
    if (!(out > 0 && out < k_most_ratio)) wrong(key);
    return out;
  }

  static bool is_unsteady(const Json& run) {
    const Json* const steady = run.member("steady");
    return steady != nullptr && steady->is_boolean() && !steady->boolean();
  }

  void read_case(const Json& one) {
    const Json& runs = list(one, "runs");
    for (const Json& two : list(one, "comparisons")) {
      const size_t base = place(two, "base", runs.size()), other = place(two, "other", runs.size());
      const Json* const interval = two.member("ratio");
      if (interval == nullptr || !interval->is_object()) wrong("ratio");
      if (!wrong_.empty() || out_.pairs.size() >= k_most_pairs) return;
      BenchPair pair;
      pair.base = place(runs[base], "environment", out_.torches.size());
      pair.other = place(runs[other], "environment", out_.torches.size());
      pair.ratio = ratio(*interval, "median");
      pair.low = ratio(*interval, "low");
      pair.high = ratio(*interval, "high");
      if (pair.low > pair.ratio || pair.ratio > pair.high) wrong("ratio");
      pair.workload = printable(one.text_at("workload"), k_bench_file_text);
      pair.precision = printable(runs[other].text_at("precision"), k_bench_file_text);
      const bool alike = runs[base].text_at("precision") == runs[other].text_at("precision");
      if (!wrong_.empty() || !alike || pair.base == pair.other) continue;
      out_.doubtful = out_.doubtful || is_unsteady(runs[base]) || is_unsteady(runs[other]);
      out_.pairs.push_back(std::move(pair));
    }
  }

  const std::string& file_;
  BenchFile out_;
  std::string wrong_;
};

}  // namespace

BenchTorch bench_torch(std::string_view version, std::string_view cuda) {
  const size_t plus = version.find('+');
  BenchTorch out{std::string(version.substr(0, plus)), {}};
  if (plus != std::string_view::npos) {
    out.tag = std::string(version.substr(plus + 1));
  } else if (cuda.empty()) {
    out.tag = "cpu";
  } else {
    out.tag = "cu";
    for (const char c : cuda)
      if (c != '.') out.tag += c;
  }
  return out;
}

Result<BenchFile> parse_bench_file(std::string_view text, const std::string& file) {
  const std::optional<Json> json = Json::parse(text);
  if (!json || !json->is_object())
    return fail(Code::malformed, format("`{}`: no JSON (byte {})", file, damaged_json_byte(text)));
  return BenchFileReader(file).read(*json);
}

}  // namespace cufit::formats
