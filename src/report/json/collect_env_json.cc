// SPDX-License-Identifier: Apache-2.0
// collect-env as JSON, schema cufit.collect_env/1: torch's internal field names; what it would
// print as "Could not collect" or "N/A" stays such a text, because that is what tools that read the
// text know.
#include "report/collect_env.h"
#include "report/json/json_value.h"

namespace cufit::report {

std::string collect_env_json(const DoctorView& view) {
  CollectEnv env = collect_env(view.facts);
  Json out;
  out["schema"] = "cufit.collect_env/1";
  out["torch_version"] = env.torch_version;
  out["is_debug_build"] = env.is_debug_build;
  out["cuda_compiled_version"] = env.cuda_compiled_version;
  out["hip_compiled_version"] = env.hip_compiled_version;
  out["os"] = env.os;
  out["gcc_version"] = env.gcc_version;
  out["clang_version"] = env.clang_version;
  out["cmake_version"] = env.cmake_version;
  out["libc_version"] = env.libc_version;
  out["python_version"] = env.python_version;
  out["python_platform"] = env.python_platform;
  out["is_cuda_available"] = env.is_cuda_available;
  out["cuda_runtime_version"] = env.cuda_runtime_version;
  out["cuda_module_loading"] = env.cuda_module_loading;
  out["nvidia_gpu_models"] = env.nvidia_gpu_models;
  out["nvidia_driver_version"] = env.nvidia_driver_version;
  out["cudnn_version"] = env.cudnn_version;
  out["is_xpu_available"] = env.is_xpu_available;
  out["hip_runtime_version"] = env.hip_runtime_version;
  out["miopen_runtime_version"] = env.miopen_runtime_version;
  out["is_xnnpack_available"] = env.is_xnnpack_available;
  out["caching_allocator_config"] = env.caching_allocator_config;
  out["cpu_info"] = Json::object();
  for (const auto& [label, value] : env.cpu_info) out["cpu_info"][label] = value;
  out["pip_version"] = "pip3";
  out["pip_packages"] = env.pip_packages;
  out["conda_packages"] = env.conda_packages;
  Json cufit;
  cufit["version"] = CUFIT_VERSION;
  cufit["verdict"] =
      view.report.verdict == checks::LinkState::ok ? "works" : to_string(view.report.verdict);
  cufit["findings"] = Json::array();
  for (const checks::Finding& finding : view.report.findings) {
    cufit["findings"].push_back(
        {{"id", finding.id},
         {"severity", to_string(finding.severity)},
         {"subject", finding.subject},
         {"summary", finding_text(finding, "title", "en", view.knowledge)}});
  }
  cufit["would_load"] = Json::array();
  if (!view.facts.envs.empty()) {
    for (const facts::LoadedLibrary& library : view.facts.envs.front().loads) {
      cufit["would_load"].push_back(
          {{"name", library.name}, {"path", library.path}, {"by", library.by}});
    }
  }
  out["cufit"] = std::move(cufit);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
