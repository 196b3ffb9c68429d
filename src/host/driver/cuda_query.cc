// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's side of the driver child: what this process sees through libcuda, and whether
// it can compute.
#include <cstring>

#include "base/format.h"
#include "host/driver/compute_check.h"
#include "host/driver/driver_child.h"
#include "host/driver/driver_wire.h"

namespace cufit::host {
namespace {

using namespace cuda;

class CudaQuery {
 public:
  CudaQuery(DriverCalls& calls, const ChildTask& task) : calls_(calls), task_(task) {}
  void run();

 private:
  bool open();
  void ask_device(facts::CudaDevice& facts);
  void ask_identity(facts::CudaDevice& facts, Device device);
  void ask_peers(facts::CudaDevice& facts);
  void ask_uuid(facts::CudaDevice& facts, Device device);
  Fact<int> attribute(int number, Device device);

  template <class T>
  Fact<T> answer(int result, const char* name, T value) {
    if (result == k_success) return known<T>(std::move(value), SourceKind::cuda, name);
    if (result == k_no_symbol) {
      return missing<T>(WhyNot::not_supported, SourceKind::cuda, name,
                        "the library has no such function");
    }
    return missing<T>(WhyNot::not_present, SourceKind::cuda, name, format("CUDA error {}", result));
  }

  DriverCalls& calls_;
  const ChildTask& task_;
  facts::CudaFacts facts_;
  facts::CudaDevice* current_ = nullptr;
};

std::string uuid_text(const Uuid& uuid, bool mig) {
  std::string out = mig ? "MIG-" : "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += format("{:02x}", static_cast<unsigned>(uuid.bytes[i]));
  }
  return out;
}

bool CudaQuery::open() {
  facts_.library = calls_.open(task_.library_dir, "libcuda.so.1", SourceKind::cuda);
  if (!facts_.library) {
    mark_unreached(facts_, WhyNot::not_present, "libcuda.so.1", facts_.library.note);
    return false;
  }
  // The one question that may be asked before cuInit; a driver that cannot start still says its
  // version.
  int version = 0;
  int result = calls_.call<DriverGetVersion>("cuDriverGetVersion", &version);
  facts_.driver_version = answer(result, "cuDriverGetVersion", version);
  result = calls_.call<Init>("cuInit", 0u);
  if (result == k_no_symbol) {
    facts_.init_result = answer(result, "cuInit", 0);
    return false;
  }
  facts_.init_result = known(result, SourceKind::cuda, "cuInit");
  if (result == k_success) return true;
  mark_unreached(facts_, WhyNot::not_asked, "cuInit", format("cuInit returned {}", result));
  return false;
}

Fact<int> CudaQuery::attribute(int number, Device device) {
  int value = 0;
  int result = calls_.call<DeviceGetAttribute>("cuDeviceGetAttribute", &value, number, device);
  return answer(result, "cuDeviceGetAttribute", value);
}

void CudaQuery::ask_uuid(facts::CudaDevice& facts, Device device) {
  Uuid uuid{};
  // _v2 tells MIG instances of one GPU apart; the name of such a device says what it is.
  const char* name = calls_.has("cuDeviceGetUuid_v2") ? "cuDeviceGetUuid_v2" : "cuDeviceGetUuid";
  int result = calls_.call<DeviceGetUuid>(name, &uuid, device);
  bool mig = contains(facts.name.value_or(""), " MIG ");
  facts.uuid = answer(result, name, uuid_text(uuid, mig));
}

void CudaQuery::ask_identity(facts::CudaDevice& facts, Device device) {
  char name[256] = {};
  int result = calls_.call<DeviceGetName>("cuDeviceGetName", name, int{sizeof name}, device);
  name[sizeof name - 1] = 0;
  facts.name = answer<std::string>(result, "cuDeviceGetName", name);
  ask_uuid(facts, device);
  char bus[32] = {};
  result = calls_.call<DeviceGetPciBusId>("cuDeviceGetPCIBusId", bus, int{sizeof bus}, device);
  bus[sizeof bus - 1] = 0;
  facts.pci_address = answer<std::string>(result, "cuDeviceGetPCIBusId", lower(bus));
  Fact<int> major = attribute(k_attribute_major, device);
  Fact<int> minor = attribute(k_attribute_minor, device);
  bool both = major && minor;
  facts.compute_capability =
      both ? known(format("{}.{}", *major, *minor), SourceKind::cuda, "cuDeviceGetAttribute")
           : missing<std::string>(major.why, SourceKind::cuda, "cuDeviceGetAttribute",
                                  major ? minor.note : major.note);
  size_t bytes = 0;
  result = calls_.call<DeviceTotalMem>("cuDeviceTotalMem_v2", &bytes, device);
  facts.memory_total_bytes = answer<uint64_t>(result, "cuDeviceTotalMem_v2", bytes);
  Fact<int> integrated = attribute(k_attribute_integrated, device);
  facts.integrated = integrated ? known(*integrated != 0, SourceKind::cuda, "cuDeviceGetAttribute")
                                : missing<bool>(integrated.why, SourceKind::cuda,
                                                "cuDeviceGetAttribute", integrated.note);
}

void CudaQuery::ask_device(facts::CudaDevice& facts) {
  current_ = &facts;
  Device device = 0;
  int result = calls_.call<DeviceGet>("cuDeviceGet", &device, static_cast<int>(facts.ordinal));
  if (result != k_success) {
    facts::CudaFacts alone;  // mark_unreached works on a whole CudaFacts
    alone.devices.push_back(std::move(facts));
    mark_unreached(alone, WhyNot::not_present, "cuDeviceGet", format("CUDA error {}", result));
    facts = std::move(alone.devices.front());
    return;
  }
  ask_identity(facts, device);
  if (task_.depth == DriverDepth::compute) check_compute(calls_, device, task_.deep, facts);
}

// Needs no context.
void CudaQuery::ask_peers(facts::CudaDevice& facts) {
  current_ = &facts;
  const char* name = "cuDeviceCanAccessPeer";
  Device device = 0, other = 0;
  if (calls_.call<DeviceGet>("cuDeviceGet", &device, static_cast<int>(facts.ordinal))) return;
  for (const facts::CudaDevice& one : facts_.devices) {
    if (one.ordinal == facts.ordinal ||
        calls_.call<DeviceGet>("cuDeviceGet", &other, static_cast<int>(one.ordinal)))
      continue;
    int access = 0;
    const int result = calls_.call<DeviceCanAccessPeer>(name, &access, device, other);
    facts.peers.push_back({one.ordinal, answer(result, name, access != 0)});
  }
  calls_.flush();
}

void CudaQuery::run() {
  double begin = DriverCalls::now();
  calls_.set_pending([this](std::string& out) {
    if (current_) {
      put_device(out, current_->ordinal, *current_);
    } else {
      put_cuda(out, facts_);
    }
  });
  if (open()) {
    int count = 0;
    int result = calls_.call<DeviceGetCount>("cuDeviceGetCount", &count);
    facts_.device_count = answer(result, "cuDeviceGetCount", count);
    for (int i = 0; i < count && i < 256; ++i)
      facts_.devices.emplace_back().ordinal = static_cast<uint32_t>(i);
    calls_.flush();
    for (facts::CudaDevice& device : facts_.devices) {
      // A device that takes long must not cost the answers of those before it, nor look like a
      // hang.
      if (!task_.deep && DriverCalls::now() - begin > task_.limit_seconds * 0.8) {
        device.compute_check =
            missing<std::string>(WhyNot::not_asked, SourceKind::cuda, "cuDevicePrimaryCtxRetain",
                                 "the devices before it took most of the time limit");
        current_ = &device;
      } else {
        ask_device(device);
      }
      calls_.flush();
    }
    if (task_.deep)
      for (facts::CudaDevice& device : facts_.devices) ask_peers(device);
  }
  current_ = nullptr;
  facts_.driver_seconds = calls_.seconds();
  calls_.flush();
}

}  // namespace

void ask_cuda(DriverCalls& calls, const ChildTask& task) { CudaQuery(calls, task).run(); }

}  // namespace cufit::host
