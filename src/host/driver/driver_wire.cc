// SPDX-License-Identifier: Apache-2.0
#include "host/driver/driver_wire.h"

#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "base/format.h"
#include "facts/facts_fields.h"

namespace cufit::host {
namespace {

constexpr size_t k_frame_header = 9;        // u32 size, u8 kind, u32 index
constexpr uint32_t k_max_frame = 4u << 20;  // a GPU with 10 000 processes needs 600 KiB
constexpr uint32_t k_max_devices =
    256;  // NVML numbers at most 64 GPUs; CUDA shows at most as many MIG slices

// --- writing
// ---------------------------------------------------------------------------------------------------

template <class T>
void put_number(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

struct Writer {
  std::string& out;

  template <class T>
  void operator()(const char*, const T& value) {
    put(value);
  }

  void put(const std::string& value) {
    put_number(out, static_cast<uint32_t>(value.size()));
    out += value;
  }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      put_number(out, static_cast<uint8_t>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      put_number(out, value);
    } else {
      facts::visit_fields(*this, value);
    }
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put_number(out, static_cast<uint32_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const Fact<T>& fact) {
    put(fact.value.has_value());
    if (fact.value) put(*fact.value);
    put_number(out, static_cast<uint8_t>(fact.source.kind));
    put_number(out, static_cast<uint8_t>(fact.why));
    put(fact.source.detail);
    put(fact.note);
  }
};

class Frame {
 public:
  Frame(std::string& out, FrameKind kind, uint32_t index) : out_(out), start_(out.size()) {
    put_number(out_, uint32_t{0});
    put_number(out_, static_cast<uint8_t>(kind));
    put_number(out_, index);
  }
  ~Frame() {
    uint32_t size = static_cast<uint32_t>(out_.size() - start_ - 4);
    std::memcpy(&out_[start_], &size, sizeof size);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  std::string& out_;
  size_t start_;
};

// --- reading
// ---------------------------------------------------------------------------------------------------

struct Reader {
  std::string_view in;
  bool good = true;

  template <class T>
  void operator()(const char*, T& value) {
    get(value);
  }

  template <class T>
  T number() {
    if (in.size() < sizeof(T)) {
      good = false;
      in = {};
      return T{};
    }
    T value = load_le<T>(in.data());
    in.remove_prefix(sizeof(T));
    return value;
  }
  void get(std::string& value) {
    uint32_t size = number<uint32_t>();
    if (size > in.size()) {
      good = false;
      in = {};
      return;
    }
    value.assign(in.data(), size);
    in.remove_prefix(size);
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = number<uint8_t>() != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = number<T>();
    } else {
      facts::visit_fields(*this, value);
    }
  }
  template <class T>
  void get(std::vector<T>& values) {
    uint32_t count = number<uint32_t>();
    values.clear();
    // Every element takes at least one byte, so a hostile count ends with the bytes.
    for (uint32_t i = 0; i < count && good; ++i) get(values.emplace_back());
  }
  template <class T>
  void get(Fact<T>& fact) {
    bool present = false;
    get(present);
    fact.value.reset();
    if (present) get(fact.value.emplace());
    uint8_t kind = number<uint8_t>();
    uint8_t why = number<uint8_t>();
    if (kind > static_cast<uint8_t>(SourceKind::assumed) ||
        why > static_cast<uint8_t>(WhyNot::not_asked)) {
      good = false;
      return;
    }
    fact.source.kind = static_cast<SourceKind>(kind);
    fact.why = static_cast<WhyNot>(why);
    get(fact.source.detail);
    get(fact.note);
  }
};

// Decodes into a copy first: a damaged frame must not leave half of its values behind.
template <class T>
bool replace(std::string_view payload, T& target) {
  Reader reader{payload};
  T value;
  reader.get(value);
  if (!reader.good || !reader.in.empty()) return false;
  target = std::move(value);
  return true;
}

bool take_nvml(std::string_view payload, uint32_t count, facts::NvmlFacts& nvml) {
  std::vector<facts::NvmlGpu> gpus = std::move(nvml.gpus);
  bool good = count <= k_max_devices && replace(payload, nvml);
  nvml.gpus = std::move(gpus);
  if (!good) return false;
  for (uint32_t i = static_cast<uint32_t>(nvml.gpus.size()); i < count; ++i)
    nvml.gpus.emplace_back().index = i;
  return true;
}

bool take_cuda(std::string_view payload, uint32_t count, facts::CudaFacts& cuda) {
  std::vector<facts::CudaDevice> devices = std::move(cuda.devices);
  bool good = count <= k_max_devices && replace(payload, cuda);
  cuda.devices = std::move(devices);
  if (!good) return false;
  for (uint32_t i = static_cast<uint32_t>(cuda.devices.size()); i < count; ++i) {
    cuda.devices.emplace_back().ordinal = i;
  }
  return true;
}

bool take_frame(char kind, uint32_t index, std::string_view payload, ChildAnswers& answers) {
  switch (static_cast<FrameKind>(kind)) {
    case FrameKind::call:
      answers.call.assign(payload);
      return true;
    case FrameKind::nvml:
      return take_nvml(payload, index, answers.nvml);
    case FrameKind::cuda:
      return take_cuda(payload, index, answers.cuda);
    case FrameKind::gpu:
      return index < answers.nvml.gpus.size() && replace(payload, answers.nvml.gpus[index]);
    case FrameKind::device:
      return index < answers.cuda.devices.size() && replace(payload, answers.cuda.devices[index]);
    case FrameKind::progress: {
      Reader reader{payload};
      answers.progress_done = reader.number<uint64_t>();
      answers.progress_total = reader.number<uint64_t>();
      answers.progress_what.assign(reader.in);
      ++answers.progress_frames;
      return reader.good;
    }
    case FrameKind::end:
      answers.finished = true;
      return true;
  }
  return false;
}

struct Marker {
  WhyNot why;
  const std::string& tried;
  const std::string& note;
  SourceKind kind;

  template <class T>
  void operator()(const char*, Fact<T>& fact) {
    if (!fact && fact.why == WhyNot::not_asked && fact.note.empty())
      fact = missing<T>(why, kind, tried, note);
  }
  template <class T>
  void operator()(const char*, std::vector<T>& values) {
    if constexpr (std::is_class_v<T>) {
      for (T& value : values) facts::visit_fields(*this, value);
    }
  }
  template <class T>
  void operator()(const char*, T&) {}
};

}  // namespace

void put_call(std::string& out, std::string_view name) {
  Frame frame(out, FrameKind::call, 0);
  out += name;
}

void put_nvml(std::string& out, const facts::NvmlFacts& nvml) {
  Frame frame(out, FrameKind::nvml, static_cast<uint32_t>(nvml.gpus.size()));
  facts::NvmlFacts without_gpus = nvml;
  without_gpus.gpus.clear();
  Writer{out}.put(without_gpus);
}

void put_gpu(std::string& out, uint32_t place, const facts::NvmlGpu& gpu) {
  Frame frame(out, FrameKind::gpu, place);
  Writer{out}.put(gpu);
}

void put_cuda(std::string& out, const facts::CudaFacts& cuda) {
  Frame frame(out, FrameKind::cuda, static_cast<uint32_t>(cuda.devices.size()));
  facts::CudaFacts without_devices = cuda;
  without_devices.devices.clear();
  Writer{out}.put(without_devices);
}

void put_device(std::string& out, uint32_t place, const facts::CudaDevice& device) {
  Frame frame(out, FrameKind::device, place);
  Writer{out}.put(device);
}

void put_progress(std::string& out, std::string_view what, uint64_t done, uint64_t total) {
  Frame frame(out, FrameKind::progress, 0);
  put_number(out, done);
  put_number(out, total);
  out += what;
}

void put_end(std::string& out) { Frame frame(out, FrameKind::end, 0); }

size_t take_frames(std::string_view bytes, ChildAnswers& answers) {
  size_t used = 0;
  while (answers.damage.empty() && bytes.size() - used >= k_frame_header) {
    const char* at = bytes.data() + used;
    uint32_t size = load_le<uint32_t>(at);
    if (size < k_frame_header - 4 || size > k_max_frame) {
      answers.damage = format("frame size {} from the child is impossible", size);
      break;
    }
    if (bytes.size() - used - 4 < size) break;
    std::string_view payload(at + k_frame_header, size - (k_frame_header - 4));
    if (!take_frame(at[4], load_le<uint32_t>(at + 5), payload, answers)) {
      answers.damage = format("damaged frame of kind {} from the child", static_cast<int>(at[4]));
      break;
    }
    used += 4 + size;
  }
  return used;
}

void mark_unreached(facts::NvmlFacts& nvml, WhyNot why, const std::string& tried,
                    const std::string& note) {
  Marker marker{why, tried, note, SourceKind::nvml};
  facts::visit_fields(marker, nvml);
}

void mark_unreached(facts::CudaFacts& cuda, WhyNot why, const std::string& tried,
                    const std::string& note) {
  Marker marker{why, tried, note, SourceKind::cuda};
  facts::visit_fields(marker, cuda);
}

}  // namespace cufit::host
