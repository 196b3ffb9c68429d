// SPDX-License-Identifier: Apache-2.0
// Libraries of CUDA and of the driver, copies of one library, bytes that no container sees.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "resolve/image/image_audit_parts.h"

namespace cufit::resolve {
namespace {

// Names of CUDA's libraries up to ".so".
const std::string_view k_cuda[] = {
    "libcudart", "libcublas",    "libcublasLt", "libcudnn",        "libnccl",     "libcufft",
    "libcufftw", "libcurand",    "libcusolver", "libcusolverMg",   "libcusparse", "libcusparseLt",
    "libnvrtc",  "libnvJitLink", "libcupti",    "libnvshmem_host", "libcufile",   "libnvToolsExt"};
const std::string_view k_driver[] = {"libcuda",         "libnvidia-ml", "libnvidia-ptxjitcompiler",
                                     "libnvidia-nvvm",  "libnvcuvid",   "libnvidia-encode",
                                     "libnvidia-opencl"};

std::string stem_of(std::string_view name) {
  const size_t end = name.find(".so");
  return std::string(end == std::string_view::npos ? name : name.substr(0, end));
}

template <size_t N>
bool is_one_of(const std::string_view (&list)[N], const std::string& name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_cuda(const std::string& stem) {
  return is_one_of(k_cuda, stem) || starts_with(stem, "libcudnn_");
}

// "libcudnn.so.9", "9.5.1" of "libcudnn.so.9.5.1": the first number is the name's.
void split_name(const std::string& file, std::string& name, std::string& version) {
  const size_t so = file.find(".so.");
  name = file;
  if (so == std::string::npos) return;
  const std::string numbers = file.substr(so + 4);
  const size_t dot = numbers.find('.');
  name = file.substr(0, so + 4) + numbers.substr(0, dot);
  if (dot != std::string::npos) version = numbers;
}

// Which distribution brings site-packages/nvidia/cudnn/lib/libcudnn.so.9.
const facts::Distribution* owner_of(const facts::Facts& facts, const std::string& path) {
  const size_t at = path.find("/nvidia/");
  if (at == std::string::npos) return nullptr;
  const std::string site = path.substr(0, at);
  std::string part = path.substr(at + 8, path.find('/', at + 8) - at - 8);
  std::replace(part.begin(), part.end(), '_', '-');
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.distributions) continue;
    for (const facts::Distribution& one : *env.distributions)
      if (starts_with(one.location, site + "/") &&
          (one.name == "nvidia-" + part || starts_with(one.name, "nvidia-" + part + "-cu")))
        return &one;
  }
  return nullptr;
}

// The loader's names for a file lead through links and "..".
using Loaded = std::map<std::string, const facts::LoadedLibrary*>;
Loaded loaded_files(const facts::Facts& facts, const facts::ImageTree& tree) {
  Loaded out;
  for (const facts::PythonEnv& env : facts.envs)
    for (const facts::LoadedLibrary& one : env.loads) {
      std::string path = one.path;
      if (!path.empty() && tree.find(path) != nullptr) out.emplace(path, &one);
    }
  return out;
}

// Names that hold no version but what the ABI was called when it was made: CUDA 11.7's runtime is
// libcudart.so.11.0 as well.
bool is_abi_name(const std::string& file) {
  return ends_with(file, "/libcudart.so.11.0") || ends_with(file, "/libnvrtc.so.11.2");
}

// "11.7.99" of "nvidia-cuda-runtime-cu11 11.7.99": packages of NVIDIA's libraries have the
// library's version, others that bring a copy along (torch 2.6.0) do not.
std::string library_version(const std::string& package) {
  const size_t space = package.rfind(' ');
  if (space == std::string::npos) return {};
  for (const char* start : {"nvidia-", "cuda-", "cudnn ", "nccl ", "libcu", "libnv"})
    if (starts_with(package, start)) return package.substr(space + 1);
  return {};
}

// "9.1.0" and "9.1.0.70": one is the other, told to fewer places.
bool equal_versions(const std::string& a, const std::string& b) {
  const std::string& longer = a.size() < b.size() ? b : a;
  const std::string& shorter = a.size() < b.size() ? a : b;
  return longer == shorter || starts_with(longer, shorter + ".");
}

void name_owner(const facts::Facts& facts, const Loaded& loaded, ImageFile& file) {
  if (const auto found = loaded.find(file.path); found != loaded.end()) {
    file.package = found->second->package;
    if (file.version.empty()) file.version = found->second->version;
  } else if (const facts::Distribution* owner = owner_of(facts, file.path)) {
    file.package = owner->name + " " + owner->version;
    if (file.version.empty()) file.version = owner->version;
  }
  const std::string packaged = library_version(file.package);
  const bool abi_only = std::count(file.version.begin(), file.version.end(), '.') < 2;
  if (!packaged.empty() && abi_only) file.version = packaged;
  if (packaged.empty() && is_abi_name(file.path)) file.version.clear();
}

// Stubs are for linking; cuda-compat's copy has a place of its own.
bool is_stub_or_compat(const std::string& path) {
  return contains(path, "/stubs/") || contains(path, "/compat/") ||
         contains(path, "/compat_orin/") || contains(path, "/cuda-compat");
}

class Libraries {
 public:
  Libraries(const AuditInput& input, ImageAudit& out)
      : tree_(input.tree), facts_(input.facts), out_(out) {}

  void files() {
    const Loaded loaded = loaded_files(facts_, tree_);
    tree_.each_file([&](const std::string& path, const facts::ImageTree::Node& node) {
      ++out_.files;
      out_.file_bytes += node.file.size_bytes;
      const std::string file = path.substr(path.rfind('/') + 1);
      if (file.find(".so") == std::string::npos) return;
      const std::string stem = stem_of(file);
      const bool cuda = is_cuda(stem), driver = is_one_of(k_driver, stem);
      if (!cuda && !driver) return;
      if (is_stub_or_compat(path)) return;
      ImageFile one;
      one.path = path;
      one.size_bytes = node.file.size_bytes;
      one.layer = node.layer;
      split_name(file, one.name, one.version);
      if (cuda) {
        name_owner(facts_, loaded, one);
        out_.libraries.push_back(std::move(one));
      } else if (one.name != stem + ".so") {  // the name for linking is no driver
        out_.driver.push_back(std::move(one));
      }
    });
    std::stable_sort(out_.libraries.begin(), out_.libraries.end(),
                     [](const ImageFile& a, const ImageFile& b) { return a.name < b.name; });
  }

  void copies() {
    std::vector<bool> done(out_.libraries.size());
    for (size_t i = 0; i < out_.libraries.size(); ++i) {
      if (done[i]) continue;
      std::map<size_t, std::vector<const ImageFile*>> places;
      for (size_t k = i; k < out_.libraries.size(); ++k) {
        const ImageFile& file = out_.libraries[k];
        if (done[k] || !same_library(out_.libraries[i], file)) continue;
        done[k] = true;
        const size_t place = place_of(file.path);
        if (place != k_elsewhere) places[place].push_back(&file);
      }
      ImageCopies group{out_.libraries[i].name, {}, 0, places.count(k_system) > 0};
      if (group.in_base && places.size() == 1) continue;  // nothing of an environment
      for (const auto& [place, files] : places) {
        // An environment keeps its own file; the system's is one more beside an environment's.
        const bool none_stays = place == k_system;
        if (files.size() < 2 && !group.in_base) continue;
        uint64_t largest = 0;
        for (const ImageFile* file : files) {
          group.files.push_back(*file);
          group.extra_bytes += file->size_bytes;
          largest = std::max(largest, file->size_bytes);
        }
        if (!none_stays) group.extra_bytes -= largest;
      }
      if (group.files.size() > 1) out_.copies.push_back(std::move(group));
    }
    std::stable_sort(
        out_.copies.begin(), out_.copies.end(),
        [](const ImageCopies& a, const ImageCopies& b) { return a.extra_bytes > b.extra_bytes; });
  }

  void hidden() {
    out_.hidden = tree_.hidden();
    for (const facts::HiddenFile& file : out_.hidden) out_.hidden_bytes += file.size_bytes;
    std::stable_sort(out_.hidden.begin(), out_.hidden.end(),
                     [](const facts::HiddenFile& a, const facts::HiddenFile& b) {
                       return a.size_bytes > b.size_bytes;
                     });
  }

 private:
  // Where a file lies: an environment's folders, or those of the system.
  static constexpr size_t k_system = SIZE_MAX, k_elsewhere = SIZE_MAX - 1;
  size_t place_of(const std::string& path) const {
    size_t place = k_elsewhere, longest = 0;
    const auto consider = [&](size_t env, std::string folder) {
      if (folder.empty() || tree_.find(folder) == nullptr) return;
      if (!starts_with(path, folder + "/") || folder.size() <= longest) return;
      place = env;
      longest = folder.size();
    };
    for (size_t i = 0; i < facts_.envs.size(); ++i) {
      const facts::PythonEnv& env = facts_.envs[i];
      // A Python of the system has "/usr" for a folder, with all that is in it.
      if (env.kind == "venv" || env.kind == "conda") consider(i, env.path);
      for (const std::string& site : env.site_packages)
        consider(i, starts_with(site, "/") ? site : env.path + "/" + site);
    }
    if (place != k_elsewhere) return place;
    for (const char* folder : {"/usr/", "/lib/", "/lib64/", "/opt/"})
      if (starts_with(path, folder)) return k_system;
    return k_elsewhere;
  }

  static bool same_library(const ImageFile& a, const ImageFile& b) {
    if (a.name != b.name) return false;
    if (a.version.empty() || b.version.empty()) return a.size_bytes == b.size_bytes;
    return equal_versions(a.version, b.version);
  }

  const facts::ImageTree& tree_;
  const facts::Facts& facts_;
  ImageAudit& out_;
};

}  // namespace

void audit_libraries(const AuditInput& input, ImageAudit& out) {
  Libraries libraries(input, out);
  libraries.files();
  libraries.copies();
  libraries.hidden();
}

}  // namespace cufit::resolve
