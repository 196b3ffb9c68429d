// SPDX-License-Identifier: Apache-2.0
#include "host/python/torch_loads.h"

#include <algorithm>
#include <set>
#include <span>

#include "base/format.h"
#include "base/path.h"
#include "facts/cuda_libraries.h"
#include "base/version.h"
#include "formats/python/python_metadata.h"
#include "formats/python/torch_preload.h"

namespace cufit::host {
namespace {

constexpr uint64_t k_max_scanned_library = 64u << 20;

// Part of every process; nobody wants to read about them.
bool is_libc_part(const std::string& name) {
  static const char* const k_parts[] = {"libc.so.",  "libm.so.",      "libpthread.so.",
                                        "libdl.so.", "librt.so.",     "libutil.so.",
                                        "ld-linux",  "libresolv.so.", "libcrypt.so."};
  for (const char* part : k_parts)
    if (starts_with(name, part)) return true;
  return false;
}

class Import {
 public:
  Import(const Host& host, const LibrarySearch& search, const TorchProcess& process,
         const ElfReader& reader)
      : host_(host), search_(search), process_(process), image_(host, search, reader) {}

  TorchLoads run() {
    if (!process_.interpreter.empty()) image_.start(process_.interpreter);
    first_of_torch_ = image_.objects().size();
    std::string global_deps = process_.torch_folder + "/lib/libtorch_global_deps.so";
    if (host_.exists(global_deps)) load_global_deps(global_deps);
    if (std::string extension = find_extension(); !extension.empty())
      record_missing(image_.open(extension, caller(), ProcessImage::OnFailure::keep));
    open_linear_algebra();
    open_cudnn_parts();
    return result();
  }

 private:
  const ImageObject* caller() const {
    return image_.objects().empty() ? nullptr : &image_.objects().front();
  }

  // `later`: opened by name when an operation first needs it; importing torch goes on without,
  // unless the import itself has missed the same name before.
  void record_missing(std::vector<LoadFailure> failures, bool later = false) {
    for (LoadFailure& failure : failures) {
      const bool of_import =
          std::any_of(missing_.begin(), missing_.end(), [&](const LoadFailure& one) {
            return one.name == failure.name && later_.count(one.name) == 0;
          });
      if (later && !of_import) later_.insert(failure.name);
      missing_.push_back(std::move(failure));
    }
  }

  // torch._load_global_deps
  void load_global_deps(const std::string& path) {
    auto text = host_.read_file(process_.torch_folder + "/__init__.py", 4u << 20);
    formats::TorchPreload preload =
        text ? formats::parse_torch_preload(*text) : formats::TorchPreload{};
    std::vector<LoadFailure> failures = image_.open(path, caller(), ProcessImage::OnFailure::undo);
    if (failures.empty()) {
      bool go_on = std::any_of(
          image_.objects().begin(), image_.objects().end(), [&](const ImageObject& object) {
            return contains(object.real_path,
                            preload.maps_marker);  // /proc/self/maps holds resolved paths
          });
      if (go_on) preload_all(preload.after_success, preload);
      return;
    }
    bool is_listed = false;
    for (const formats::PreloadStep& step : preload.after_failure)
      is_listed |= contains(failures[0].name, step.pattern.substr(0, step.pattern.find('.')));
    if (is_listed) preload_all(preload.after_failure, preload);
    record_missing(image_.open(path, caller(), ProcessImage::OnFailure::keep));
  }

  // A step that fails ends the whole (torch lets the exception out or swallows it around the loop).
  void preload_all(const std::vector<formats::PreloadStep>& steps,
                   const formats::TorchPreload& preload) {
    for (const formats::PreloadStep& step : steps) {
      std::string path = find_preload(step, preload.looks_in_cuda_major_folder);
      if (path.empty() && step.required) return;
      if (path.empty()) continue;
      size_t before = image_.objects().size();
      if (!image_.open(path, caller(), ProcessImage::OnFailure::undo).empty()) return;
      if (image_.objects().size() > before) preloaded_.insert(image_.objects()[before].path);
    }
  }

  std::string find_preload(const formats::PreloadStep& step, bool in_major_folder) {
    for (const std::string& dir : process_.sys_path) {
      std::vector<std::string> folders = {dir + "/nvidia/" + step.folder + "/lib"};
      auto cuda = parse_version(process_.cuda);
      if (in_major_folder && cuda)
        folders.push_back(format("{}/nvidia/cu{}/lib", dir, cuda->part(0)));
      folders.push_back(dir + "/" + step.folder + "/lib");
      for (const std::string& folder : folders)
        for (const std::string& name : list(folder))
          if (formats::matches_pattern(name, step.pattern)) return folder + "/" + name;
    }
    return {};
  }

  const std::vector<std::string>& list(const std::string& folder) {
    auto [place, is_new] = listings_.try_emplace(folder);
    if (is_new) place->second = host_.list(folder).value_or(std::vector<std::string>());
    return place->second;
  }

  // torch/_C.cpython-312-x86_64-linux-gnu.so; that of another Python is not importable.
  std::string find_extension() {
    std::string other;
    for (const std::string& name : list(process_.torch_folder)) {
      if (!starts_with(name, "_C.") || !ends_with(name, ".so")) continue;
      std::string tag = formats::python_tag_of(name);
      std::string path = process_.torch_folder + "/" + name;
      if (process_.python_tag.empty() || tag.empty() || tag == "abi3" || tag == process_.python_tag)
        return path;
      other = path;
    }
    return other;
  }

  // libtorch_cuda opens its cuSOLVER part by bare name when it is first used (torch 1.13 and
  // later).
  void open_linear_algebra() {
    const std::string name = "libtorch_cuda_linalg.so";
    const ImageObject* torch_cuda = image_.find("libtorch_cuda.so");
    if (torch_cuda && host_.exists(process_.torch_folder + "/lib/" + name))
      record_missing(image_.open(name, torch_cuda, ProcessImage::OnFailure::keep), true);
  }

  // libcudnn.so.9 opens "libcudnn_ops.so" + ".9" and so on; which ones is in its strings.
  void open_cudnn_parts() {
    std::set<std::string> done;
    for (size_t i = first_of_torch_; i < image_.objects().size() && i < 4096; ++i) {
      const ImageObject& object = image_.objects()[i];
      std::string soname =
          object.elf->soname.empty() ? std::string(file_name(object.path)) : object.elf->soname;
      if (!starts_with(soname, "libcudnn.so.") && !starts_with(soname, "libcudnn_graph.so."))
        continue;
      std::string major = soname.substr(soname.find(".so.") + 4);
      if (major == "8") continue;  // cuDNN 8 opens its parts by need; some of them may be absent
      for (const std::string& stem : cudnn_names_in(object.path)) {
        std::string name = stem + "." + major;
        if (!done.insert(name).second) continue;
        record_missing(image_.open(name, &object, ProcessImage::OnFailure::undo), true);
      }
    }
  }

  std::vector<std::string> cudnn_names_in(const std::string& path) const {
    std::vector<std::string> out;
    auto source = host_.open(path);
    if (!source || (*source)->size_bytes() > k_max_scanned_library) return out;
    // In pieces that overlap by more than a name's length: 4 MB at once cost as much as the rest of
    // the simulation.
    constexpr size_t k_piece = 64u << 10, k_overlap = 256;
    std::string piece(k_piece, '\0');
    for (uint64_t at = 0; at < (*source)->size_bytes(); at += k_piece - k_overlap) {
      auto got = (*source)->read(at, std::as_writable_bytes(std::span(piece)));
      if (!got) return out;
      collect_cudnn_names(std::string_view(piece).substr(0, *got), out);
    }
    return out;
  }

  static void collect_cudnn_names(std::string_view bytes, std::vector<std::string>& out) {
    static constexpr std::string_view k_stem = "libcudnn_";
    for (size_t at = bytes.find(k_stem); at != std::string_view::npos;
         at = bytes.find(k_stem, at + 1)) {
      size_t end = bytes.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at);
      if (end == std::string_view::npos || bytes.substr(end, 4) != std::string_view(".so\0", 4))
        continue;
      std::string name(bytes.substr(at, end + 3 - at));
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    }
  }

  TorchLoads result() {
    TorchLoads out;
    for (size_t i = first_of_torch_; i < image_.objects().size(); ++i) {
      const ImageObject& object = image_.objects()[i];
      if (is_libc_part(std::string(file_name(object.path)))) continue;
      facts::LoadedLibrary library;
      library.name = object.name.find('/') == std::string::npos ? object.name
                     : object.elf->soname.empty() ? std::string(file_name(object.path))
                                                  : object.elf->soname;
      library.path = object.path;
      library.by = object.by == "path" ? "dlopen" : object.by;
      if (preloaded_.count(object.path)) library.by = "torch preload";
      library.asked_by = object.asked_by ? object.asked_by->path : std::string();
      add_versions(object.real_path, library);
      if (facts::is_cuda_library(library.name)) add_shadowed(object, library.name, out.shadowed);
      out.loads.push_back(std::move(library));
    }
    for (const LoadFailure& failure : missing_) {
      // What one dlopen missed another may have brought later.
      if (image_.find(failure.name)) continue;
      bool known =
          std::any_of(out.loads.begin(), out.loads.end(),
                      [&](const facts::LoadedLibrary& one) { return one.name == failure.name; });
      if (known) continue;
      facts::LoadedLibrary library;
      library.name = failure.name;
      library.by = failure.path.empty() ? std::string() : failure.problem + ": " + failure.path;
      if (library.by.empty() && later_.count(failure.name)) library.by = "dlopen";
      library.asked_by = failure.asked_by;
      library.cuda_major = facts::cuda_major_of_library(failure.name);
      out.loads.push_back(std::move(library));
    }
    return out;
  }

  static void add_versions(const std::string& real_path, facts::LoadedLibrary& library) {
    std::string name(file_name(real_path));
    size_t at = name.find(".so.");
    if (at != std::string::npos && name.find('.', at + 4) != std::string::npos)
      library.version = name.substr(at + 4);
    library.cuda_major = facts::cuda_major_of_library(library.name);
  }

  void add_shadowed(const ImageObject& object, const std::string& name,
                    std::vector<facts::LoadedLibrary>& out) const {
    const Requester* requester = object.asked_by ? &object.asked_by->requester : nullptr;
    const Requester* program = process_.interpreter.empty() || image_.objects().empty()
                                   ? nullptr
                                   : &image_.objects().front().requester;
    std::set<std::string> seen = {object.real_path};
    for (const Located& other : search_.find_all(name, requester, program)) {
      std::string real = host_.real_path(other.path).value_or(other.path);
      if (!seen.insert(real).second) continue;
      facts::LoadedLibrary library;
      library.name = name;
      library.path = other.path;
      library.by = other.by;
      library.asked_by = object.asked_by ? object.asked_by->path : std::string();
      add_versions(real, library);
      out.push_back(std::move(library));
    }
  }

  const Host& host_;
  const LibrarySearch& search_;
  const TorchProcess& process_;
  ProcessImage image_;
  size_t first_of_torch_ = 0;
  std::set<std::string> preloaded_;
  std::vector<LoadFailure> missing_;
  std::set<std::string> later_;  // names among them
  std::map<std::string, std::vector<std::string>> listings_;
};

}  // namespace

TorchLoads find_torch_loads(const Host& host, const LibrarySearch& search,
                            const TorchProcess& process, const ElfReader& reader) {
  return Import(host, search, process, reader).run();
}

}  // namespace cufit::host
