// SPDX-License-Identifier: Apache-2.0
#include "facts/together_answer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::facts {
namespace {

constexpr size_t k_most_pairs = 64 * 63, k_most_ways = 16, k_most_text = 600;

// A member of a JSON object: of another type, or not there: nothing.
class Members {
 public:
  explicit Members(const Json* object) : object_(object) {}

  const Json* find(const char* name) const {
    if (object_ == nullptr || !object_->is_object()) return nullptr;
    const auto found = object_->find(name);
    return found == object_->end() ? nullptr : &*found;
  }
  std::string text(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_string()) return {};
    return formats::printable(value->text(), k_most_text);
  }
  // Of measured values: above zero and finite.
  std::optional<double> measured(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number()) return std::nullopt;
    const double number = value->number();
    return std::isfinite(number) && number > 0 ? std::optional<double>(number) : std::nullopt;
  }
  std::optional<uint32_t> number(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number_unsigned() || value->natural() > 4096)
      return std::nullopt;
    return static_cast<uint32_t>(value->natural());
  }
  std::optional<uint64_t> bytes(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr || !value->is_number_unsigned() || value->natural() == 0)
      return std::nullopt;
    return value->natural();
  }

 private:
  const Json* object_;
};

std::optional<std::string> outcome_of(const Members& part) {
  static const char* const k_outcomes[] = {"ok", "wrong", "hung", "failed"};
  std::string said = part.text("outcome");
  const bool known =
      std::find(std::begin(k_outcomes), std::end(k_outcomes), said) != std::end(k_outcomes);
  return known ? std::optional<std::string>(std::move(said)) : std::nullopt;
}

template <class T>
void put(Fact<T>& fact, const std::optional<T>& value, const std::string& tried) {
  if (value) fact = known<T>(*value, SourceKind::command, tried);
}

void read_pairs(const Members& copies, TogetherFacts& out) {
  const Json* pairs = copies.find("pairs");
  if (pairs == nullptr || !pairs->is_array()) return;
  for (size_t i = 0; i < std::min(pairs->size(), k_most_pairs); ++i) {
    const Members one(&(*pairs)[i]);
    const std::optional<uint32_t> from = one.number("from"), to = one.number("to");
    if (!from || !to) continue;
    out.pairs.push_back(
        {*from, *to, one.measured("bytes_per_second").value_or(0), one.text("wrong")});
  }
}

void read_left(const Members& part, std::vector<std::string>& problems) {
  const Json* left = part.find("left");
  if (left == nullptr || !left->is_array()) return;
  for (size_t i = 0; i < std::min<size_t>(left->size(), 64); ++i)
    if ((*left)[i].is_number_unsigned()) problems.push_back(std::to_string((*left)[i].natural()));
}

}  // namespace

Result<TogetherFacts> parse_together_answer(std::string_view printed, const std::string& tried,
                                            std::vector<std::string>& left) {
  constexpr std::string_view k_mark = "\ncufit: ";
  const size_t at = printed.rfind(k_mark);
  if (at == std::string_view::npos) return fail(Code::malformed, "it gave no answer");
  std::string_view line = printed.substr(at + k_mark.size());
  line = line.substr(0, line.find('\n'));
  const std::optional<Json> json = Json::parse(line);
  if (!json || !json->is_object()) return fail(Code::malformed, "its answer is no JSON object");
  const Members all(&*json);
  const Members sum(all.find("sum")), copies(all.find("copies"));
  TogetherFacts out;
  const std::optional<std::string> summed = outcome_of(sum);
  if (!summed) return fail(Code::malformed, "its answer says nothing of the sum");
  put(out.sum, summed, tried);
  out.ranks = all.number("ranks").value_or(0);
  out.torch = sum.text("torch"), out.nccl = sum.text("version");
  out.said = sum.text("said"), out.warning = sum.text("warning");
  if (const Json* via = sum.find("via"); via != nullptr && via->is_array())
    for (size_t i = 0; i < std::min(via->size(), k_most_ways); ++i)
      out.via.push_back(formats::printable((*via)[i].text(), 64));
  put(out.sum_bytes, sum.bytes("bytes"), tried);
  put(out.bus_bytes_per_second, sum.measured("bus_bytes_per_second"), tried);
  put(out.small_seconds, sum.measured("small_seconds"), tried);
  put(out.copies, outcome_of(copies), tried);
  out.copies_said = copies.text("said");
  if (out.warning.empty()) out.warning = copies.text("warning");
  put(out.copy_bytes, copies.bytes("bytes"), tried);
  read_pairs(copies, out);
  read_left(sum, left);
  read_left(copies, left);
  return out;
}

}  // namespace cufit::facts
