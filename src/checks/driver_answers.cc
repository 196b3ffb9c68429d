// SPDX-License-Identifier: Apache-2.0
// What NVML and cuInit answered on the running machine. A code names a cause only as far as the
// other facts carry it; otherwise the finding is `driver_answer_unknown`, which stays only where no
// other check found the cause.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/torch_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

constexpr int k_cuda_not_initialized = 3, k_cuda_no_device = 100, k_cuda_unknown = 999;
constexpr int k_nvml_driver_not_loaded = 9, k_nvml_no_library = 12, k_nvml_gpu_lost = 15;

std::string code_text(const knowledge::CodeRow* row, int code) {
  return row != nullptr ? std::to_string(code) + " " + std::string(row->name)
                        : std::to_string(code);
}

void add_code(const Input& input, const char* call, const Fact<int>& fact, Finding& made) {
  bool cuda = std::string_view(call) == "cuInit";
  const knowledge::CodeRow* row =
      cuda ? input.knowledge.find_cuda_code(*fact) : input.knowledge.find_nvml_code(*fact);
  made.args["call"] = call;
  made.args["code"] = code_text(row, *fact);
  made.args["meaning"] = row != nullptr ? std::string(row->meaning) : "";
  made.evidence.push_back(seen(fact.source, code_text(row, *fact)));
}

// The child that asked did not come back, or died.
void judge_silence(const char* call, const Fact<int>& fact, std::vector<Finding>& found) {
  if (fact || (fact.why != WhyNot::timeout && fact.why != WhyNot::crashed)) return;
  bool hung = fact.why == WhyNot::timeout;
  Finding made =
      finding(hung ? "driver_probe_hung" : "driver_probe_crashed", Severity::error, k_machine);
  made.args = {{"call", call}, {"note", fact.note}};
  made.evidence.push_back({to_string(fact.source.kind), fact.source.detail, why_missing(fact)});
  // One stuck driver, one finding: the second call that did not come back is more evidence of it.
  for (Finding& earlier : found) {
    if (earlier.id != made.id) continue;
    earlier.args["call"] += std::string(", ") + call;
    earlier.evidence.push_back(made.evidence.front());
    return;
  }
  found.push_back(std::move(made));
}

bool driver_is_loaded(const Input& input) {
  return input.facts.kernel.version || is_wsl(input.facts) || is_jetson(input.facts);
}

bool nvml_works(const Input& input) {
  return input.facts.nvml.init_result && *input.facts.nvml.init_result == 0 &&
         !input.facts.nvml.gpus.empty();
}

const std::string* suspend_line(const Input& input) {
  if (!input.facts.kernel.log) return nullptr;
  for (const std::string& line : *input.facts.kernel.log)
    if (contains(lower(line), "suspend") || contains(lower(line), "resume")) return &line;
  return nullptr;
}

Finding name_cause(const Input& input, int code) {
  const facts::KernelDriver& kernel = input.facts.kernel;
  // 3 while nvidia-smi works: nvidia_uvm does not initialise; with HMM on that is its known
  // failure.
  if (code == k_cuda_not_initialized && nvml_works(input) && kernel.uvm_hmm_disabled &&
      !*kernel.uvm_hmm_disabled) {
    Finding made = finding("uvm_hmm_init_failure", Severity::error, k_machine);
    made.evidence.push_back(seen(kernel.uvm_hmm_disabled));
    return made;
  }
  // 999 has many causes; a suspend that the kernel log shows is what makes the stale uvm module the
  // likely one.
  const std::string* line =
      code == k_cuda_unknown && nvml_works(input) ? suspend_line(input) : nullptr;
  if (line != nullptr) {
    Finding made = finding("uvm_stale_after_suspend", Severity::error, k_machine);
    made.evidence.push_back({"file", "kernel log", *line});
    return made;
  }
  Finding made = finding(code == k_cuda_no_device ? "no_cuda_device" : "driver_answer_unknown",
                         Severity::error, k_machine);
  if (code == k_cuda_unknown) made.variant = "cuda_999";
  return made;
}

void judge_cuda(const Input& input, std::vector<Finding>& found) {
  const Fact<int>& init = input.facts.cuda.init_result;
  judge_silence("cuInit", init, found);
  if (!init || *init == 0) return;
  // Without a GPU or a loaded driver "no device" is expected, and other checks name the reason.
  if (input.gpus.empty() || !driver_is_loaded(input)) return;
  Finding made = name_cause(input, *init);
  add_code(input, "cuInit", init, made);
  made.args["nvml_gpus"] = std::to_string(input.facts.nvml.gpus.size());
  made.args["visible"] = variable(input.facts, "CUDA_VISIBLE_DEVICES");
  found.push_back(std::move(made));
}

void judge_nvml(const Input& input, std::vector<Finding>& found) {
  const Fact<int>& init = input.facts.nvml.init_result;
  judge_silence("nvmlInit", init, found);
  if (!init || *init == 0 || *init == k_nvml_driver_not_loaded || *init == k_nvml_no_library)
    return;
  if (*init == k_nvml_gpu_lost) {
    Finding made = finding("gpu_fell_off_bus", Severity::error, k_machine);
    add_code(input, "nvmlInit", init, made);
    found.push_back(std::move(made));
    return;
  }
  if (!driver_is_loaded(input)) return;
  Finding made = finding("driver_answer_unknown", Severity::error, k_machine);
  made.variant = "nvml";
  add_code(input, "nvmlInit", init, made);
  found.push_back(std::move(made));
}

// The module drives the GPU, and no libcuda.so.1 lies where a process looks for it. In a container
// and under WSL the libraries come from outside: container_gpu.cc and wsl.cc ask there.
void judge_libraries(const Input& input, std::vector<Finding>& found) {
  const facts::Facts& facts = input.facts;
  bool elsewhere = in_container(facts) || is_wsl(facts) || is_jetson(facts);
  if (input.gpus.empty() || !facts.kernel.version || elsewhere || !absent(facts.cuda.library))
    return;
  const facts::DriverLibrary* unfound = nullptr;
  for (const facts::DriverLibrary& library : facts.driver_libraries) {
    if (library.soname != "libcuda.so.1") continue;
    if (library.loads) return;
    if (library.origin == "driver" && library.problem.empty() && unfound == nullptr)
      unfound = &library;
  }
  Finding made = finding("driver_libs_missing", Severity::error, k_machine);
  std::string id = facts.system.distribution_id.value_or("");
  std::string name = id.substr(0, id.find(' '));
  if (unfound != nullptr)
    made.variant = "unfound";
  else if (name == "debian" || name == "ubuntu")
    made.variant = name;
  made.args = {{"driver", *facts.kernel.version},
               {"branch", std::to_string(major_of(*facts.kernel.version))},
               {"lib", "libcuda.so.1"},
               {"path", unfound != nullptr ? unfound->path : ""}};
  made.evidence = {seen(facts.kernel.version), seen(facts.cuda.library)};
  if (unfound != nullptr) made.evidence.push_back({"file", unfound->path, unfound->version});
  found.push_back(std::move(made));
}

// A GPU on the bus that a working driver does not list.
void judge_missing(const Input& input, std::vector<Finding>& found) {
  if (!nvml_works(input) || is_wsl(input.facts)) return;
  for (const GpuView& gpu : input.gpus) {
    if (gpu.nvml != nullptr || gpu.cuda != nullptr || gpu.pci == nullptr) continue;
    // Containers see all PCI functions and only the GPUs that they were given; vfio takes one on
    // purpose.
    // Which driver has it must be known: a second card for the display may have none.
    if (in_container(input.facts) || gpu.pci->driver.value_or("") != "nvidia") continue;
    Finding made = finding("gpu_missing_in_driver", Severity::warning, subject_of(gpu));
    made.args = {{"gpu", gpu.name}, {"address", gpu.pci->address}};
    made.evidence = {{"file", "/sys/bus/pci/devices/" + gpu.pci->address, gpu.name},
                     {"nvml", "nvmlDeviceGetCount", std::to_string(input.facts.nvml.gpus.size())}};
    found.push_back(std::move(made));
  }
}

}  // namespace

std::vector<Finding> check_driver_answers(const Input& input) {
  std::vector<Finding> found;
  judge_nvml(input, found);
  judge_cuda(input, found);
  judge_libraries(input, found);
  judge_missing(input, found);
  return found;
}

}  // namespace cufit::checks
