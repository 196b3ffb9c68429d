// SPDX-License-Identifier: Apache-2.0
#include "host/driver/nvml_processes.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/format.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr size_t k_max_stride = 32;
constexpr uint32_t k_first_entries = 64;
constexpr uint32_t k_most_entries = 16384;

struct Listed {
  int result = k_no_symbol;
  std::string name;
  std::vector<facts::GpuProcess> processes;
};

// The entry grew without a new name: _v1 has 16 bytes, _v2 24, _v3 24 again, except in drivers
// 535.43 to 535.86 where _v3 has 32, and in some 2026 drivers where it is said to have 16. So the
// stride is measured, not believed.
Listed list(DriverCalls& calls, Device device, const std::string& function) {
  Listed out;
  for (const char* suffix : {"_v3", "_v2", ""}) {
    out.name = function + suffix;
    if (!calls.has(out.name.c_str())) continue;
    uint32_t room = k_first_entries;
    std::vector<unsigned char> buffer;
    uint32_t count = 0;
    do {
      buffer.assign(room * k_max_stride, k_process_fill);
      count = room;
      out.result = calls.call<int(Device, uint32_t*, void*)>(out.name.c_str(), device, &count,
                                                             buffer.data());
      // The list may grow between two calls, hence some room above what was asked for.
      room = std::min(std::max(count, room) * 2, k_most_entries + 1);
    } while (out.result == k_insufficient_size && room <= k_most_entries);
    if (out.result == k_function_not_found) continue;
    if (out.result != k_success || count == 0) return out;
    count = std::min<uint32_t>(count, static_cast<uint32_t>(buffer.size() / k_max_stride));
    size_t stride = process_stride(buffer, count);
    if (stride == 0) {
      out.result = k_argument_version_mismatch;
      return out;
    }
    for (uint32_t i = 0; i < count; ++i) {
      const unsigned char* at = buffer.data() + i * stride;
      facts::GpuProcess process;
      process.pid = load_le<uint32_t>(at);
      uint64_t used = load_le<uint64_t>(at + 8);
      process.used_bytes = used == k_not_available
                               ? missing<uint64_t>(WhyNot::not_supported, SourceKind::nvml,
                                                   out.name, "not available")
                               : known(used, SourceKind::nvml, out.name);
      out.processes.push_back(std::move(process));
    }
    return out;
  }
  return out;
}

std::string process_name(DriverCalls& calls, uint32_t pid) {
  char name[1024] = {};  // a command line; empty where the process lives in another PID namespace
  using Get = int(uint32_t, char*, uint32_t);
  if (calls.call<Get>("nvmlSystemGetProcessName", pid, name, uint32_t{sizeof name}) != k_success)
    return {};
  name[sizeof name - 1] = 0;
  return name;
}

}  // namespace

size_t process_stride(const std::vector<unsigned char>& buffer, size_t count) {
  size_t end = buffer.size();
  while (end > 0 && buffer[end - 1] == k_process_fill) --end;
  for (size_t stride : {size_t{16}, size_t{24}, size_t{32}}) {
    if (end == stride * count) return stride;
  }
  return 0;
}

Fact<std::vector<facts::GpuProcess>> read_processes(DriverCalls& calls, Device device,
                                                    ProcessNames names) {
  Listed compute = list(calls, device, "nvmlDeviceGetComputeRunningProcesses");
  if (compute.result != k_success) {
    WhyNot why = compute.result == k_no_permission ? WhyNot::no_permission
                 : compute.result == k_gpu_is_lost ? WhyNot::not_present
                                                   : WhyNot::not_supported;
    return missing<std::vector<facts::GpuProcess>>(why, SourceKind::nvml, compute.name,
                                                   format("NVML error ({})", compute.result));
  }
  std::vector<facts::GpuProcess> all = std::move(compute.processes);
  for (facts::GpuProcess& process : all) process.kind = "compute";
  Listed graphics = list(calls, device, "nvmlDeviceGetGraphicsRunningProcesses");
  if (graphics.result == k_success) {
    for (facts::GpuProcess& process : graphics.processes) {
      // One process may do both; its memory is listed twice and must not be counted twice.
      auto same = [&](const facts::GpuProcess& other) { return other.pid == process.pid; };
      if (std::any_of(all.begin(), all.end(), same)) continue;
      process.kind = "graphics";
      all.push_back(std::move(process));
    }
  }
  if (names == ProcessNames::ask)
    for (facts::GpuProcess& process : all) process.name = process_name(calls, process.pid);
  std::stable_sort(
      all.begin(), all.end(),
      [](const facts::GpuProcess& a, const facts::GpuProcess& b) { return a.pid < b.pid; });
  return known(std::move(all), SourceKind::nvml, compute.name);
}

}  // namespace cufit::host
