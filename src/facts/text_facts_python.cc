// SPDX-License-Identifier: Apache-2.0
// The Python environment of a pasted text: its torch, its packages, and what torch says of itself.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "formats/prose/text_words.h"
#include "facts/text_claims.h"

namespace cufit::facts {
namespace {

using formats::PackageEntry;
using formats::PackageKind;

constexpr const char* k_text_facts_python_claimed = "(claimed)";

std::string with_dashes(std::string_view name) {
  std::string out = lower(name);
  for (char& c : out)
    if (c == '_' || c == '.') c = '-';
  return out;
}

class PythonClaims {
 public:
  PythonClaims(const TextParts& parts, const TextSource& source, Facts& facts)
      : parts_(parts), source_(source), facts_(facts) {}

  void read() {
    if (facts_.envs.empty()) {
      env_.path = k_text_facts_python_claimed;
      env_.kind = "claimed";
      env_.active = true;
      env_.found_by = "claimed";
      env_.installer = "pip";
      env_.interpreter = source_.unsaid<std::string>();
    } else {
      env_ = std::move(facts_.envs.front());
    }
    for (const PackageEntry& entry : parts_.packages.entries)
      by_name_[name_of(entry)].push_back(&entry);
    python();
    interpreter();
    torch_version();
    torch_cuda();
    torch_runs();
    device_code();
    packages();
    bool speaks = env_.python || env_.interpreter || env_.torch.version || env_.torch.cuda ||
                  env_.torch_run || !env_.binaries.empty() ||
                  (env_.distributions && !env_.distributions->empty()) ||
                  env_.torch.version.why != WhyNot::not_asked;
    if (facts_.envs.empty() && !speaks) return;
    facts_.envs.assign(1, std::move(env_));
  }

 private:
  static std::string name_of(const PackageEntry& entry) {
    std::string name = with_dashes(entry.name);
    return name == "pytorch" || name == "libtorch" ? "torch" : name;
  }

  // What the text says of one package, weighed. An installer's report or a removal ends what was
  // before it.
  std::vector<Claim> claims_of(const std::string& name, const PackageEntry** last = nullptr) const {
    std::vector<Claim> claims;
    auto found = by_name_.find(name);
    if (found == by_name_.end()) return claims;
    for (const PackageEntry* entry : found->second) {
      if (entry->kind == PackageKind::removed || entry->step) {
        claims.erase(
            std::remove_if(claims.begin(), claims.end(),
                           [](const Claim& claim) { return claim.weight == Weight::tool; }),
            claims.end());
      }
      if (entry->version.empty() || entry->kind == PackageKind::removed || entry->failed) continue;
      Weight weight = entry->kind == PackageKind::installed   ? Weight::tool
                      : entry->kind == PackageKind::mentioned ? Weight::prose
                                                              : Weight::passing;
      claims.push_back({entry->version, entry->line, weight});
      if (last) *last = entry;
    }
    return claims;
  }

  void python() {
    std::vector<Claim> claims = claims_of("python");
    source_.add(env_.python, Weight::tool, claims);
    for (const formats::MachineMention& word : parts_.words.mentions)
      if (word.what == formats::MachineWord::python)
        claims.push_back({word.value, word.line, word.weak ? Weight::passing : Weight::prose});
    env_.python = source_.settle(claims);
  }

  // The environment of the traceback. Its path stays "(claimed)": nothing of it was looked at.
  void interpreter() {
    if (!parts_.python || env_.interpreter) return;
    const formats::PythonPlace& place = *parts_.python;
    env_.interpreter = source_.claim(place.interpreter, place.line);
    if (!place.minor.empty() && !env_.python && env_.python.why == WhyNot::not_asked)
      env_.python = source_.claim(place.minor, place.line);
    if (!place.installer.empty()) env_.installer = place.installer;
  }

  bool torch_is_absent() const {
    auto found = by_name_.find("torch");
    if (found == by_name_.end()) return false;
    bool removed = false;
    for (const PackageEntry* entry : found->second) {
      if (entry->kind == PackageKind::removed) removed = true;
      if (entry->kind == PackageKind::installed) removed = false;
    }
    return removed;
  }

  void torch_version() {
    std::vector<Claim> claims = claims_of("torch");
    if (torch_is_absent()) claims.clear();
    source_.add(env_.torch.version, Weight::tool, claims);
    for (const formats::TorchValue& said : parts_.torch.torch_version)
      claims.push_back({said.value, said.line, Weight::own});
    for (const formats::MachineMention& word : parts_.words.mentions)
      if (word.what == formats::MachineWord::image) image(word, claims);
    env_.torch.version = source_.settle(claims);
    if (!env_.torch.version) return;
    const std::string& version = *env_.torch.version;
    size_t plus = version.find('+');
    env_.torch.variant = plus == std::string::npos ? "" : version.substr(plus + 1);
    if (contains(env_.torch.variant, ".")) env_.torch.variant.clear();  // "+41361538.nv23.06"
  }
  // "pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel"
  static void image(const formats::MachineMention& word, std::vector<Claim>& claims) {
    size_t tag = word.value.find("/pytorch:");
    if (tag == std::string::npos || contains(word.value, "nvcr.io")) return;  // there, the month
    std::string_view version =
        formats::python_version_at(std::string_view(word.value).substr(tag + 9));
    if (formats::has_inner_dot(version))
      claims.push_back({std::string(version), word.line, Weight::passing});
  }

  void torch_cuda() {
    std::vector<Claim> claims;
    source_.add(env_.torch.cuda, Weight::own, claims);
    bool none = env_.torch.cuda.why == WhyNot::not_present;
    Source none_at = env_.torch.cuda.source;
    for (const formats::TorchValue& said : parts_.torch.torch_cuda) {
      if (said.value == "None")
        none = true, none_at = {SourceKind::claimed, source_.at(said.line)};
      else
        claims.push_back({said.value, said.line, Weight::own});
    }
    for (const formats::TorchValue& said : parts_.torch.without_cuda)
      none = true, none_at = {SourceKind::claimed, source_.at(said.line)};
    if (claims.empty() && !none && env_.torch.version) {
      if (std::string cuda = cuda_of_variant(env_.torch.variant); !cuda.empty())
        env_.torch.cuda =
            known<std::string>(cuda, SourceKind::claimed, env_.torch.version.source.detail);
      else if (env_.torch.variant == "cpu")
        none = true, none_at = env_.torch.version.source;
      else
        conda_build(none, none_at);
    }
    if (!claims.empty()) env_.torch.cuda = source_.settle(claims);
    if (none && claims.empty() && !env_.torch.cuda) {
      env_.torch.cuda =
          missing<std::string>(WhyNot::not_present, SourceKind::claimed, none_at.detail,
                               "the text says that torch was built without CUDA");
    }
    if (!env_.torch.cuda && env_.torch.cuda.source.detail.empty())
      env_.torch.cuda = source_.unsaid<std::string>();
  }
  static std::string cuda_of_variant(const std::string& variant) {  // "cu121" -> "12.1"
    if (!starts_with(variant, "cu") || variant.size() < 4 || variant.size() > 5) return {};
    std::string digits = variant.substr(2);
    if (digits.find_first_not_of("0123456789") != std::string::npos) return {};
    return digits.substr(0, digits.size() - 1) + "." + digits.substr(digits.size() - 1);
  }
  // "py3.8_cuda11.3_cudnn8.2.0_0", "py3.8_cpu_0"
  void conda_build(bool& none, Source& none_at) {
    const PackageEntry* entry = nullptr;
    claims_of("torch", &entry);
    if (!entry || entry->build.empty() || entry->version != *env_.torch.version) return;
    env_.installer = "conda";
    size_t at = entry->build.find("cuda");
    std::string_view number =
        at == std::string::npos
            ? std::string_view()
            : formats::dotted_number_at(std::string_view(entry->build).substr(at + 4));
    if (formats::has_inner_dot(number) && number[0] != '0') {
      env_.torch.cuda = source_.claim<std::string>(std::string(number), entry->line);
    } else if (contains(entry->build, "_cpu")) {
      none = true, none_at = {SourceKind::claimed, source_.at(entry->line)};
      env_.torch.variant = "cpu";
    }
  }

  void torch_runs() {
    const formats::TorchValue *yes = nullptr, *no = nullptr;
    for (const formats::TorchValue& said : parts_.torch.cuda_available)
      (said.value == "True" ? yes : no) = &said;
    if (yes && no) {
      env_.torch_run = source_.contradicted<std::string>({"True", yes->line}, {"False", no->line});
      return;
    }
    if (no)
      env_.torch_run = source_.claim<std::string>("torch.cuda.is_available() is False", no->line);
    if (yes && !facts_.cuda.init_result) facts_.cuda.init_result = source_.claim<int>(0, yes->line);
  }

  // The list of torch's warning, or of get_arch_list(), is the device code of its main library.
  void device_code() {
    const formats::TorchArchs* list = nullptr;
    for (const formats::TorchArchs& said : parts_.torch.archs) {
      if (list && (list->sm != said.sm || list->ptx != said.ptx)) return;
      list = &said;
    }
    if (!list) return;
    Binary binary;
    binary.path = "torch/lib/libtorch_cuda.so";
    binary.package = "torch";
    for (const std::string& arch : list->sm)
      binary.device_code.push_back({formats::CodeKind::cubin, arch, "", 1, true});
    for (const std::string& arch : list->ptx)
      binary.device_code.push_back({formats::CodeKind::ptx, arch, "", 1, true});
    env_.binaries.push_back(std::move(binary));
  }

  // Of a package that the text gives two versions, none is taken: which one is there is not known.
  void packages() {
    std::vector<Distribution> all;
    if (env_.distributions) all = std::move(*env_.distributions.value);
    uint64_t first = 0;
    for (const auto& listed : by_name_) {
      const std::string& name = listed.first;  // clang 14 captures no structured binding
      if (name == "python" || name == "cuda" ||
          std::any_of(all.begin(), all.end(), [&](const Distribution& seen) {
            return seen.name == name || (name == "torch" && seen.name == "pytorch");
          }))
        continue;
      const PackageEntry* last = nullptr;
      std::vector<Claim> claims = claims_of(name, &last);
      claims.erase(
          std::remove_if(claims.begin(), claims.end(),
                         [](const Claim& claim) { return claim.weight == Weight::passing; }),
          claims.end());
      Fact<std::string> version = source_.settle(claims);
      if (name == "torch" && env_.torch.version && version) version = env_.torch.version;
      if (!version || (name == "torch" && torch_is_absent())) continue;
      Distribution out;
      out.name = last->conda && name == "torch" ? "pytorch" : name;
      if (last->name != out.name) out.display_name = last->name;
      out.version = *version;
      out.location = version.source.detail;
      out.kind = last->conda ? "conda-meta" : "dist-info";
      out.installer = last->conda ? "conda" : "pip";
      out.tag = last->build;
      if (out.name == "pytorch") env_.installer = "conda";
      if (first == 0) first = last->line;
      all.push_back(std::move(out));
    }
    if (all.empty()) {
      if (!env_.distributions)
        env_.distributions = source_.unsaid<std::vector<Distribution>>();
      else
        env_.distributions.value = std::vector<Distribution>();
      return;
    }
    std::sort(all.begin(), all.end(),
              [](const Distribution& a, const Distribution& b) { return a.name < b.name; });
    Source from = env_.distributions.source;
    env_.distributions = known(std::move(all), SourceKind::claimed,
                               from.detail.empty() ? source_.at(first) : from.detail);
  }

  const TextParts& parts_;
  const TextSource& source_;
  Facts& facts_;
  PythonEnv env_;
  std::map<std::string, std::vector<const PackageEntry*>> by_name_;
};

}  // namespace

void read_text_python(const TextParts& parts, const TextSource& source, Facts& facts) {
  PythonClaims(parts, source, facts).read();
}

}  // namespace cufit::facts
