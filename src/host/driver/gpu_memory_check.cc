// SPDX-License-Identifier: Apache-2.0
// The memory pattern test of --deep: fills a bounded share of the free memory with an
// address-dependent pattern, reads it back on the device, and repeats that with every bit inverted.
// It finds cells and lines that are broken now; it is no burn-in and says how many bytes it looked
// at.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "host/driver/compute_check.h"
#include "host/driver/device_ptx.h"
#include "host/driver/driver_wire.h"

namespace cufit::host {
namespace {

using namespace cuda;

constexpr uint64_t k_gpu_memory_check_most_bytes = uint64_t{8} << 30;
constexpr uint64_t k_most_integrated_bytes = uint64_t{1}
                                             << 30;  // the host's own memory: no swapping
constexpr uint64_t k_chunk_bytes = uint64_t{512}
                                   << 20;  // below a display's watchdog even at 10 GB/s
constexpr uint64_t k_least_bytes = uint64_t{1} << 20;
constexpr unsigned k_blocks = 1024, k_threads = 256;

struct Chunk {
  Pointer at = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of its first byte within the tested memory
};

class MemoryTest {
 public:
  MemoryTest(DriverCalls& calls, facts::CudaDevice& facts) : calls_(calls), facts_(facts) {}
  void run();

 private:
  bool allocate();
  bool load();
  bool pass(uint64_t flip);
  bool fill(const Chunk& chunk, uint64_t flip);
  bool verify(const Chunk& chunk, uint64_t flip);
  bool works(const char* call, int result);
  void progress(uint64_t bytes);

  DriverCalls& calls_;
  facts::CudaDevice& facts_;
  std::vector<Chunk> chunks_;
  uint64_t total_ = 0, done_ = 0;
  Module module_ = nullptr;
  Function fill_ = nullptr, verify_ = nullptr;
  Pointer bad_ = 0;
};

bool MemoryTest::works(const char* call, int result) {
  if (result == k_success) return true;
  std::string note =
      result == k_no_symbol ? "the library has no such function" : format("CUDA error {}", result);
  facts_.memory_test = missing<std::string>(WhyNot::not_present, SourceKind::cuda, call, note);
  return false;
}

void MemoryTest::progress(uint64_t bytes) {
  done_ += bytes;
  std::string frame;
  put_progress(frame, format("GPU {} memory", facts_.ordinal), done_, total_ * 4);
  calls_.send(frame);
}

bool MemoryTest::allocate() {
  size_t free = 0, total = 0;
  if (!works("cuMemGetInfo_v2", calls_.call<MemGetInfo>("cuMemGetInfo_v2", &free, &total)))
    return false;
  // Half of what is free: other programs may start meanwhile.
  uint64_t most =
      facts_.integrated.value_or(false) ? k_most_integrated_bytes : k_gpu_memory_check_most_bytes;
  uint64_t budget = std::min<uint64_t>(free / 2, most) & ~(k_least_bytes - 1);
  uint64_t piece = k_chunk_bytes;
  while (total_ < budget && piece >= k_least_bytes) {
    Chunk chunk{0, std::min(piece, budget - total_), total_};
    int result =
        calls_.call<MemAlloc>("cuMemAlloc_v2", &chunk.at, static_cast<size_t>(chunk.bytes));
    if (result == k_out_of_memory) {
      piece /= 2;  // free memory is in smaller pieces
      continue;
    }
    if (!works("cuMemAlloc_v2", result)) return false;
    total_ += chunk.bytes;
    chunks_.push_back(chunk);
  }
  if (total_ > 0)
    return works("cuMemAlloc_v2", calls_.call<MemAlloc>("cuMemAlloc_v2", &bad_, size_t{4}));
  facts_.memory_test = missing<std::string>(WhyNot::not_present, SourceKind::cuda, "cuMemAlloc_v2",
                                            "less than 1 MiB could be allocated");
  return false;
}

bool MemoryTest::load() {
  int result = calls_.call<ModuleLoadData>("cuModuleLoadData", &module_,
                                           static_cast<const void*>(k_memory_ptx));
  if (!works("cuModuleLoadData", result)) return false;
  for (auto [function, name] :
       {std::pair(&fill_, "cufit_fill"), std::pair(&verify_, "cufit_verify")}) {
    result = calls_.call<ModuleGetFunction>("cuModuleGetFunction", function, module_, name);
    if (!works("cuModuleGetFunction", result)) return false;
  }
  return true;
}

bool MemoryTest::fill(const Chunk& chunk, uint64_t flip) {
  uint64_t words = chunk.bytes / 8, first = chunk.offset / 8;
  Pointer data = chunk.at;
  void* arguments[] = {&data, &words, &first, &flip};
  int result = calls_.call<LaunchKernel>("cuLaunchKernel", fill_, k_blocks, 1u, 1u, k_threads, 1u,
                                         1u, 0u, nullptr, arguments, nullptr);
  return works("cuLaunchKernel", result) &&
         works("cuCtxSynchronize", calls_.call<CtxSynchronize>("cuCtxSynchronize"));
}

bool MemoryTest::verify(const Chunk& chunk, uint64_t flip) {
  uint32_t bad = ~0u;
  int result =
      calls_.call<MemcpyHtoD>("cuMemcpyHtoD_v2", bad_, static_cast<const void*>(&bad), sizeof bad);
  if (!works("cuMemcpyHtoD_v2", result)) return false;
  uint64_t words = chunk.bytes / 8, first = chunk.offset / 8;
  Pointer data = chunk.at;
  void* arguments[] = {&data, &words, &first, &flip, &bad_};
  result = calls_.call<LaunchKernel>("cuLaunchKernel", verify_, k_blocks, 1u, 1u, k_threads, 1u, 1u,
                                     0u, nullptr, arguments, nullptr);
  if (!works("cuLaunchKernel", result)) return false;
  if (!works("cuCtxSynchronize", calls_.call<CtxSynchronize>("cuCtxSynchronize"))) return false;
  result = calls_.call<MemcpyDtoH>("cuMemcpyDtoH_v2", static_cast<void*>(&bad), bad_, sizeof bad);
  if (!works("cuMemcpyDtoH_v2", result)) return false;
  if (bad == ~0u) return true;
  facts_.memory_test = known(format("mismatch at byte {}", chunk.offset + uint64_t{bad} * 8),
                             SourceKind::cuda, "cufit_verify");
  return false;
}

// Everything is written before anything is read: a chunk that aliases another one would pass alone.
bool MemoryTest::pass(uint64_t flip) {
  for (const Chunk& chunk : chunks_) {
    if (!fill(chunk, flip)) return false;
    progress(chunk.bytes);
  }
  for (const Chunk& chunk : chunks_) {
    if (!verify(chunk, flip)) return false;
    progress(chunk.bytes);
  }
  return true;
}

void MemoryTest::run() {
  if (allocate() && load()) {
    facts_.memory_tested_bytes = known(total_, SourceKind::cuda, "cufit_verify");
    if (pass(0) && pass(~uint64_t{0})) {
      facts_.memory_test = known<std::string>("ok", SourceKind::cuda, "cufit_verify");
    }
  }
  if (module_) calls_.call<ModuleUnload>("cuModuleUnload", module_);
  for (const Chunk& chunk : chunks_) calls_.call<MemFree>("cuMemFree_v2", chunk.at);
  if (bad_) calls_.call<MemFree>("cuMemFree_v2", bad_);
}

}  // namespace

void test_memory(DriverCalls& calls, facts::CudaDevice& facts) { MemoryTest(calls, facts).run(); }

}  // namespace cufit::host
