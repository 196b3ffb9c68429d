// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/bench_answer.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_bench_text = 300, k_bench_name = 80;
constexpr double k_most_bench_number = 1e18;

// What the process may say of itself.
constexpr std::string_view k_refusals[] = {"no_torch", "no_cuda", "no_gpu", "precision",
                                           "workload", "oom",     "failed"};

// Reads members; the first that is missing or of another kind makes the whole line garbage.
class LineReader {
 public:
  LineReader(std::string_view line, BenchRefusal& refusal) : line_(line), refusal_(refusal) {
    json_ = Json::parse(line);
    const bool object = json_ && json_->is_object();
    const std::string kind = object ? json_->text_at("error") : std::string();
    const bool known = kind.empty() || std::find(std::begin(k_refusals), std::end(k_refusals),
                                                 kind) != std::end(k_refusals);
    if (!object || !known)
      wrong();
    else if (!kind.empty())
      refusal_ = {kind, printable(json_->text_at("why"), k_bench_text)};
  }

  bool good() const { return refusal_.kind.empty(); }

  std::string text(const Json& object, std::string_view key, bool may_be_null = false) {
    const Json* const value = object.member(key);
    if (value != nullptr && value->is_string()) return printable(value->text(), k_bench_name);
    if (!(may_be_null && (value == nullptr || value->is_null()))) wrong();
    return {};
  }
  double number(const Json& object, std::string_view key, double least) {
    const Json* const value = object.member(key);
    const double out = value == nullptr || !value->is_number() ? NAN : value->number();
    if (out >= least && out < k_most_bench_number) return out;
    wrong();
    return 0;
  }
  std::optional<uint64_t> maybe(const Json& object, std::string_view key) {
    const Json* const value = object.member(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_number_unsigned()) return value->natural();
    wrong();
    return std::nullopt;
  }
  uint64_t natural(const Json& object, std::string_view key) {
    const std::optional<uint64_t> out = maybe(object, key);
    if (!out) wrong();
    return out.value_or(0);
  }
  const Json& json() const { return *json_; }
  void wrong() {
    if (good()) refusal_ = {"garbage", printable(line_, k_bench_name)};
  }

 private:
  std::string_view line_;
  BenchRefusal& refusal_;
  std::optional<Json> json_;
};

BenchGpu bench_gpu(LineReader& reader, const Json& json) {
  BenchGpu gpu;
  gpu.name = reader.text(json, "name");
  gpu.capability = reader.text(json, "capability");
  gpu.uuid = reader.text(json, "uuid", true);
  gpu.memory_bytes = reader.natural(json, "memory_bytes");
  return gpu;
}

}  // namespace

BenchAnswer<BenchHello> parse_bench_hello(std::string_view line) {
  BenchAnswer<BenchHello> out;
  LineReader reader(line, out.refusal);
  if (!reader.good()) return out;
  const Json& json = reader.json();
  out.value.python = reader.text(json, "python");
  out.value.torch = reader.text(json, "torch");
  out.value.cuda = reader.text(json, "cuda", true);
  out.value.cudnn = reader.maybe(json, "cudnn");
  out.value.threads = reader.maybe(json, "threads").value_or(0);
  if (const Json* gpu = json.member("device"); gpu != nullptr && !gpu->is_null())
    out.value.gpu = bench_gpu(reader, *gpu);
  return out;
}

BenchAnswer<BenchLoaded> parse_bench_loaded(std::string_view line) {
  BenchAnswer<BenchLoaded> out;
  LineReader reader(line, out.refusal);
  if (!reader.good()) return out;
  const Json& json = reader.json();
  out.value.items = reader.number(json, "items", 1e-18);
  out.value.unit = reader.text(json, "unit");
  out.value.batch = reader.natural(json, "batch");
  out.value.shape = reader.text(json, "shape");
  out.value.seconds = reader.number(json, "seconds", 0);
  return out;
}

BenchAnswer<BenchBlock> parse_bench_block(std::string_view line) {
  BenchAnswer<BenchBlock> out;
  LineReader reader(line, out.refusal);
  if (!reader.good()) return out;
  const Json& json = reader.json();
  out.value.calls = reader.natural(json, "calls");
  out.value.seconds = reader.number(json, "seconds", 1e-9);
  out.value.begin = reader.number(json, "begin", 0);
  out.value.end = reader.number(json, "end", 0);
  out.value.reserved = reader.maybe(json, "reserved");
  if (out.value.calls == 0 || out.value.end < out.value.begin) reader.wrong();
  return out;
}

}  // namespace cufit::formats
