// SPDX-License-Identifier: Apache-2.0
#include "host/driver/answer_cache.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "host/files/atomic_write.h"
#include "host/files/own_cache.h"

namespace cufit::host {
namespace {

constexpr std::string_view k_schema = "cufit.gpu-answers/1\n";
constexpr size_t k_answer_cache_most_bytes = 64u << 10;
constexpr size_t k_most_files = 64;
constexpr size_t k_most_devices = 256;

// FNV-1a: finds damage, not malice; an entry that somebody else could write is not read at all.
uint64_t checksum(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// One value in a line of tab-separated ones.
std::string field(const std::string& text) {
  std::string out = formats::printable(text, 512);
  for (char& c : out)
    if (c == '\t' || c == '\n') c = ' ';
  return out;
}

template <class T>
std::string number_or_dash(const Fact<T>& fact) {
  return fact ? std::to_string(*fact) : "-";
}

std::string text_or_dash(const Fact<std::string>& fact) {
  return fact && !fact->empty() ? field(*fact) : "-";
}

bool take_number(std::string_view text, const char* call, SourceKind kind, Fact<int>& fact) {
  if (text == "-") return true;
  const std::optional<uint64_t> number = parse_uint(text);
  if (!number || *number > 1'000'000) return false;
  fact = known(static_cast<int>(*number), kind, call);
  return true;
}

void take_text(std::string_view text, const char* call, SourceKind kind, Fact<std::string>& fact) {
  if (text != "-") fact = known(std::string(text), kind, call);
}

bool take_device(const std::vector<std::string_view>& parts, facts::CudaFacts& cuda) {
  if (parts.size() != 5 || cuda.devices.size() >= k_most_devices) return false;
  facts::CudaDevice device;
  device.ordinal = static_cast<uint32_t>(cuda.devices.size());
  take_text(parts[1], "cuDeviceGetPCIBusId", SourceKind::cuda, device.pci_address);
  take_text(parts[2], "cuDeviceGetAttribute", SourceKind::cuda, device.compute_capability);
  take_text(parts[3], "cuDeviceGetUuid", SourceKind::cuda, device.uuid);
  take_text(parts[4], "cuDeviceGetName", SourceKind::cuda, device.name);
  cuda.devices.push_back(std::move(device));
  return true;
}

bool take_line(std::string_view line, facts::CudaFacts& cuda, facts::NvmlFacts& nvml) {
  const std::vector<std::string_view> parts = split(line, '\t');
  if (parts[0] == "device") return take_device(parts, cuda);
  if (parts.size() != 2) return false;
  if (parts[0] == "init")
    return take_number(parts[1], "cuInit", SourceKind::cuda, cuda.init_result);
  if (parts[0] == "cuda")
    return take_number(parts[1], "cuDriverGetVersion", SourceKind::cuda, cuda.driver_version);
  if (parts[0] == "nvml_cuda")
    return take_number(parts[1], "nvmlSystemGetCudaDriverVersion", SourceKind::nvml,
                       nvml.cuda_version);
  if (parts[0] == "driver") {
    take_text(parts[1], "nvmlSystemGetDriverVersion", SourceKind::nvml, nvml.driver_version);
    return true;
  }
  if (parts[0] == "library") {
    take_text(parts[1], "libcuda.so.1", SourceKind::cuda, cuda.library);
    return true;
  }
  return false;
}

bool is_good(const facts::CudaFacts& cuda) { return cuda.init_result && *cuda.init_result == 0; }

// A driver that hangs, crashes or refuses is asked again each time: once it is mended, no launch
// may be refused for what was.
bool may_be_kept(const facts::CudaFacts& cuda) {
  constexpr int k_no_device = 100;
  return is_good(cuda) || (cuda.init_result && *cuda.init_result == k_no_device);
}

// Of file_of(): somebody else's files in the folder stay.
bool is_entry_name(std::string_view name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

// Entries of machines that were started anew are never used again.
void thin_out(const std::string& folder) {
  const auto files = own_cache_files(folder, is_entry_name);
  if (files.size() < k_most_files) return;
  for (const auto& [changed, path] : files) ::unlink(path.c_str());
}

}  // namespace

uint64_t boot_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec);
}

AnswerCache::AnswerCache(const Host& host) : folder_(own_cache_folder(host, "gpus")) {}

std::string AnswerCache::file_of(const std::string& key) const {
  return format("{}/{:016x}", folder_, checksum(key));
}

std::string entry_text(const std::string& key, uint64_t seconds, const facts::Facts& facts) {
  std::string out(k_schema);
  out += format("made {}\nkey {}\n{}", seconds, key.size(), key);
  out += format("library\t{}\n", text_or_dash(facts.cuda.library));
  out += format("init\t{}\n", number_or_dash(facts.cuda.init_result));
  out += format("cuda\t{}\n", number_or_dash(facts.cuda.driver_version));
  out += format("driver\t{}\n", text_or_dash(facts.nvml.driver_version));
  out += format("nvml_cuda\t{}\n", number_or_dash(facts.nvml.cuda_version));
  for (const facts::CudaDevice& device : facts.cuda.devices)
    out += format("device\t{}\t{}\t{}\t{}\n", text_or_dash(device.pci_address),
                  text_or_dash(device.compute_capability), text_or_dash(device.uuid),
                  text_or_dash(device.name));
  return sealed(std::move(out));
}

std::string sealed(std::string body) {
  body += format("sum {:016x}\n", checksum(body));
  return body;
}

bool read_entry(const std::string& text, const std::string& key, uint64_t seconds,
                facts::Facts& facts) {
  constexpr size_t k_sum_line = 4 + 16 + 1;
  if (!starts_with(text, k_schema) || text.size() < k_schema.size() + k_sum_line) return false;
  const std::string_view body = std::string_view(text).substr(0, text.size() - k_sum_line);
  if (std::string_view(text).substr(body.size()) != format("sum {:016x}\n", checksum(body)))
    return false;
  std::string_view rest = body.substr(k_schema.size());
  const size_t made_end = rest.find('\n');
  if (!starts_with(rest, "made ") || made_end == std::string_view::npos) return false;
  const std::optional<uint64_t> made = parse_uint(rest.substr(5, made_end - 5));
  rest.remove_prefix(made_end + 1);
  const std::string head = format("key {}\n{}", key.size(), key);
  if (!made || *made > seconds || !starts_with(rest, head)) return false;
  rest.remove_prefix(head.size());
  facts::CudaFacts cuda;
  facts::NvmlFacts nvml;
  for (std::string_view line : split_lines(rest))
    if (!line.empty() && !take_line(line, cuda, nvml)) return false;
  const uint64_t life = is_good(cuda) ? k_answer_life_seconds : k_no_device_life_seconds;
  if (!may_be_kept(cuda) || seconds - *made >= life) return false;
  cuda.device_count =
      known(static_cast<int>(cuda.devices.size()), SourceKind::cuda, "cuDeviceGetCount");
  facts.cuda = std::move(cuda);
  facts.nvml = std::move(nvml);
  return true;
}

bool AnswerCache::load(const std::string& key, uint64_t seconds, facts::Facts& facts) const {
  if (folder_.empty() || key.empty()) return false;
  const std::optional<std::string> text = read_own_file(file_of(key), k_answer_cache_most_bytes);
  return text && read_entry(*text, key, seconds, facts);
}

Result<void> AnswerCache::save(const std::string& key, uint64_t seconds,
                               const facts::Facts& facts) const {
  if (folder_.empty() || key.empty() || !may_be_kept(facts.cuda)) return {};
  const std::string text = entry_text(key, seconds, facts);
  if (text.size() > k_answer_cache_most_bytes || !make_own_folder(folder_))
    return fail(Code::io, format("`{}` cannot be used", folder_));
  thin_out(folder_);
  const std::string path = file_of(key);
  if (const int why = replace_file(path, text, {.mode = 0600, .sync = false}); why != 0)
    return fail(Code::io, format("`{}` cannot be written: {}", path, std::strerror(why)));
  return {};
}

}  // namespace cufit::host
