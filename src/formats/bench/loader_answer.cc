// SPDX-License-Identifier: Apache-2.0
#include "formats/bench/loader_answer.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_loader_text = 300, k_most_counts = 64, k_most_other_loaders = 8;
constexpr double k_most_loader_seconds = 1e9;
constexpr uint64_t k_most_loader_number = uint64_t{1} << 62;

class AnswerReader {
 public:
  bool good() const { return wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  const Json& object(const Json& in, const char* key) {
    static const Json k_empty = Json::object();
    const Json* const value = in.member(key);
    if (value != nullptr && value->is_object()) return *value;
    note(key);
    return k_empty;
  }
  std::string text(const Json& in, const char* key) {
    const Json* const value = in.member(key);
    if (value == nullptr || value->is_null()) return {};
    if (!value->is_string()) note(key);
    return printable(value->text(), k_loader_text);
  }
  bool truth(const Json& in, const char* key) {
    const Json* const value = in.member(key);
    if (value == nullptr || !value->is_boolean()) note(key);
    return value != nullptr && value->boolean();
  }
  std::optional<uint64_t> maybe(const Json& in, const char* key) {
    const Json* const value = in.member(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_number_unsigned() && value->natural() < k_most_loader_number)
      return value->natural();
    note(key);
    return std::nullopt;
  }
  uint64_t natural(const Json& in, const char* key) {
    const std::optional<uint64_t> out = maybe(in, key);
    if (!out) note(key);
    return out.value_or(0);
  }
  std::optional<double> maybe_seconds(const Json& in, const char* key) {
    const Json* const value = in.member(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_number() && value->number() >= 0 && value->number() < k_most_loader_seconds)
      return value->number();
    note(key);
    return std::nullopt;
  }
  double seconds(const Json& in, const char* key) {
    const std::optional<double> out = maybe_seconds(in, key);
    if (!out) note(key);
    return out.value_or(0);
  }

 private:
  void note(const char* key) {
    if (wrong_.empty()) wrong_ = key;
  }
  std::string wrong_;
};

void read_loader(AnswerReader& reader, const Json& json, LoaderAnswer& out) {
  const Json& loader = reader.object(json, "loader");
  out.place = reader.text(loader, "place");
  out.dataset = reader.text(loader, "dataset");
  out.batches = reader.maybe(loader, "batches");
  out.batch_size = reader.maybe(loader, "batch_size");
  out.prefetch_factor = reader.maybe(loader, "prefetch_factor");
  out.batch_bytes = reader.natural(loader, "batch_bytes");
  out.num_workers = reader.natural(loader, "num_workers");
  out.pin_memory = reader.truth(loader, "pin_memory");
  out.persistent_workers = reader.truth(loader, "persistent_workers");
  out.iterable = reader.truth(loader, "iterable");
  out.batch_on_device = reader.truth(loader, "batch_on_device");
  if (const Json* others = json.member("other_loaders"); others != nullptr && others->is_array())
    for (const Json& one : *others)
      if (one.is_string() && out.other_loaders.size() < k_most_other_loaders)
        out.other_loaders.push_back(printable(one.text(), k_loader_text));
}

void read_alone(AnswerReader& reader, const Json& json, LoaderAnswer& out) {
  const Json* const all = json.member("alone");
  if (all == nullptr || !all->is_array()) return;
  for (const Json& one : *all) {
    if (out.alone.size() >= k_most_counts) return;
    LoaderAlone alone;
    alone.workers = reader.natural(one, "workers");
    alone.seconds = reader.maybe_seconds(one, "seconds");
    alone.first_seconds = reader.maybe_seconds(one, "first_seconds");
    alone.batches = reader.natural(one, "batches");
    alone.error = reader.text(one, "error");
    out.alone.push_back(std::move(alone));
  }
}

}  // namespace

Result<LoaderAnswer> parse_loader_answer(std::string_view text) {
  const std::optional<Json> json = Json::parse(text);
  if (!json || !json->is_object())
    return fail(Code::malformed, "what the program told of its loader is no JSON");
  LoaderAnswer out;
  AnswerReader reader;
  out.phase = reader.text(*json, "phase");
  out.torch = reader.text(*json, "torch");
  out.cuda = reader.truth(*json, "cuda");
  out.optimizer_steps = reader.natural(*json, "optimizer_steps");
  out.processes = std::max<uint64_t>(reader.natural(*json, "processes"), 1);
  out.trying = reader.maybe(*json, "trying");
  read_loader(reader, *json, out);
  const Json& watched = reader.object(*json, "watched");
  out.watched_batches = reader.natural(watched, "batches");
  out.wait_seconds = reader.seconds(watched, "wait_seconds");
  out.work_seconds = reader.seconds(watched, "work_seconds");
  if (const Json* step = json->member("step"); step != nullptr && step->is_object()) {
    out.step_seconds = reader.seconds(*step, "seconds");
    out.steps = reader.natural(*step, "steps");
  }
  read_alone(reader, *json, out);
  if (!reader.good())
    return fail(Code::malformed,
                format("what the program told of its loader: `{}` is missing or no such value",
                       reader.wrong()));
  return out;
}

}  // namespace cufit::formats
