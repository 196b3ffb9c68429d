// SPDX-License-Identifier: Apache-2.0
#include "commands/run/vram_variables.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"

namespace cufit::commands {
namespace {

constexpr const char* k_torch_old = "PYTORCH_CUDA_ALLOC_CONF";
constexpr const char* k_torch_new = "PYTORCH_ALLOC_CONF";
constexpr const char* k_fraction = "per_process_memory_fraction";

void append_setting(Variables& variables, const std::string& setting) {
  // torch reads PYTORCH_ALLOC_CONF first, and the other one only where it is not set.
  const char* const name =
      variable_value(variables, k_torch_new).empty() ? k_torch_old : k_torch_new;
  std::string value = variable_value(variables, name);
  if (!value.empty() && value.back() != ',') value += ',';
  set_variable(variables, name, value + setting);
}

}  // namespace

void set_variable(Variables& variables, const std::string& name, const std::string& value) {
  variables.erase(
      std::remove_if(variables.begin(), variables.end(),
                     [&](const std::string& each) { return starts_with(each, name + "="); }),
      variables.end());
  variables.push_back(name + "=" + value);
}

std::string preload_with(const std::string& guard, const std::string& before) {
  std::string out = guard;
  std::string_view rest = before;
  while (!rest.empty()) {
    const size_t end = rest.find_first_of(" :");
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!entry.empty() && !starts_with(file_name(entry), "libcufit-guard"))
      out += ":" + std::string(entry);
  }
  return out;
}

bool has_torch_fraction(const Variables& variables) {
  for (const char* name : {k_torch_old, k_torch_new})
    if (contains(variable_value(variables, name), k_fraction)) return true;
  return false;
}

bool set_torch_fraction(Variables& variables, double fraction) {
  constexpr uint64_t k_parts = 1'000'000;
  const uint64_t parts = std::min<uint64_t>(k_parts - 1, static_cast<uint64_t>(fraction * k_parts));
  if (parts == 0) return false;
  append_setting(variables, format("{}:0.{:06d}", k_fraction, parts));
  return true;
}

void add_torch_setting(Variables& variables, const std::string& name, const std::string& value) {
  for (const char* each : {k_torch_old, k_torch_new}) {
    const std::string there = variable_value(variables, each);
    if (contains(there, name) || contains(there, "backend:")) return;
  }
  append_setting(variables, name + ":" + value);
}

std::string mps_limits(const std::vector<uint64_t>& limits) {
  std::vector<std::string> out;
  for (size_t i = 0; i < limits.size(); ++i)
    if (limits[i] != UINT64_MAX) out.push_back(format("{}={}M", i, limits[i] >> 20));
  return join(out, ",");
}

std::string visible_by_uuid(const std::vector<resolve::QuotaCard>& cards) {
  std::vector<std::string> out;
  for (const resolve::QuotaCard& card : cards) {
    if (card.uuid.empty()) return {};
    out.push_back(card.uuid);
  }
  return join(out, ",");
}

}  // namespace cufit::commands
