// SPDX-License-Identifier: Apache-2.0
#include "host/driver/compute_check.h"

#include <vector>

#include "host/driver/device_ptx.h"

namespace cufit::host {
namespace {

using namespace cuda;

constexpr uint32_t k_count = 4096;
constexpr size_t k_bytes = k_count * sizeof(uint32_t);

class ComputeCheck {
 public:
  ComputeCheck(DriverCalls& calls, Device device, facts::CudaDevice& facts)
      : calls_(calls), device_(device), facts_(facts) {}
  void run(bool deep);

 private:
  // Both stop at the first call that does not succeed and record it.
  bool step(const char* name, const char* call, int result);
  bool compute();
  bool transfer_and_launch(Function kernel);
  void fail_step(const char* name, const char* call, int result);

  DriverCalls& calls_;
  Device device_;
  facts::CudaDevice& facts_;
  Pointer in_ = 0, out_ = 0;
  Module module_ = nullptr;
};

void ComputeCheck::fail_step(const char* name, const char* call, int result) {
  facts_.compute_check = known<std::string>(name, SourceKind::cuda, call);
  if (result == k_no_symbol) {
    facts_.compute_code = missing<int>(WhyNot::not_supported, SourceKind::cuda, call,
                                       "the library has no such function");
  } else {
    facts_.compute_code = known(result, SourceKind::cuda, call);
  }
}

bool ComputeCheck::step(const char* name, const char* call, int result) {
  if (result == k_success) return true;
  fail_step(name, call, result);
  return false;
}

bool ComputeCheck::compute() {
  size_t free = 0, total = 0;
  int result = calls_.call<MemGetInfo>("cuMemGetInfo_v2", &free, &total);
  if (!step("context", "cuMemGetInfo_v2", result)) return false;
  facts_.memory_free_bytes = known<uint64_t>(free, SourceKind::cuda, "cuMemGetInfo_v2");
  for (Pointer* pointer : {&in_, &out_}) {
    if (!step("allocate", "cuMemAlloc_v2",
              calls_.call<MemAlloc>("cuMemAlloc_v2", pointer, k_bytes)))
      return false;
  }
  result = calls_.call<ModuleLoadData>("cuModuleLoadData", &module_,
                                       static_cast<const void*>(k_check_ptx));
  if (!step("load_ptx", "cuModuleLoadData", result)) return false;
  Function kernel = nullptr;
  result = calls_.call<ModuleGetFunction>("cuModuleGetFunction", &kernel, module_, "cufit_check");
  return step("load_ptx", "cuModuleGetFunction", result) && transfer_and_launch(kernel);
}

bool ComputeCheck::transfer_and_launch(Function kernel) {
  std::vector<uint32_t> values(k_count);
  for (uint32_t i = 0; i < k_count; ++i)
    values[i] = i * 2654435761u;  // no two equal: a multiple of an odd number
  // A copy that fails belongs to the launch step: the allocation itself was fine.
  int result = calls_.call<MemcpyHtoD>("cuMemcpyHtoD_v2", in_,
                                       static_cast<const void*>(values.data()), k_bytes);
  if (!step("launch", "cuMemcpyHtoD_v2", result)) return false;
  uint32_t count = k_count;
  void* arguments[] = {&in_, &out_, &count};
  result = calls_.call<LaunchKernel>("cuLaunchKernel", kernel, k_count / 256, 1u, 1u, 256u, 1u, 1u,
                                     0u, nullptr, arguments, nullptr);
  if (!step("launch", "cuLaunchKernel", result)) return false;
  if (!step("launch", "cuCtxSynchronize", calls_.call<CtxSynchronize>("cuCtxSynchronize")))
    return false;
  std::vector<uint32_t> results(k_count);
  result =
      calls_.call<MemcpyDtoH>("cuMemcpyDtoH_v2", static_cast<void*>(results.data()), out_, k_bytes);
  if (!step("launch", "cuMemcpyDtoH_v2", result)) return false;
  for (uint32_t i = 0; i < k_count; ++i) {
    if (results[i] == check_result(values[i], i)) continue;
    fail_step("result", "cufit_check", k_success);  // no call failed; the numbers are wrong
    return false;
  }
  return true;
}

void ComputeCheck::run(bool deep) {
  Context context = nullptr;
  // The primary context, as torch uses it; in this process nobody else holds it.
  int result = calls_.call<PrimaryCtxRetain>("cuDevicePrimaryCtxRetain", &context, device_);
  if (!step("context", "cuDevicePrimaryCtxRetain", result)) return;
  result = calls_.call<CtxSetCurrent>("cuCtxSetCurrent", context);
  if (step("context", "cuCtxSetCurrent", result) && compute()) {
    facts_.compute_check = known<std::string>("ok", SourceKind::cuda, "cufit_check");
    facts_.compute_code = known(k_success, SourceKind::cuda, "cufit_check");
  }
  if (module_) calls_.call<ModuleUnload>("cuModuleUnload", module_);
  if (in_) calls_.call<MemFree>("cuMemFree_v2", in_);
  if (out_) calls_.call<MemFree>("cuMemFree_v2", out_);
  if (deep && facts_.compute_check.value_or("") == "ok") test_memory(calls_, facts_);
  const char* release = calls_.has("cuDevicePrimaryCtxRelease_v2") ? "cuDevicePrimaryCtxRelease_v2"
                                                                   : "cuDevicePrimaryCtxRelease";
  calls_.call<PrimaryCtxRelease>(release, device_);
}

}  // namespace

void check_compute(DriverCalls& calls, Device device, bool deep, facts::CudaDevice& facts) {
  ComputeCheck(calls, device, facts).run(deep);
}

}  // namespace cufit::host
