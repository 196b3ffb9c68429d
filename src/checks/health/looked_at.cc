// SPDX-License-Identifier: Apache-2.0
#include "checks/health/looked_at.h"

#include <algorithm>

#include "checks/fact_view.h"

namespace cufit::checks {
namespace {

template <class T>
bool asked(const Fact<T>& fact) {
  return fact || (!failed(fact) && fact.why != WhyNot::not_asked);
}

class Looks {
 public:
  Looks(const Input& input, const std::vector<uint32_t>& gpus) : input_(input), gpus_(gpus) {}

  bool at(std::string_view rule) const {
    const facts::Facts& facts = input_.facts;
    if (rule == "driver") return asked(facts.kernel.version);
    if (rule == "driver_version") return facts.kernel.version || facts.nvml.driver_version;
    if (rule == "answers") return asked(facts.nvml.init_result) || asked(facts.nvml.library);
    if (rule == "gpu_count") return facts.nvml.gpu_count || !facts.nvml.gpus.empty();
    if (rule == "cdi") return !facts.engine.cdi_specs.empty() || asked(facts.engine.cdi_driver);
    if (rule == "shm_free") return asked(facts.system.shm_free_bytes);
    if (rule == "memlock") return asked(facts.system.memlock_bytes);
    // The driver's own word on what has to be done is an answer, too.
    if (rule == "xid")
      return facts.kernel.log || !facts.kernel.xids.empty() ||
             each(&facts::NvmlGpu::recovery_action);
    return of_gpus(rule);
  }

 private:
  bool of_gpus(std::string_view rule) const {
    using Gpu = facts::NvmlGpu;
    if (rule == "gpu_state") return any_gpu();
    if (rule == "recovery") return each(&Gpu::recovery_action);
    if (rule == "memory_errors") return each(&Gpu::ecc_uncorrected_volatile);
    if (rule == "remap_failed") return each(&Gpu::remap_failed);
    if (rule == "remap_pending") return each(&Gpu::remap_pending);
    if (rule == "fabric") return each(&Gpu::fabric_state);
    if (rule == "nvlink") return each(&Gpu::nvlinks_active);
    if (rule == "link_width") return each(&Gpu::pcie_width);
    if (rule == "throttle") return each(&Gpu::throttle);
    if (rule == "clocks") return each(&Gpu::clock_application_mhz);
    if (rule == "ecc") return each(&Gpu::ecc_current);
    if (rule == "mig") return each(&Gpu::mig_current);
    if (rule == "persistence") return each(&Gpu::persistence);
    return true;
  }

  bool is_judged(const GpuView& gpu) const {
    return gpu.nvml != nullptr &&
           (gpus_.empty() || std::find(gpus_.begin(), gpus_.end(), gpu.index) != gpus_.end());
  }
  bool any_gpu() const {
    return std::any_of(input_.gpus.begin(), input_.gpus.end(),
                       [&](const GpuView& gpu) { return is_judged(gpu); });
  }
  template <class T>
  bool each(Fact<T> facts::NvmlGpu::*member) const {
    return any_gpu() && std::all_of(input_.gpus.begin(), input_.gpus.end(), [&](const GpuView& gpu) {
             return !is_judged(gpu) || asked(gpu.nvml->*member);
           });
  }

  const Input& input_;
  const std::vector<uint32_t>& gpus_;
};

}  // namespace

bool was_looked_at(std::string_view rule, const Input& input, const std::vector<uint32_t>& gpus) {
  return Looks(input, gpus).at(rule);
}

}  // namespace cufit::checks
