// SPDX-License-Identifier: Apache-2.0
// Trials of a quota: programs under the guard that ask the driver for memory in one way each, once below and once above
// the limit (guard/probe/probe.c says what they print). The domain is one of its own in a private folder, or the one that this
// process is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/quota_trial.h"
#include "formats/system/quota_domain.h"
#include "host/files/host.h"
#include "host/process/child_process.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::host {

// The probe's program, as bytes; made when cufit is built.
std::string_view quota_probe();

// A GPU or MIG instance as a process here sees it; empty: the driver does not say.
struct TrialGpu {
  uint32_t ordinal = 0;  // CUDA's
  std::string uuid;      // "00000000-1111-2222-3333-444444444440", without "GPU-" or "MIG-"
  std::string pci;       // "0000:65:00.0"
  std::string name;
};
struct TrialGpus {
  facts::TrialAnswer answer;  // phase "done", or how far it came
  std::vector<TrialGpu> gpus;
};

class QuotaTrial {
 public:
  // A domain of its own: `limit` for every GPU. Error{io}: the folder cannot be filled.
  static Result<QuotaTrial> make(uint64_t limit_bytes, uint64_t context_bytes);
  // The domain of CUFIT_DOMAIN, in which this process runs. Error: it cannot be read.
  static Result<QuotaTrial> here(const Host& host);

  const std::string& path() const { return domain_; }
  // What the domain says now.
  Result<formats::QuotaDomain> domain() const;

  // The GPUs that CUDA shows.
  TrialGpus gpus(Interrupts& interrupts) const;
  facts::TrialAnswer ask(const std::string& way, const std::string& route, uint32_t gpu,
                         facts::TrialSizes sizes, Interrupts& interrupts) const;
  // The same by torch, with these allocator settings.
  facts::TrialAnswer ask_torch(const std::string& python, const std::string& settings, uint32_t gpu,
                               facts::TrialSizes sizes, Interrupts& interrupts) const;
  // A program of the user's under the quota; its exit code. Its output goes to stderr.
  Result<int> run(const std::vector<std::string>& command, Interrupts& interrupts) const;

 private:
  QuotaTrial(ScriptFolder folder, std::string domain, bool own)
      : folder_(std::move(folder)), domain_(std::move(domain)), own_(own) {}
  facts::TrialAnswer answer(ChildOptions child, Interrupts& interrupts, std::string* said) const;
  void add_variables(ChildOptions& child) const;

  ScriptFolder folder_;
  std::string domain_;
  bool own_ = true;
};

}  // namespace cufit::host
