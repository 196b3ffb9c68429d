// SPDX-License-Identifier: Apache-2.0
// NVML's functions as facts: one call, one Fact with the function's name as its source or the
// reason why it is missing. The layer between DriverCalls and the questions in nvml_query.cc and
// nvml_gpu.cc.
#pragma once

#include <initializer_list>
#include <string>

#include "host/driver/driver_calls.h"
#include "facts/facts.h"
#include "host/driver/nvml_api.h"

namespace cufit::host {

class NvmlCalls {
 public:
  explicit NvmlCalls(DriverCalls& calls) : calls_(calls) {}

  // The GPU whose state_code takes note of codes that are about the GPU itself; null = none.
  void about(facts::NvmlGpu* gpu) { gpu_ = gpu; }
  DriverCalls& raw() { return calls_; }

  template <class F, class... Args>
  int call(const char* name, Args... args) {
    return calls_.call<F>(name, args...);
  }
  // The first of these functions that the library has, newest first; `used` is its name.
  template <class F, class... Args>
  int call_any(std::initializer_list<const char*> names, const char*& used, Args... args) {
    int result = k_no_symbol;
    for (const char* name : names) {
      used = name;
      result = calls_.call<F>(name, args...);
      // A library may export a name that its kernel module does not know.
      if (result != k_no_symbol && result != nvml::k_function_not_found) return result;
    }
    return result;
  }

  template <class T>
  Fact<T> answer(int result, const char* name, T value) {
    if (result == nvml::k_success) return known<T>(std::move(value), SourceKind::nvml, name);
    note_state(result, name);
    return missing<T>(why_of(result), SourceKind::nvml, name, text_of(result));
  }
  Fact<std::string> text(nvml::Device device, const char* name);
  Fact<uint32_t> number(nvml::Device device, const char* name);
  Fact<bool> flag(nvml::Device device, const char* name);
  void flags(nvml::Device device, const char* name, Fact<bool>& current, Fact<bool>& pending);

  static WhyNot why_of(int result);
  std::string text_of(int result) const;  // "Not Supported (3)", in the library's words

 private:
  void note_state(int result, const char* name);

  DriverCalls& calls_;
  facts::NvmlGpu* gpu_ = nullptr;
};

// Fills every field of a GPU whose index is known. nvml_gpu.cc
void ask_gpu(NvmlCalls& nvml, facts::NvmlGpu& gpu);
// The ways from it to the others, and its NVLinks' ends. nvml_peers.cc
void ask_peers(NvmlCalls& nvml, const std::vector<facts::NvmlGpu>& all, facts::NvmlGpu& gpu);
// Its parts that nvml_room.cc asks often.
void ask_identity(NvmlCalls& nvml, facts::NvmlGpu& gpu, nvml::Device device);
void ask_memory(NvmlCalls& nvml, facts::NvmlGpu& gpu, nvml::Device device);
void ask_condition(NvmlCalls& nvml, facts::NvmlGpu& gpu, nvml::Device device);
Fact<std::string> ask_compute_mode(NvmlCalls& nvml, nvml::Device device);

}  // namespace cufit::host
