// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/policy.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "base/nearest.h"
#include "formats/python/requirement.h"
#include "formats/toml_text.h"

namespace cufit::resolve {
namespace {

using knowledge::Knowledge;

struct ListKey {
  const char* name;
  std::vector<std::string> Policy::*list;
  bool versions;  // entries are PEP 440 specifiers
};
constexpr ListKey k_lists[] = {
    {"torch", &Policy::torch, true},
    {"torch_denied", &Policy::torch_denied, true},
    {"cuda", &Policy::cuda, false},
    {"cuda_denied", &Policy::cuda_denied, false},
    {"python", &Policy::python, true},
    {"gpus", &Policy::gpus, false},
    {"gpus_denied", &Policy::gpus_denied, false},
    {"owners", &Policy::owners, false},
};

bool contains_word(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// "12.6" would name no wheel: a rule that forbids it would forbid nothing. Numbers that no table
// has may come to be.
bool is_variant(const std::string& entry) {
  if (entry == "cpu") return true;
  return entry.size() > 3 && starts_with(entry, "cu") &&
         entry.find_first_not_of("0123456789", 2) == std::string::npos;
}

// "2.9.1" alone means "==2.9.1".
std::vector<formats::VersionClause> clauses_of(const std::string& entry) {
  const bool bare = !entry.empty() && entry[0] >= '0' && entry[0] <= '9';
  auto clauses = formats::parse_clauses(bare ? "==" + entry : entry);
  return clauses ? *clauses : std::vector<formats::VersionClause>();
}

// A white list may name versions: any one of them will do. Everything else in it has to hold.
bool is_version(const std::string& entry) {
  return (!entry.empty() && entry[0] >= '0' && entry[0] <= '9') ||
         (starts_with(entry, "==") && !contains(entry, ","));
}

// What of a white list stands against it: each as it is to be shown.
std::vector<std::string> unmet_entries(const std::vector<std::string>& list,
                                       const std::function<bool(const std::string&)>& holds) {
  std::vector<std::string> out, versions;
  bool any = false;
  for (const std::string& entry : list) {
    const bool good = holds(entry);
    if (is_version(entry)) {
      versions.push_back(entry);
      any = any || good;
    } else if (!good) {
      out.push_back(entry);
    }
  }
  if (!versions.empty() && !any) out.push_back(join(versions, ", "));
  return out;
}

// `python` is a minor ("3.11", "3.13t"), which a patch release of it may satisfy, or a whole
// version, which then counts where a clause goes as far as that.
bool holds_for_python(const std::string& entry, std::string python) {
  if (!python.empty() && python.back() == 't') python.pop_back();
  const std::vector<formats::VersionClause> clauses = clauses_of(entry);
  const auto parts = [](const std::string& version) {
    const auto parsed = formats::parse_python_version(version);
    return parsed ? parsed->release.size() : 0;
  };
  if (parts(python) < 3) return formats::some_patch_satisfies(clauses, python);
  const std::string minor = python.substr(0, python.find('.', python.find('.') + 1));
  return std::all_of(clauses.begin(), clauses.end(), [&](const formats::VersionClause& clause) {
    return parts(clause.version) >= 3 ? formats::satisfies({clause}, python)
                                      : formats::some_patch_satisfies({clause}, minor);
  });
}

Reason forbidden(const Policy& policy, const char* rule, std::string value, std::string entry) {
  return {"policy",
          {{"file", policy.file},
           {"rule", rule},
           {"value", std::move(value)},
           {"entry", std::move(entry)}}};
}

// "8.0" and "sm_80".
std::optional<ComputeCapability> capability_of(const std::string& entry) {
  if (!starts_with(lower(entry), "sm_")) return parse_compute_capability(entry);
  const std::string digits = entry.substr(3);
  if (digits.size() < 2 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
  return parse_compute_capability(digits.substr(0, digits.size() - 1) + "." + digits.back());
}

// "80" would mean each card of 80 GB, "8" and "a" nearly all cards: no name of a GPU ("4090" is
// one).
bool says_too_little(const std::string& entry) {
  return entry.size() < 2 ||
         (entry.size() == 2 && entry.find_first_not_of("0123456789") == std::string::npos);
}

// "A800", "NVIDIA A800 80GB PCIe", "8.0" and "sm_80" name a GPU; the last two all of that
// capability.
bool names_gpu(const std::string& entry, const TargetGpu& gpu, const Knowledge& knowledge) {
  if (const auto cc = capability_of(entry)) return *cc == gpu.cc;
  const std::string have = lower(gpu.name), want = lower(entry);
  if (!want.empty() && have.find(want) != std::string::npos) {
    // "rtx 4090" must not name "RTX 4090 D": the word has to end there or be one the table knows.
    const knowledge::Gpu* row = knowledge.find_gpu(entry);
    return row == nullptr || knowledge.find_gpu(gpu.name) == row;
  }
  const knowledge::Gpu* row = knowledge.find_gpu(entry);
  return row != nullptr && knowledge.find_gpu(gpu.name) == row;
}

// A slip in a heading, or a rule before the heading: it would forbid nothing, and nobody would see.
bool meant_for_policy(const std::string& name) {
  if (name == "policy") return false;
  return name == "driver_min" || !nearest(name, {"policy"}, 1).empty() ||
         std::any_of(std::begin(k_lists), std::end(k_lists),
                     [&](const ListKey& row) { return row.name == name; });
}

std::string joined(const std::vector<std::string>& list) { return join(list, ", "); }

}  // namespace

Result<Policy> parse_policy(std::string_view text, const std::string& file) {
  Policy policy;
  policy.file = file;
  CUFIT_TRY(document, formats::parse_toml(text, file));
  const formats::TomlValue* table = document.find("policy");
  // A slip in the heading would forbid nothing, and nobody would see it.
  // It sets a mirror, or says what a healthy node is.
  if (table == nullptr && (document.find("index") != nullptr || document.find("health") != nullptr))
    return Policy();
  if (table == nullptr)
    return fail(Code::malformed,
                format("`{}` has no `[policy]` table: nothing in it would be obeyed", file));
  if (!table->is_table()) return document.wrong(*table, "`policy` must be a table");
  for (const formats::TomlMember& member : document.root.members)
    if (meant_for_policy(member.name))
      return document.wrong(
          member.value,
          format("`{}` stands outside of `[policy]`: it would not be obeyed", member.name));
  for (const formats::TomlMember& member : table->members) {
    const std::string& key = member.name;
    const formats::TomlValue& value = member.value;
    if (key == "driver_min") {
      if (!value.is_text() || !parse_version(value.text))
        return document.wrong(value, "`driver_min` must be a driver version, as \"535.104\"");
      policy.driver_min = value.text;
      continue;
    }
    const auto* known = std::find_if(std::begin(k_lists), std::end(k_lists),
                                     [&](const ListKey& row) { return row.name == key; });
    if (known == std::end(k_lists))
      return document.wrong(value, format("`policy.{}` is not a rule that cufit knows", key));
    if (!value.is_texts())
      return document.wrong(value, format("`policy.{}` must be a list of texts", key));
    for (const formats::TomlValue& item : value.items) {
      if (known->versions && clauses_of(item.text).empty())
        return document.wrong(item, format("`{}` is not a version specifier", item.text));
      if (starts_with(key, "cuda") && !is_variant(item.text))
        return document.wrong(
            item, format("`{}` is not a CUDA variant, as \"cu126\" or \"cpu\"", item.text));
      if (starts_with(key, "gpus") && says_too_little(item.text))
        return document.wrong(
            item, format("`{}` names no GPU; its name is written as \"A800\", its compute "
                         "capability as \"8.0\"",
                         item.text));
      (policy.*(known->list)).push_back(item.text);
    }
  }
  return policy;
}

std::vector<Reason> forbids(const Policy& policy, const Wheel& wheel) {
  std::vector<Reason> found;
  for (const std::string& entry : unmet_entries(policy.torch, [&](const std::string& one) {
         return formats::satisfies(clauses_of(one), wheel.torch);
       }))
    found.push_back(forbidden(policy, "torch", wheel.torch, entry));
  for (const std::string& entry : policy.torch_denied)
    if (formats::satisfies(clauses_of(entry), wheel.torch))
      found.push_back(forbidden(policy, "torch_denied", wheel.torch, entry));
  if (!policy.cuda.empty() && !contains_word(policy.cuda, wheel.tag))
    found.push_back(forbidden(policy, "cuda", wheel.tag, joined(policy.cuda)));
  if (contains_word(policy.cuda_denied, wheel.tag))
    found.push_back(forbidden(policy, "cuda_denied", wheel.tag, wheel.tag));
  return found;
}

std::vector<Reason> forbids(const Policy& policy, const Target& target,
                            const Knowledge& knowledge) {
  std::vector<Reason> found;
  const auto need = parse_version(policy.driver_min);
  if (need && target.driver && !checks::at_least(*target.driver, *need))
    found.push_back(
        forbidden(policy, "driver_min", driver_text(*target.driver), policy.driver_min));
  for (const TargetGpu& gpu : target.gpus) {
    const auto named = [&](const std::string& entry) { return names_gpu(entry, gpu, knowledge); };
    if (!policy.gpus.empty() && std::none_of(policy.gpus.begin(), policy.gpus.end(), named))
      found.push_back(forbidden(policy, "gpus", gpu.name, joined(policy.gpus)));
    for (const std::string& entry : policy.gpus_denied)
      if (named(entry)) found.push_back(forbidden(policy, "gpus_denied", gpu.name, entry));
  }
  return found;
}

std::vector<std::string> unknown_gpus(const Policy& policy, const Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const auto* list : {&policy.gpus, &policy.gpus_denied})
    for (const std::string& entry : *list) {
      if (capability_of(entry) || knowledge.find_gpu(entry) != nullptr) continue;
      const std::string want = lower(entry);
      const bool part =
          !want.empty() &&
          std::any_of(knowledge.gpus.begin(), knowledge.gpus.end(), [&](const knowledge::Gpu& gpu) {
            return contains(lower(std::string(gpu.name)), want);
          });
      if (!part) out.push_back(entry);
    }
  return out;
}

std::vector<Reason> forbids_owner(const Policy& policy, const std::string& package,
                                  const std::string& owner) {
  if (policy.owners.empty() || owner.empty() || contains_word(policy.owners, owner)) return {};
  Reason reason = forbidden(policy, "owners", owner, joined(policy.owners));
  reason.args["package"] = package;
  return {reason};
}

std::vector<Reason> forbids_python(const Policy& policy, const std::string& python) {
  std::vector<Reason> found;
  for (const std::string& entry : unmet_entries(
           policy.python, [&](const std::string& one) { return holds_for_python(one, python); }))
    found.push_back(forbidden(policy, "python", python, entry));
  return found;
}

}  // namespace cufit::resolve
