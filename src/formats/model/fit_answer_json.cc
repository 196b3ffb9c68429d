// SPDX-License-Identifier: Apache-2.0
// An answer of `cufit fit --json` (docs/schemas/fit-1.json), as far as packing needs it.
#include "base/format.h"
#include "base/json.h"
#include "formats/model/pack_jobs.h"

namespace cufit::formats {
namespace {

constexpr uint64_t k_most_answer_bytes = uint64_t{1} << 50;
constexpr size_t k_most_answer_gpus = 1000, k_most_program_bytes = 64 << 10;

std::optional<uint64_t> bytes_at(const Json& object, std::string_view key) {
  const Json* value = object.member(key);
  if (value == nullptr || !value->is_number_unsigned() || value->natural() > k_most_answer_bytes)
    return std::nullopt;
  return value->natural();
}

Result<FitAnswerFacts::OnGpu> gpu_at(const Json& gpu, const std::string& file) {
  FitAnswerFacts::OnGpu out;
  out.name = gpu.text_at("name");
  const std::optional<uint64_t> outside = bytes_at(gpu, "outside_allocator_bytes");
  if (!gpu.is_object() || out.name.empty() || out.name.size() > 200 || !outside)
    return fail(Code::malformed, format("{}: `gpus` has one without name or sizes", file));
  out.outside = *outside;
  out.peak_reserved_upper = bytes_at(gpu, "peak_reserved_upper_bytes");
  const Json* oom = gpu.member("oom");
  out.runs_out = oom != nullptr && oom->is_object();
  return out;
}

}  // namespace

Result<FitAnswerFacts> parse_fit_answer(std::string_view text, const std::string& file) {
  if (text.size() > k_fit_json_most_bytes)
    return fail(Code::malformed, format("{}: larger than 32 MiB", file));
  const std::optional<Json> root = Json::parse(text);
  if (!root) {
    const size_t byte = damaged_json_byte(text);
    return fail(Code::malformed, format("{}: no JSON (byte {})", file, byte));
  }
  if (root->text_at("schema") != "cufit.fit/1")
    return fail(Code::malformed, format("{}: not an answer of `cufit fit --json`", file));
  if (root->contains("error"))
    return fail(Code::usage,
                format("{}: `cufit fit` had no answer; run it again to see why", file));
  FitAnswerFacts out;
  const std::optional<uint64_t> upper = bytes_at(*root, "peak_reserved_upper_bytes");
  if (!upper || *upper == 0)
    return fail(Code::malformed, format("{}: no `peak_reserved_upper_bytes`", file));
  out.peak_reserved_upper = *upper;
  if (root->text_at("program").size() <= k_most_program_bytes)
    out.program = root->text_at("program");
  const Json* gpus = root->member("gpus");
  if (gpus != nullptr && gpus->is_array()) {
    if (gpus->size() > k_most_answer_gpus)
      return fail(Code::malformed, format("{}: more than {} GPUs", file, k_most_answer_gpus));
    for (const Json& gpu : *gpus) {
      CUFIT_TRY(one, gpu_at(gpu, file));
      out.gpus.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace cufit::formats
