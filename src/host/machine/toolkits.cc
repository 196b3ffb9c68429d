// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <algorithm>
#include <set>

#include "base/version.h"
#include "formats/system/toolkit_version.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

std::string parent_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos || slash == 0) return "/";
  return path.substr(0, slash);
}

// /usr/local/cuda-12.4/bin/nvcc -> /usr/local/cuda-12.4. Debian's package has
// /usr/lib/nvidia-cuda-toolkit/bin/nvcc.
std::string folder_of_nvcc(const Host& host, const std::string& nvcc) {
  Result<std::string> real = host.real_path(nvcc);
  return parent_of(parent_of(real ? *real : nvcc));
}

std::vector<std::string> library_dirs(const std::string& folder) {
  std::vector<std::string> out = {folder + "/lib64", folder + "/targets/x86_64-linux/lib",
                                  folder + "/targets/sbsa-linux/lib",
                                  folder + "/targets/aarch64-linux/lib", folder + "/lib"};
  if (folder == "/usr" || folder == "/usr/lib/nvidia-cuda-toolkit") {
    out.push_back("/usr/lib/x86_64-linux-gnu");
    out.push_back("/usr/lib/aarch64-linux-gnu");
  }
  return out;
}

// "libcudart.so.12.4.127" -> "12.4"; the third number is the library's own and not the toolkit's.
Fact<std::string> version_of_runtime(const Host& host, const std::string& folder) {
  constexpr std::string_view k_stem = "libcudart.so.";
  for (const std::string& dir : library_dirs(folder)) {
    Result<std::vector<std::string>> names = host.list(dir);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!starts_with(name, k_stem)) continue;
      std::optional<Version> version = parse_version(std::string_view(name).substr(k_stem.size()));
      if (!version || version->parts.size() < 3) continue;
      return known(format("{}.{}", version->part(0), version->part(1)), SourceKind::file,
                   dir + "/" + name);
    }
  }
  return missing<std::string>(WhyNot::not_present, SourceKind::file, folder + "/version.json");
}

// "#define CUDA_VERSION 12040" near the top of cuda.h -> "12.4".
Fact<std::string> version_of_header(const Host& host, const std::string& folder) {
  constexpr std::string_view k_define = "#define CUDA_VERSION ";
  const std::string path = folder + "/include/cuda.h";
  Result<std::string> text = host.read_head(path, 32u << 10);
  size_t at = text ? text->find(k_define) : std::string::npos;
  if (at == std::string::npos) return {};
  std::string_view digits = std::string_view(*text).substr(at + k_define.size());
  std::optional<uint64_t> number =
      parse_uint(digits.substr(0, digits.find_first_not_of("0123456789")));
  if (!number || *number < 1000 || *number > 1000000) return {};
  return known(cuda_version_text(static_cast<int>(*number)), SourceKind::file, path);
}

Fact<std::string> version_of(const Host& host, const std::string& folder) {
  const std::string json = folder + "/version.json", text = folder + "/version.txt";
  if (Result<std::string> content = host.read_file(json, 1u << 20)) {
    std::string version = formats::parse_toolkit_json(*content);
    if (!version.empty()) return known(version, SourceKind::file, json);
  }
  if (Result<std::string> content = host.read_file(text, 1u << 16)) {
    std::string version = formats::parse_toolkit_text(*content);
    if (!version.empty()) return known(version, SourceKind::file, text);
  }
  Fact<std::string> from_header = version_of_header(host, folder);
  return from_header ? from_header : version_of_runtime(host, folder);
}

// A folder with only `compat` (the cuda-compat package) or the like is no toolkit.
bool is_toolkit(const Host& host, const std::string& folder) {
  for (const char* part : {"/bin/nvcc", "/version.json", "/version.txt", "/lib64", "/targets"}) {
    if (host.exists(folder + part)) return true;
  }
  return false;
}

class ToolkitList {
 public:
  ToolkitList(const Host& host, std::vector<facts::Toolkit>& out) : host_(host), out_(out) {}

  void add(const std::string& folder, const std::string& found_by) {
    Result<std::string> real = host_.real_path(folder);
    if (!real || !is_toolkit(host_, *real) || !seen_.insert(*real).second) return;
    facts::Toolkit toolkit;
    toolkit.path = *real;
    toolkit.version = version_of(host_, *real);
    std::string nvcc = *real + "/bin/nvcc";
    toolkit.nvcc = host_.exists(nvcc)
                       ? known(nvcc, SourceKind::file, nvcc)
                       : missing<std::string>(WhyNot::not_present, SourceKind::file, nvcc);
    if (Result<std::string> json = host_.read_file(*real + "/version.json", 1u << 20)) {
      std::string version = formats::parse_toolkit_nvcc(*json);
      if (!version.empty())
        toolkit.nvcc_version = known(version, SourceKind::file, *real + "/version.json");
    }
    toolkit.found_by = found_by;
    out_.push_back(std::move(toolkit));
  }

  void add_nvcc(const std::string& nvcc, const std::string& found_by) {
    std::string folder = folder_of_nvcc(host_, nvcc);
    size_t before = out_.size();
    add(folder, found_by);
    if (out_.size() > before && !out_.back().nvcc)
      out_.back().nvcc = known(nvcc, SourceKind::file, nvcc);
    Result<std::string> real = host_.real_path(folder);
    for (facts::Toolkit& toolkit : out_) toolkit.on_path |= real && toolkit.path == *real;
  }

 private:
  const Host& host_;
  std::vector<facts::Toolkit>& out_;
  std::set<std::string> seen_;
};

void add_from_path(const Host& host, ToolkitList& list) {
  const std::string path = host.variable("PATH").value_or("");
  for (std::string_view dir : split(path, ':')) {
    if (dir.empty() || dir[0] != '/') continue;
    std::string nvcc = std::string(dir) + "/nvcc";
    Result<FileStatus> status = host.status(nvcc);
    if (!status || !status->is_regular) continue;
    list.add_nvcc(nvcc, "PATH");
    return;  // only the first one runs
  }
}

}  // namespace

// In the order in which torch.utils.cpp_extension looks for one, so that the first entry is what a
// build would use.
void read_toolkits(const Host& host, facts::Facts& facts) {
  ToolkitList list(host, facts.toolkits);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    std::string folder = host.variable(name).value_or("");
    if (!folder.empty()) list.add(folder, name);
  }
  add_from_path(host, list);
  list.add("/usr/local/cuda", "/usr/local");
  for (const char* parent : {"/usr/local", "/opt"}) {
    Result<std::vector<std::string>> names = host.list(parent);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (name == "cuda" || starts_with(name, "cuda-"))
        list.add(std::string(parent) + "/" + name, parent);
    }
  }
}

}  // namespace cufit::host
