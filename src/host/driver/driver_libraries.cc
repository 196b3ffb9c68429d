// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <algorithm>
#include <set>

#include "formats/binary/elf.h"
#include "formats/system/nvidia_version.h"
#include "formats/system/toolkit_version.h"
#include "host/files/file_facts.h"
#include "host/machine/loader.h"

namespace cufit::host {
namespace {

struct Wanted {
  const char *soname, *stem;  // the name a program asks for, and the start of every file name of it
};
constexpr Wanted k_wanted[] = {{"libcuda.so.1", "libcuda.so"},
                               {"libnvidia-ml.so.1", "libnvidia-ml.so"}};
constexpr size_t k_max_copies = 64;

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

// "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01" -> "535.183.01"
std::string version_in_name(std::string_view path, std::string_view stem) {
  size_t slash = path.find_last_of('/');
  std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (!starts_with(name, stem) || name.size() <= stem.size() + 1) return {};
  std::string_view version = name.substr(stem.size() + 1);
  // "libcuda.so.1.1" of WSL is no driver version; branches have three digits.
  bool has_branch = version.find('.') == 3;
  return has_branch && formats::is_driver_version(version) ? std::string(version) : std::string();
}

// The folder says what a copy is for. Distributions put the driver's files under many names, so
// what is none of the special kinds is the driver's.
std::string origin_of(const std::string& path, const std::string& real) {
  for (const std::string& each : {path, real}) {
    if (contains(each, "/stubs/")) return "stub";
    if (contains(each, "/compat/") || contains(each, "/compat_orin/") ||
        contains(each, "/cuda-compat"))
      return "compat";
    if (starts_with(each, "/usr/lib/wsl/")) return "wsl";
    if (contains(each, "/site-packages/") || contains(each, "/dist-packages/")) return "package";
  }
  return "driver";
}

class CopyList {
 public:
  CopyList(const Host& host, std::vector<facts::DriverLibrary>& out) : host_(host), out_(out) {}

  // Each file once, under the first path that leads to it.
  void add(const Wanted& wanted, const Located& found, bool loads) {
    Result<std::string> real = host_.real_path(found.path);
    const std::string real_path = real ? *real : found.path;
    if (out_.size() >= k_max_copies || !seen_.insert(wanted.soname + real_path).second) return;
    facts::DriverLibrary copy;
    copy.soname = wanted.soname;
    copy.path = formats::printable(found.path, 4096);
    copy.realpath = formats::printable(real_path, 4096);
    copy.version = version_in_name(real_path, wanted.stem);
    copy.origin = origin_of(found.path, real_path);
    copy.loads = loads;
    copy.found_by = found.by;
    copy.problem = found.problem;
    if (copy.version.empty()) copy.version = version_beside(real_path, wanted.stem);
    if (copy.origin == "compat") read_note(real_path, copy);
    out_.push_back(std::move(copy));
  }

  void add_scanned(const Wanted& wanted, const std::string& path) {
    Result<std::string> head = host_.read_head(path, 20);
    if (!head) return;
    std::string problem;
    if (head->size() < 20) {
      problem = "file too short";
    } else if (!starts_with(*head,
                            "\x7f"
                            "ELF")) {
      problem = "invalid ELF header";
    } else if ((*head)[4] != 2) {
      return;  // a 32-bit copy serves other programs
    }
    add(wanted, Located{path, "scan", problem}, false);
  }

 private:
  // Some installers copy instead of linking. A file beside it that has the version in its name and
  // the same size is the same build; anything less stays unknown.
  std::string version_beside(const std::string& path, std::string_view stem) const {
    Result<FileStatus> own = host_.status(path);
    Result<std::vector<std::string>> names = host_.list(folder_of(path));
    if (!own || !names || own->size_bytes == 0) return {};
    std::string version;
    for (const std::string& name : *names) {
      std::string each = version_in_name(name, stem);
      if (each.empty()) continue;
      Result<FileStatus> other = host_.status(folder_of(path) + "/" + name);
      if (!other || other->size_bytes != own->size_bytes) continue;
      if (!version.empty()) return {};
      version = each;
    }
    return version;
  }

  void read_note(const std::string& path, facts::DriverLibrary& copy) const {
    Result<std::unique_ptr<ByteSource>> source = host_.open(path);
    if (!source) return;
    formats::ElfOptions options;
    options.device_code = false;
    Result<formats::ElfFile> elf = formats::read_elf(**source, options);
    if (!elf || elf->compat_note.empty()) return;
    std::optional<formats::CompatNote> note = formats::parse_compat_note(elf->compat_note);
    if (!note) return;
    copy.compat_cuda = note->cuda;
    copy.compat_drivers = note->drivers;
    copy.compat_devices = note->devices;
  }

  const Host& host_;
  std::vector<facts::DriverLibrary>& out_;
  std::set<std::string> seen_;
};

void add_children(const Host& host, const std::string& parent, std::string_view prefix,
                  const std::vector<std::string>& below, std::vector<std::string>& out) {
  Result<std::vector<std::string>> names = host.list(parent);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!starts_with(name, prefix)) continue;
    for (const std::string& part : below) out.push_back(parent + "/" + name + part);
  }
}

// Where copies lie that no search path names: they show what was installed, and which one is in the
// way.
std::vector<std::string> places(const Host& host, const facts::SystemFacts& system) {
  const std::string machine = system.architecture.value_or("x86_64");
  const std::string triple = machine + "-linux-gnu";
  std::vector<std::string> out = {"/usr/lib/" + triple,
                                  "/usr/lib/" + triple + "/nvidia",
                                  "/usr/lib/" + triple + "/nvidia/current",
                                  "/usr/lib/" + triple + "/tegra",
                                  "/usr/lib64",
                                  "/usr/lib64/nvidia",
                                  "/usr/lib",
                                  "/usr/local/lib",
                                  "/usr/local/lib64",
                                  "/usr/local/nvidia/lib64",
                                  "/usr/local/nvidia/lib",
                                  "/run/opengl-driver/lib",
                                  "/usr/lib/wsl/lib"};
  add_children(host, "/usr/lib/wsl/drivers", "nv", {""}, out);
  add_children(host, "/usr/lib", "nvidia-", {""}, out);
  const std::string target = machine == "aarch64" ? "sbsa-linux" : "x86_64-linux";
  const std::vector<std::string> parts = {"/compat", "/compat_orin", "/lib64/stubs", "/lib/stubs",
                                          "/targets/" + target + "/lib/stubs"};
  add_children(host, "/usr/local", "cuda", parts, out);
  add_children(host, "/opt", "cuda", parts, out);
  return out;
}

// "libcuda.so.1", "libcuda.so" (stubs have no number), "libcuda.so.1.1" (WSL), and each version's
// own file.
void scan(const Host& host, const std::string& folder, CopyList& copies) {
  Result<std::vector<std::string>> names = host.list(folder);
  if (!names) return;
  for (const Wanted& wanted : k_wanted) {
    for (auto name = std::lower_bound(names->begin(), names->end(), wanted.stem);
         name != names->end() && starts_with(*name, wanted.stem); ++name) {
      std::string_view rest = std::string_view(*name).substr(std::string_view(wanted.stem).size());
      bool is_library = rest.empty() || rest == ".1" || rest == ".1.1" ||
                        !version_in_name(*name, wanted.stem).empty();
      if (is_library) copies.add_scanned(wanted, folder + "/" + *name);
    }
  }
}

}  // namespace

void read_loaded_libcuda(const Host& host, facts::Facts& facts) {
  LibrarySearch search(host, read_loader_settings(host));
  CopyList copies(host, facts.driver_libraries);
  const Wanted& libcuda = k_wanted[0];
  if (const std::optional<Located> found = search.find(libcuda.soname))
    copies.add(libcuda, *found, found->problem.empty());
}

void read_driver_libraries(const Host& host, facts::Facts& facts) {
  LibrarySearch search(host, read_loader_settings(host));
  for (const std::string& problem : search.settings().problems) facts.problems.push_back(problem);
  if (search.settings().libc == "musl") {
    facts.problems.push_back(
        "musl's loader is not simulated: which driver library loads is unknown");
  }
  CopyList copies(host, facts.driver_libraries);
  for (const Wanted& wanted : k_wanted) {
    // glibc takes the first file; when it is damaged the search ends there and nothing is loaded.
    bool is_first = true;
    for (const Located& found : search.find_all(wanted.soname)) {
      copies.add(wanted, found, is_first && found.problem.empty());
      is_first = false;
    }
  }
  for (const std::string& folder : places(host, facts.system)) scan(host, folder, copies);
}

}  // namespace cufit::host
