// SPDX-License-Identifier: Apache-2.0
#include "host/driver/nvml_limits.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/driver/driver_wire.h"
#include "host/driver/nvml_calls.h"
#include "host/driver/worker_answer.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

using namespace nvml;

constexpr double k_limits_seconds = 60;  // 3 s a GPU without the persistence daemon
constexpr uint32_t k_most_limited_gpus = 64;

// nvmlSetMemoryLimits_v1_t and nvmlGetMemoryLimits_v1_t of nvidia-ml-py 13.615 (2026-11).
struct SetLimits {
  const char* name_space;
  uint64_t soft, hard;
};
struct GetLimits {
  const char* name_space;
  uint64_t soft, hard, used;
};
static_assert(sizeof(SetLimits) == 24 && sizeof(GetLimits) == 32);

const char* const k_set = "nvmlDeviceSetMemoryLimits_v1";
const char* const k_get = "nvmlDeviceGetMemoryLimits_v1";

// What the child says: one line a GPU, its words parted by tabs, which no word holds (text_of cleans them).
//   nvml SUPPORTED DRIVER
//   undone
//   gpu INDEX NAME UUID RESULT CALL WHY TOTAL [SOFT HARD USED [SOFT HARD USED]]
class LimitChild {
 public:
  LimitChild(DriverCalls& calls, const LimitRequest& request)
      : calls_(calls), nvml_(calls), request_(request) {}

  std::string ask(const std::string& library_dir) {
    const Fact<std::string> library =
        calls_.open(library_dir, "libnvidia-ml.so.1", SourceKind::nvml);
    if (!library) return "error\t" + formats::printable(library.note) + "\n";
    const char* name = nullptr;
    const int result = nvml_.call_any<int()>({"nvmlInit_v2", "nvmlInit"}, name);
    if (result != k_success) return error(name, result);
    std::string out = head();
    uint32_t count = 0;
    const int counted = nvml_.call_any<int(uint32_t*)>(
        {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, name, &count);
    if (counted != k_success) return error(name, counted);
    for (uint32_t i = 0; i < std::min(count, k_most_limited_gpus); ++i) ask_gpu(i);
    if (request_.limits && !set_all()) out += "undone\n";
    for (const Gpu& gpu : gpus_) out += line_of(gpu);
    calls_.call<int()>("nvmlShutdown");
    return out;
  }

 private:
  std::string error(const char* call, int result) const {
    return format("error\t{}: {}\n", call, formats::printable(nvml_.text_of(result)));
  }

  std::string head() {
    char version[80] = {};
    const int result = nvml_.call<int(char*, uint32_t)>("nvmlSystemGetDriverVersion", version,
                                                        uint32_t{sizeof version});
    version[sizeof version - 1] = 0;
    const bool supported = calls_.has(k_set) && calls_.has(k_get);
    return format("nvml\t{}\t{}\n", supported ? 1 : 0,
                  result == k_success ? formats::printable(version) : std::string());
  }

  std::string text(Device device, const char* call) {
    return formats::printable(nvml_.text(device, call).value_or(""));
  }

  struct Gpu {
    uint32_t index = 0;
    Device device = nullptr;
    std::string name, uuid;
    int result = k_success;  // of `call`, which failed
    const char* call = "";
    uint64_t total = 0;
    std::optional<GetLimits> before, after;
  };

  int get(Device device, GetLimits& out) {
    out = {request_.name_space.c_str(), 0, 0, 0};
    return calls_.call<int(Device, GetLimits*)>(k_get, device, &out);
  }

  static std::string numbers(const GetLimits& limits) {
    return format("\t{}\t{}\t{}", limits.soft, limits.hard, limits.used);
  }

  void ask_gpu(uint32_t index) {
    Gpu gpu;
    gpu.index = index;
    gpu.result = nvml_.call_any<int(uint32_t, Device*)>(
        {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, gpu.call, index,
        &gpu.device);
    if (gpu.result == k_success) {
      gpu.name = text(gpu.device, "nvmlDeviceGetName");
      gpu.uuid = text(gpu.device, "nvmlDeviceGetUUID");
      struct {
        uint64_t total, free, used;
      } memory{};
      if (calls_.call<int(Device, void*)>("nvmlDeviceGetMemoryInfo", gpu.device, &memory) ==
          k_success)
        gpu.total = memory.total;
      read(gpu, gpu.before);
    }
    gpus_.push_back(std::move(gpu));
  }

  void read(Gpu& gpu, std::optional<GetLimits>& out) {
    GetLimits limits{};
    gpu.result = get(gpu.device, limits);
    gpu.call = k_get;
    if (gpu.result == k_success) out = limits;
  }

  int set(const Gpu& gpu, uint64_t soft, uint64_t hard) {
    SetLimits wanted{request_.name_space.c_str(), soft, hard};
    return calls_.call<int(Device, SetLimits*)>(k_set, gpu.device, &wanted);
  }

  // False: nothing is set, or no more.
  bool set_all() {
    for (const Gpu& gpu : gpus_)
      if (!gpu.before) return false;
    size_t done = 0;
    for (; done < gpus_.size(); ++done) {
      Gpu& gpu = gpus_[done];
      gpu.result = set(gpu, request_.limits->soft_bytes, request_.limits->hard_bytes);
      gpu.call = k_set;
      if (gpu.result != k_success) break;
    }
    const bool all = done == gpus_.size();
    for (size_t i = 0; i < done; ++i) {
      if (!all) set(gpus_[i], gpus_[i].before->soft, gpus_[i].before->hard);
      read(gpus_[i], gpus_[i].after);
    }
    return all;
  }

  std::string line_of(const Gpu& gpu) const {
    const bool good = gpu.result == k_success;
    std::string out = format("gpu\t{}\t{}\t{}\t{}\t{}\t{}\t{}", gpu.index, gpu.name, gpu.uuid,
                             gpu.result, good ? "" : gpu.call,
                             good ? "" : formats::printable(nvml_.text_of(gpu.result)), gpu.total);
    if (gpu.before) out += numbers(*gpu.before);
    if (gpu.before && gpu.after) out += numbers(*gpu.after);
    return out + "\n";
  }

  DriverCalls& calls_;
  NvmlCalls nvml_;
  const LimitRequest& request_;
  std::vector<Gpu> gpus_;
};

std::optional<facts::MemoryLimits> limits_at(const std::vector<std::string_view>& words,
                                             size_t at) {
  if (words.size() < at + 3) return std::nullopt;
  const auto soft = parse_uint(words[at]), hard = parse_uint(words[at + 1]),
             used = parse_uint(words[at + 2]);
  if (!soft || !hard || !used) return std::nullopt;
  return facts::MemoryLimits{*soft, *hard, *used};
}

Result<LimitAnswer> parse_limit_answer(std::string_view text) {
  LimitAnswer out;
  for (std::string_view line : split_lines(text)) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (words[0] == "error" && words.size() > 1)
      return fail(Code::unsupported, format("NVML: {}", words[1]));
    if (words[0] == "nvml" && words.size() == 3) {
      out.supported = words[1] == "1";
      out.driver = words[2];
    }
    if (words[0] == "undone") out.undone = true;
    if (words[0] != "gpu" || words.size() < 8) continue;
    facts::LimitedGpu gpu;
    gpu.index = static_cast<uint32_t>(parse_uint(words[1]).value_or(0));
    gpu.name = words[2], gpu.uuid = words[3];
    // k_no_symbol is negative.
    gpu.result =
        words[4] == "-1" ? k_no_symbol : static_cast<int>(parse_uint(words[4]).value_or(k_unknown));
    gpu.call = words[5], gpu.why = words[6];
    gpu.total_bytes = parse_uint(words[7]).value_or(0);
    gpu.before = limits_at(words, 8);
    gpu.after = limits_at(words, 11);
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

}  // namespace

Result<LimitAnswer> nvml_memory_limits(const Host& host, const LimitRequest& request,
                                       const std::string& library_dir) {
  CUFIT_TRY(worker, spawn_worker(host, [&](int pipe) {
              DriverCalls calls(pipe);
              std::string out;
              put_progress(out, LimitChild(calls, request).ask(library_dir), 0, 0);
              put_end(out);
              calls.send(out);
            }));
  CUFIT_TRY(answers, read_worker_answer(worker, k_limits_seconds));
  return parse_limit_answer(answers.progress_what);
}

}  // namespace cufit::host
