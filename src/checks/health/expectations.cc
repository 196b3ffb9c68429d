// SPDX-License-Identifier: Apache-2.0
#include "checks/health/expectations.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "formats/python/requirement.h"

namespace cufit::checks {
namespace {

using facts::NvmlGpu;

class Expectations {
 public:
  Expectations(const Input& input, const HealthRules& rules) : input_(input), rules_(rules) {}

  std::vector<RuleFinding> all() {
    gpu_count();
    driver_version();
    container_spec();
    host_memory();
    for (const GpuView& gpu : input_.gpus) {
      if (gpu.nvml == nullptr) continue;
      recovery(gpu, *gpu.nvml);
      fabric(gpu, *gpu.nvml);
      modes(gpu, *gpu.nvml);
      links(gpu, *gpu.nvml);
      clocks(gpu, *gpu.nvml);
    }
    return std::move(out_);
  }

 private:
  Finding& add(const char* rule, Finding made) {
    out_.push_back({rule, std::move(made), {}});
    return out_.back().finding;
  }
  Finding& about_gpu(const char* rule, const char* id, const GpuView& gpu) {
    Finding made = finding(id, Severity::error, subject_of(gpu));
    made.args["gpu"] = in_sentence(gpu);
    made.args["index"] = std::to_string(gpu.index);
    return add(rule, std::move(made));
  }
  // A rule that was asked for and whose fact is missing.
  template <class T>
  bool unknown(const char* rule, const char* id, const std::string& subject, const Fact<T>& fact) {
    if (fact) return false;
    Finding made = cannot_tell(id, subject,
                               fact.why == WhyNot::not_asked
                                   ? format("`{}` is asked for and was not read", rule)
                                   : why_missing(fact));
    add(rule, std::move(made));
    return true;
  }

  void gpu_count() {
    if (!rules_.gpus) return;
    const facts::NvmlFacts& nvml = input_.facts.nvml;
    uint32_t answer = 0;
    for (const NvmlGpu& gpu : nvml.gpus) answer += gpu.state_code.value_or(0) == 0 ? 1 : 0;
    const bool asked = nvml.gpu_count || !failed(nvml.init_result);
    if (!asked) {
      unknown("gpu_count", "gpu_count_differs", k_machine, nvml.init_result);
      return;
    }
    if (answer == *rules_.gpus) return;
    if (answer < *rules_.gpus && answer + of_other_jobs() >= *rules_.gpus) {
      add("gpu_count", cannot_tell("gpu_count_differs", k_machine,
                                   "device nodes of GPUs may not be opened here"));
      return;
    }
    Finding& made = add("gpu_count", finding("gpu_count_differs", Severity::error, k_machine));
    if (answer > *rules_.gpus) made.variant = "more";
    made.args = {{"have", std::to_string(answer)}, {"want", std::to_string(*rules_.gpus)}};
    made.evidence = {{"nvml", "nvmlDeviceGetCount", std::to_string(answer)},
                     {"rule", source(), format("gpus = {}", *rules_.gpus)}};
  }

  // A job's step sees its own GPUs alone.
  uint32_t of_other_jobs() const {
    uint32_t out = 0;
    for (const facts::DeviceNode& node : input_.facts.kernel.nodes)
      out += is_kept_from_this_job(input_.facts, node) ? 1 : 0;
    return out;
  }

  void driver_version() {
    if (rules_.driver.empty()) return;
    const Fact<std::string>& kernel = input_.facts.kernel.version;
    const Fact<std::string>& have = kernel ? kernel : input_.facts.nvml.driver_version;
    if (unknown("driver_version", "driver_version_differs", k_machine, have)) return;
    for (const std::string& one : rules_.driver) {
      const bool bare = one[0] >= '0' && one[0] <= '9';
      const auto clauses = formats::parse_clauses(bare ? "==" + one : one);
      if (clauses && formats::satisfies(*clauses, *have)) return;
    }
    Finding& made =
        add("driver_version", finding("driver_version_differs", Severity::error, k_machine));
    made.args = {{"have", *have}, {"want", join(rules_.driver, ", ")}};
    made.evidence = {seen(have), {"rule", source(), join(rules_.driver, ", ")}};
  }

  void container_spec() {
    if (!rules_.cdi.value_or(false)) return;
    const facts::ContainerEngine& engine = input_.facts.engine;
    if (engine.cdi_specs.empty()) {
      Finding& made = add("cdi", finding("cdi_spec_not_found", Severity::error, k_machine));
      made.evidence = {{"file", "/etc/cdi, /var/run/cdi", "no spec of nvidia.com"}};
      return;
    }
    const Fact<std::string>& driver = input_.facts.kernel.version;
    if (!engine.cdi_driver || !driver || *engine.cdi_driver == *driver) return;
    Finding& made = add("cdi", finding("cdi_spec_stale", Severity::error, k_machine));
    made.variant = "at";
    made.args["path"] = shell_argument(engine.cdi_driver.source.detail);
    made.evidence = {seen(engine.cdi_driver), seen(driver)};
  }

  void host_memory() {
    const facts::SystemFacts& system = input_.facts.system;
    const auto at_least = [&](const char* rule, const char* id, const Fact<uint64_t>& have,
                              uint64_t want) {
      if (unknown(rule, id, k_machine, have) || *have >= want) return;
      Finding& made = add(rule, finding(id, Severity::error, k_machine));
      const auto text = [](uint64_t bytes) {
        return bytes == UINT64_MAX ? std::string("unlimited") : format_bytes(bytes);
      };
      made.args = {{"have", text(*have)}, {"want", text(want)}};
      made.evidence = {seen(have.source, text(*have)), {"rule", source(), text(want)}};
    };
    if (rules_.shm_free_bytes)
      at_least("shm_free", "shm_low", system.shm_free_bytes, *rules_.shm_free_bytes);
    if (rules_.memlock_bytes)
      at_least("memlock", "memlock_low", system.memlock_bytes, *rules_.memlock_bytes);
  }

  // The driver's own word on what has to be done, where it says one.
  void recovery(const GpuView& gpu, const NvmlGpu& nvml) {
    const std::string asked = nvml.recovery_action.value_or("none");
    if (asked == "none") return;
    Finding& made = about_gpu("recovery", "gpu_recovery_asked", gpu);
    made.args["action"] = asked;
    if (asked == "reboot" || asked == "bus_reset") {
      made.variant = "reboot";
      out_.back().action = "reboot";
    }
    if (asked == "drain_p2p") made.variant = "drain_p2p";
    if (asked == "recover_imex_domain") made.variant = "imex";
    made.evidence = {seen(nvml.recovery_action)};
  }

  void fabric(const GpuView& gpu, const NvmlGpu& nvml) {
    const std::string state = nvml.fabric_state.value_or("not_supported");
    if (state == "not_supported") return;
    // With MIG the GPU is not part of the fabric.
    if (nvml.mig_current.value_or(false)) return;
    const bool registered = state == "completed";
    if (registered && nvml.fabric_status.value_or(0) == 0) return;
    if (state == "in_progress") {
      add("fabric", cannot_tell("fabric_not_ready", subject_of(gpu),
                                "the registration at the NVLink fabric is in progress"));
      return;
    }
    Finding& made = about_gpu("fabric", "fabric_not_ready", gpu);
    made.args["state"] = registered ? format("failed ({})", *nvml.fabric_status) : state;
    // There the switches are in trays of their own, and so is the fabric manager.
    if (contains(gpu.name, "GB200") || contains(gpu.name, "GB300")) made.variant = "rack";
    made.evidence = {seen(nvml.fabric_state), seen(nvml.fabric_status)};
  }

  void modes(const GpuView& gpu, const NvmlGpu& nvml) {
    if (rules_.ecc && !unknown("ecc", "ecc_mode_differs", subject_of(gpu), nvml.ecc_current) &&
        *nvml.ecc_current != *rules_.ecc) {
      Finding& made = about_gpu("ecc", "ecc_mode_differs", gpu);
      if (nvml.ecc_pending && *nvml.ecc_pending == *rules_.ecc) made.variant = "pending";
      made.args["have"] = *nvml.ecc_current ? "on" : "off";
      made.args["want"] = *rules_.ecc ? "on" : "off";
      made.args["number"] = *rules_.ecc ? "1" : "0";
      made.evidence = {seen(nvml.ecc_current)};
    }
    if (rules_.persistence &&
        !unknown("persistence", "persistence_differs", subject_of(gpu), nvml.persistence) &&
        *nvml.persistence != *rules_.persistence) {
      Finding& made = about_gpu("persistence", "persistence_differs", gpu);
      made.variant = *rules_.persistence ? "" : "off";
      made.evidence = {seen(nvml.persistence)};
    }
    if (rules_.mig) mig(gpu, nvml);
  }

  void mig(const GpuView& gpu, const NvmlGpu& nvml) {
    // A card without MIG has it off.
    if (failed(nvml.mig_current) &&
        unknown("mig", "mig_layout_differs", subject_of(gpu), nvml.mig_current))
      return;
    std::vector<std::string> have;
    for (const facts::MigInstance& one : nvml.mig_instances) have.push_back(one.name);
    std::vector<std::string> want = *rules_.mig;
    std::sort(have.begin(), have.end());
    std::sort(want.begin(), want.end());
    const bool on = nvml.mig_current.value_or(false);
    const bool wanted_off = rules_.mig->empty();
    if (wanted_off ? !on : on && have == want) return;
    Finding& made = about_gpu("mig", "mig_layout_differs", gpu);
    if (wanted_off) made.variant = "off";
    made.args["have"] = !on ? "off" : have.empty() ? "no instance" : join(have, " ");
    made.args["want"] = wanted_off ? "off" : join(*rules_.mig, " ");
    made.args["profiles"] = join(*rules_.mig, ",");
    made.evidence = {seen(nvml.mig_current.source, made.args["have"])};
  }

  void links(const GpuView& gpu, const NvmlGpu& nvml) {
    if (rules_.link_width &&
        !unknown("link_width", "pcie_link_narrow", subject_of(gpu), nvml.pcie_width) &&
        *nvml.pcie_width < *rules_.link_width) {
      Finding& made = about_gpu("link_width", "pcie_link_narrow", gpu);
      made.args["have"] = std::to_string(*nvml.pcie_width);
      made.args["want"] = std::to_string(*rules_.link_width);
      made.evidence = {seen(nvml.pcie_width)};
    }
    if (rules_.nvlinks &&
        !unknown("nvlink", "nvlink_degraded", subject_of(gpu), nvml.nvlinks_active) &&
        *nvml.nvlinks_active < *rules_.nvlinks) {
      Finding& made = about_gpu("nvlink", "nvlink_degraded", gpu);
      made.args["active"] = std::to_string(*nvml.nvlinks_active);
      made.args["total"] = std::to_string(*rules_.nvlinks);
      made.evidence = {seen(nvml.nvlinks_active)};
    }
  }

  void clocks(const GpuView& gpu, const NvmlGpu& nvml) {
    if (rules_.clock_mhz && !unknown("clocks", "clocks_low", subject_of(gpu), nvml.clock_max_mhz) &&
        *nvml.clock_max_mhz < *rules_.clock_mhz) {
      low_clock(gpu, nvml.clock_max_mhz, *rules_.clock_mhz, "max");
      return;
    }
    const uint32_t own = nvml.clock_application_default_mhz.value_or(0);
    if (nvml.clock_application_mhz && *nvml.clock_application_mhz < own)
      low_clock(gpu, nvml.clock_application_mhz, own, "");
  }

  void low_clock(const GpuView& gpu, const Fact<uint32_t>& have, uint32_t want,
                 const char* variant) {
    Finding& made = about_gpu("clocks", "clocks_low", gpu);
    made.variant = variant;
    made.args["have"] = std::to_string(*have);
    made.args["want"] = std::to_string(want);
    made.evidence = {seen(have)};
  }

  std::string source() const { return rules_.file.empty() ? "--expect-gpus" : rules_.file; }

  const Input& input_;
  const HealthRules& rules_;
  std::vector<RuleFinding> out_;
};

}  // namespace

std::vector<RuleFinding> check_expectations(const Input& input, const HealthRules& rules) {
  return Expectations(input, rules).all();
}

}  // namespace cufit::checks
