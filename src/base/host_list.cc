// SPDX-License-Identifier: Apache-2.0
#include "base/host_list.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/number.h"

namespace cufit {
namespace {

constexpr size_t k_most_hosts = 65536;

Error bad_part(std::string_view part) {
  return fail(Code::usage, format("`{}` is no list of hosts, as \"gpu[001-004],login1\"", part));
}

// "001-004,7" of the brackets, each as its digits.
Result<std::vector<std::string>> expand_numbers(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const std::string_view first = part.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
    const std::optional<uint64_t> from = parse_uint(first), to = parse_uint(last);
    if (!from || !to || *to < *from || *to - *from >= k_most_hosts - out.size() ||
        first.size() > 18)
      return bad_part(part);
    for (uint64_t number = *from; number <= *to; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      out.push_back(std::move(digits));
    }
  }
  return out;
}

// One name; each pair of brackets multiplies what stands before it.
Result<void> expand_name(std::string_view name, std::vector<std::string>& out) {
  if (name.empty()) return bad_part(name);
  std::vector<std::string> all = {""};
  for (std::string_view rest = name; !rest.empty();) {
    const size_t open = rest.find('['), close = rest.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) {
      for (std::string& one : all) one += rest;
      break;
    }
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      return bad_part(name);
    CUFIT_TRY(numbers, expand_numbers(rest.substr(open + 1, close - open - 1)));
    if (all.size() * numbers.size() + out.size() > k_most_hosts) return bad_part(name);
    std::vector<std::string> longer;
    for (const std::string& one : all)
      for (const std::string& number : numbers)
        longer.push_back(one + std::string(rest.substr(0, open)) + number);
    all = std::move(longer);
    rest = rest.substr(close + 1);
  }
  if (all.size() + out.size() > k_most_hosts) return bad_part(name);
  out.insert(out.end(), all.begin(), all.end());
  return {};
}

struct Numbered {
  std::string before, digits, after;  // digits: the last run of them; empty = none
};

Numbered numbered(const std::string& name) {
  const size_t last = name.find_last_of("0123456789");
  if (last == std::string::npos) return {name, "", ""};
  size_t first = last;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  if (last - first >= 18) return {name, "", ""};
  return {name.substr(0, first), name.substr(first, last + 1 - first), name.substr(last + 1)};
}

// Padded with zeros names have one width: gpu08, gpu09, gpu10. Others grow: gpu8, gpu9, gpu10, and
// "gpu[8-10]" means these. Of a name that may be either (gpu10) the first of its run decides.
bool is_padded(const Numbered& name) { return name.digits.size() > 1 && name.digits[0] == '0'; }

bool go_together(const Numbered& first, const Numbered& next) {
  if (first.digits.empty() || next.before != first.before || next.after != first.after)
    return false;
  if (next.digits.size() == first.digits.size()) return true;
  return !is_padded(first) && !is_padded(next);
}

// By what stands before the number, the number itself, what stands behind.
bool comes_before(const Numbered& a, const Numbered& b) {
  if (a.before != b.before) return a.before < b.before;
  if (a.after != b.after) return a.after < b.after;
  if (is_padded(a) != is_padded(b)) return is_padded(a);
  const uint64_t left = parse_uint(a.digits).value_or(0), right = parse_uint(b.digits).value_or(0);
  return left != right ? left < right : a.digits < b.digits;
}

// Ascending numbers.
std::string ranges(const std::vector<Numbered>& run) {
  std::string out;
  for (size_t i = 0; i < run.size();) {
    size_t last = i;
    while (last + 1 < run.size() &&
           *parse_uint(run[last + 1].digits) == *parse_uint(run[last].digits) + 1)
      ++last;
    out += (out.empty() ? "" : ",") + run[i].digits;
    if (last > i) out += "-" + run[last].digits;
    i = last + 1;
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view text) {
  std::vector<std::string> out;
  size_t start = 0;
  int depth = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '[') ++depth;
    if (at < text.size() && text[at] == ']') --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    const std::string_view name = trim(text.substr(start, at - start));
    if (Result<void> done = expand_name(name, out); !done) return done.error();
    if (out.size() > k_most_hosts) return bad_part(name);
    start = at + 1;
  }
  return out;
}

std::string host_list(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Numbered> all;
  for (const std::string& name : names) all.push_back(numbered(name));
  std::stable_sort(all.begin(), all.end(), comes_before);
  std::string out;
  for (size_t i = 0; i < all.size();) {
    const Numbered& first = all[i];
    std::vector<Numbered> run = {first};
    while (i + run.size() < all.size() && go_together(run.back(), all[i + run.size()]))
      run.push_back(all[i + run.size()]);
    out += out.empty() ? "" : ",";
    out += first.before;
    out += run.size() == 1 ? first.digits : "[" + ranges(run) + "]";
    out += first.after;
    i += run.size();
  }
  return out;
}

}  // namespace cufit
