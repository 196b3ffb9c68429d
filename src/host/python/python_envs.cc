// SPDX-License-Identifier: Apache-2.0
// Fills Facts::envs: discovery (python_prefix), packages (distributions), torch's version file, the
// binaries with CUDA parts and what a torch process would load (torch_loads). Runs no Python.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"
#include "base/version.h"
#include "facts/cuda_libraries.h"
#include "formats/binary/elf.h"
#include "formats/binary/elf_symbols.h"
#include "formats/python/python_metadata.h"
#include "formats/python/version_py.h"
#include "host/python/distributions.h"
#include "host/probe.h"
#include "host/python/python_ownership.h"
#include "host/python/python_prefix.h"
#include "host/python/torch_loads.h"

namespace cufit::host {
namespace {

constexpr size_t k_unresolved_kept = 8;

bool is_inside(const std::string& path, const std::string& folder) {
  return starts_with(path, folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

// Files are read once: the binaries first, completely; what else the loader needs, without device
// code.
class ElfFiles {
 public:
  explicit ElfFiles(const Host& host) : host_(host) {}

  // Resolved once per folder: an environment has hundreds of files in a few folders. A link that is
  // the last part of a path stays, which only costs reading its file twice.
  std::string real_path(const std::string& path) {
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return path;
    std::string folder = path.substr(0, slash);
    auto [place, is_new] = folders_.try_emplace(folder);
    if (is_new) place->second = host_.real_path(folder).value_or(folder);
    return place->second + path.substr(slash);
  }

  std::shared_ptr<const formats::ElfFile> read(const std::string& path,
                                               const formats::ElfOptions& options, Error& why) {
    std::string real = real_path(path);
    if (auto known = files_.find(real); known != files_.end()) return known->second;
    auto source = host_.open(path);
    if (!source) return why = source.error(), nullptr;
    auto elf = formats::read_elf(**source, options);
    if (!elf) return why = elf.error(), nullptr;
    auto shared = std::make_shared<const formats::ElfFile>(std::move(*elf));
    files_.emplace(std::move(real), shared);
    return shared;
  }

 private:
  const Host& host_;
  std::map<std::string, std::string> folders_;
  std::map<std::string, std::shared_ptr<const formats::ElfFile>> files_;
};

// "`/path`: not an ELF file (byte 0)": what stands beside the path, and the byte.
formats::Damage damage_of(const Error& why) {
  size_t start = why.what.find("`: "), byte = why.what.find(" (byte ");
  formats::Damage out;
  out.what = start == std::string::npos ? why.what : why.what.substr(start + 3);
  if (byte == std::string::npos) return out;
  std::string_view digits = std::string_view(why.what).substr(byte + 7);
  out.offset = parse_uint(digits.substr(0, digits.find_first_not_of("0123456789"))).value_or(0);
  if (size_t at = out.what.find(" (byte "); at != std::string::npos && ends_with(out.what, ")"))
    out.what.resize(at);
  return out;
}

bool needs_cuda_or_torch(const formats::ElfFile& elf) {
  for (const std::string& name : elf.needed) {
    if (facts::is_cuda_library(name) || starts_with(name, "libcuda.so")) return true;
    if (starts_with(name, "libtorch") || starts_with(name, "libc10")) return true;
  }
  return false;
}

class EnvReader {
 public:
  EnvReader(const Host& host, const LoaderSettings& settings, const PythonPrefix& prefix,
            facts::Facts& facts, bool every_file)
      : host_(host),
        settings_(settings),
        prefix_(prefix),
        facts_(facts),
        every_file_(every_file),
        files_(host) {}

  facts::PythonEnv run() {
    env_.path = prefix_.path;
    env_.kind = prefix_.kind;
    env_.active = prefix_.active;
    env_.found_by = prefix_.found_by;
    env_.installer = prefix_.installer;
    env_.python = prefix_.python;
    env_.interpreter = prefix_.interpreter;
    env_.base_python = prefix_.base;
    env_.site_packages = prefix_.site_packages;
    formats::MarkerEnvironment markers{prefix_.minor_version(), settings_.architecture};
    const auto full = prefix_.python ? parse_version(*prefix_.python) : std::nullopt;
    if (full && full->parts.size() >= 3) markers.python_full_version = *prefix_.python;
    packages_ = read_distributions(host_, prefix_, markers, every_file_);
    for (std::string& problem : packages_.problems) facts_.problems.push_back(std::move(problem));
    for (const std::string& site : prefix_.site_packages) {
      auto names = host_.list(site);
      if (!names && names.error().code == Code::no_permission) closed_ = site;
    }
    read_torch();
    read_binaries();
    if (!env_.torch.path.empty()) read_loads();
    read_installer();
    read_ownership(host_, prefix_, env_);
    env_.distributions = known(std::move(packages_.distributions), SourceKind::file,
                               join(prefix_.site_packages, ":"));
    if (!closed_.empty() && env_.distributions->empty())
      env_.distributions = missing<std::vector<facts::Distribution>>(WhyNot::no_permission,
                                                                     SourceKind::file, closed_);
    return std::move(env_);
  }

 private:
  // The first folder of sys.path that has a `torch` package is the one that gets imported.
  void read_torch() {
    facts::TorchFacts& torch = env_.torch;
    for (const std::string& site : prefix_.site_packages) {
      std::string folder = site + "/torch";
      if (!host_.exists(folder + "/__init__.py") && !host_.exists(folder + "/version.py")) continue;
      torch.path = folder;
      break;
    }
    if (torch.path.empty()) {
      std::string tried = join(prefix_.site_packages, ":");
      torch.version =
          missing<std::string>(WhyNot::not_present, SourceKind::file, tried, "no `torch` package");
      if (!closed_.empty())
        torch.version = missing<std::string>(WhyNot::no_permission, SourceKind::file, closed_);
      for (Fact<std::string>* fact : {&torch.cuda, &torch.hip, &torch.git})
        *fact =
            missing<std::string>(WhyNot::not_asked, SourceKind::file, tried, "no `torch` package");
      torch.debug = missing<bool>(WhyNot::not_asked, SourceKind::file, tried, "no `torch` package");
      return;
    }
    std::string file = torch.path + "/version.py";
    auto text = host_.read_file(file, 1u << 20);
    if (!text) {
      WhyNot why =
          text.error().code == Code::no_permission ? WhyNot::no_permission : WhyNot::malformed;
      for (Fact<std::string>* fact : {&torch.version, &torch.cuda, &torch.hip, &torch.git})
        *fact = missing<std::string>(why, SourceKind::file, file, text.error().text());
      torch.debug = missing<bool>(why, SourceKind::file, file, text.error().text());
      return;
    }
    fill_torch(formats::parse_torch_version(*text), file);
  }

  void fill_torch(const formats::TorchVersionFile& said, const std::string& file) {
    facts::TorchFacts& torch = env_.torch;
    auto fact = [&](const formats::PyConstant& constant, const char* name) {
      if (constant.text) return known(*constant.text, SourceKind::file, file);
      // `cuda = None` says so; a file without the line says nothing.
      if (constant.present)
        return missing<std::string>(WhyNot::not_present, SourceKind::file, file,
                                    format("`{} = None`", name));
      return missing<std::string>(WhyNot::malformed, SourceKind::file, file,
                                  format("no line `{} = ...`", name));
    };
    torch.version = fact(said.version, "__version__");
    if (!torch.version) facts_.problems.push_back(format("`{}`: {}", file, torch.version.note));
    torch.cuda = fact(said.cuda, "cuda");
    torch.hip = fact(said.hip, "hip");
    if (!said.hip.present) torch.hip.why = WhyNot::not_present;  // before ROCm builds existed
    torch.git = fact(said.git, "git_version");
    torch.debug = said.debug ? known(*said.debug, SourceKind::file, file)
                             : missing<bool>(WhyNot::malformed, SourceKind::file, file,
                                             "no line `debug = ...`");
    if (torch.version) {
      size_t plus = torch.version->find('+');
      if (plus != std::string::npos) {
        // "2.1.0+cu121", "2.11.0a0+git1234", "2.5.0a0+872d972e41.nv24.08",
        // "2.3.0+cu121.with.pypi.cudnn"
        std::string local = torch.version->substr(plus + 1);
        for (const char* stem : {"cu", "cpu", "rocm", "xpu"})
          if (starts_with(local, stem))
            torch.variant = local.substr(0, stem[0] == 'r' ? std::string::npos : local.find('.'));
      }
    }
    if (!torch.variant.empty()) return;
    if (torch.cuda) {
      if (auto version = parse_version(*torch.cuda))
        torch.variant = format("cu{}{}", version->part(0), version->part(1));
    } else if (torch.hip) {
      if (auto version = parse_version(*torch.hip))
        torch.variant = format("rocm{}.{}", version->part(0), version->part(1));
    } else if (said.xpu.text) {
      torch.variant = "xpu";
    } else if (torch.cuda.why == WhyNot::not_present) {
      torch.variant = "cpu";
    }
  }

  void read_binaries() {
    for (const SharedObject& object : packages_.objects) {
      if (is_nvidia_library_package(object.owner)) continue;
      bool is_torch = is_torch_owner(object);
      formats::ElfOptions options;
      options.abi = is_torch;
      Error why;
      auto elf = files_.read(object.path, options, why);
      if (!elf) {
        // Somebody else's broken file is worth a line, a broken one of torch a record of its own.
        facts_.problems.push_back(why.text());
        if (is_torch) add_unread(object, why);
        continue;
      }
      if (!is_torch && !elf->has_fatbin && !needs_cuda_or_torch(*elf)) continue;
      add_binary(object, *elf, is_torch);
    }
    std::sort(env_.binaries.begin(), env_.binaries.end(),
              [](const facts::Binary& a, const facts::Binary& b) { return a.path < b.path; });
  }

  bool is_torch_owner(const SharedObject& object) const {
    if (object.owner == "torch" || object.owner == "pytorch" || object.owner == "libtorch")
      return true;
    return !env_.torch.path.empty() && is_inside(object.path, env_.torch.path);
  }

  std::string shown(const std::string& path) const {
    return is_inside(path, prefix_.path) ? path.substr(prefix_.path.size() + 1) : path;
  }

  facts::Binary start_binary(const SharedObject& object) const {
    facts::Binary out;
    out.path = shown(object.path);
    out.package = object.owner;
    out.python_tag = formats::python_tag_of(object.path);
    auto status = host_.status(object.path);
    if (status) out.size_bytes = status->size_bytes;
    return out;
  }

  // A file that is no ELF file is damaged; one that may not be opened says nothing about itself.
  void add_unread(const SharedObject& object, const Error& why) {
    facts::Binary out = start_binary(object);
    out.unreadable = why.text();
    if (why.code == Code::malformed || why.code == Code::unsupported)
      out.damage.push_back(damage_of(why));
    env_.binaries.push_back(std::move(out));
  }

  void add_binary(const SharedObject& object, const formats::ElfFile& elf, bool is_torch) {
    facts::Binary out = start_binary(object);
    out.soname = elf.soname;
    out.needed = elf.needed;
    out.rpath = elf.rpath;
    out.runpath = elf.runpath;
    if (!elf.only_empty_images)
      out.device_code = elf.device_code;  // its kernels, if it has any, are not where CUDA looks
    out.glibc = elf.glibc;
    out.glibcxx = elf.glibcxx;
    out.cxxabi = elf.cxxabi;
    if (elf.cxx11_abi) out.cxx11_abi = *elf.cxx11_abi ? "1" : "0";
    out.damage = elf.damage;
    if (!is_torch) {
      add_symbols(object, out);
      find_needed(object, out);
    }
    env_.binaries.push_back(std::move(out));
  }

  // CUDA libraries that nobody brings: neither the loader from here, nor any package (torch and
  // others load those of nvidia-* by path before they are asked for by name).
  void find_needed(const SharedObject& object, facts::Binary& out) {
    const Requester requester{object.path, out.rpath, out.runpath, false, nullptr};
    for (const std::string& name : out.needed) {
      if (!facts::is_cuda_library(name)) continue;
      const bool brought =
          std::any_of(packages_.objects.begin(), packages_.objects.end(),
                      [&](const SharedObject& other) { return file_name(other.path) == name; });
      if (brought) continue;
      if (!search_) search_.emplace(host_, settings_);
      if (!search_->find(name, &requester)) out.not_found.push_back(name);
    }
  }

  // Reading names of symbols is the slow part, so only files of interest get here.
  void add_symbols(const SharedObject& object, facts::Binary& out) {
    auto source = host_.open(object.path);
    if (!source) return;
    formats::ElfOptions options;
    options.device_code = false;
    options.symbols = true;
    auto elf = formats::read_elf(**source, options);
    if (!elf) return;
    if (elf->cxx11_abi) out.cxx11_abi = *elf->cxx11_abi ? "1" : "0";
    if (!elf->undefined_torch.empty()) resolve(object, *elf, out);
  }

  // Whether torch's libraries, or those of the same package, define what this file wants of torch.
  void resolve(const SharedObject& object, const formats::ElfFile& elf, facts::Binary& out) {
    const std::vector<formats::SymbolTable>& torch = torch_symbols();
    if (torch.empty()) return;  // nothing to compare with: no statement
    std::optional<std::vector<formats::SymbolTable>> own;
    for (const std::string& name : elf.undefined_torch) {
      if (defined(torch, name)) continue;
      if (!own) own = package_symbols(object);
      if (defined(*own, name)) continue;
      if (out.unresolved.size() < k_unresolved_kept) out.unresolved.push_back(name);
      ++out.unresolved_count;
    }
  }

  static bool defined(const std::vector<formats::SymbolTable>& tables, const std::string& name) {
    return std::any_of(tables.begin(), tables.end(),
                       [&](const formats::SymbolTable& table) { return table.defines(name); });
  }

  void open_symbols(const std::string& path, std::vector<formats::SymbolTable>& out) const {
    auto source = host_.open(path);
    if (!source) return;
    auto table = formats::SymbolTable::open(std::shared_ptr<const ByteSource>(std::move(*source)));
    if (table) out.push_back(std::move(*table));
  }

  // Empty when one of the three libraries that matter most cannot be read: then nothing can be
  // said.
  const std::vector<formats::SymbolTable>& torch_symbols() {
    if (torch_symbols_) return *torch_symbols_;
    torch_symbols_.emplace();
    if (env_.torch.path.empty()) return *torch_symbols_;
    std::vector<std::string> folders = {env_.torch.path + "/lib"};
    if (prefix_.kind == "conda") folders.push_back(prefix_.path + "/lib");
    for (const std::string& folder : folders) {
      std::vector<std::string> names = host_.list(folder).value_or(std::vector<std::string>());
      // The ones that answer most questions first.
      std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
        return name == "libtorch_cpu.so" || name == "libc10.so" || name == "libtorch_python.so";
      });
      for (const std::string& name : names)
        if ((starts_with(name, "libc10") || starts_with(name, "libtorch")) &&
            formats::is_shared_object_name(name))
          open_symbols(folder + "/" + name, *torch_symbols_);
      bool complete = names.size() >= 3 && names[0] == "libc10.so" &&
                      names[1] == "libtorch_cpu.so" && names[2] == "libtorch_python.so";
      if (complete) return *torch_symbols_;
      torch_symbols_->clear();
    }
    return *torch_symbols_;
  }

  std::vector<formats::SymbolTable> package_symbols(const SharedObject& object) const {
    std::vector<formats::SymbolTable> out;
    if (object.owner.empty()) return out;
    for (const SharedObject& other : packages_.objects)
      if (other.owner == object.owner && other.path != object.path && out.size() < 64)
        open_symbols(other.path, out);
    return out;
  }

  void read_loads() {
    if (!search_) search_.emplace(host_, settings_);
    TorchProcess process;
    if (prefix_.interpreter) process.interpreter = *prefix_.interpreter;
    process.torch_folder = env_.torch.path;
    process.sys_path = prefix_.site_packages;
    if (env_.torch.cuda) process.cuda = *env_.torch.cuda;
    if (auto version = parse_version(prefix_.minor_version()))
      process.python_tag = format("cpython-{}{}", version->part(0), version->part(1));
    ElfReader reader = [&](const std::string& path, std::string& why) {
      formats::ElfOptions options;
      options.device_code = false;
      options.abi = false;
      Error error;
      auto elf = files_.read(path, options, error);
      if (!elf) why = error.text();
      return elf;
    };
    TorchLoads loads = find_torch_loads(host_, *search_, process, reader);
    for (const SharedObject& object : packages_.objects)
      owners_.emplace(files_.real_path(object.path), object.owner);
    for (auto* list : {&loads.loads, &loads.shadowed})
      for (facts::LoadedLibrary& library : *list) add_owner(library);
    add_environment_copies(loads);
    env_.loads = std::move(loads.loads);
    env_.shadowed = std::move(loads.shadowed);
  }

  void add_owner(facts::LoadedLibrary& library) {
    if (library.path.empty()) return;
    std::string real = files_.real_path(library.path);
    library.inside = is_inside(real, prefix_.real_path) || is_inside(library.path, prefix_.path);
    for (const std::string& site : prefix_.site_packages)
      library.inside |= is_inside(library.path, site);
    auto owner = owners_.find(real);
    if (owner == owners_.end() || owner->second.empty()) return;
    for (const facts::Distribution& one : packages_.distributions) {
      if (one.name != owner->second) continue;
      library.package = one.name + " " + one.version;
      if (library.version.empty() && is_nvidia_library_package(one.name))
        library.version = one.version;
      // The wheel's name or folder tells where the file's own number does not.
      for (const char* major : {"11", "12", "13", "14"}) {
        if (!library.cuda_major.empty() || !facts::is_cuda_library(library.name)) break;
        if (ends_with(one.name, format("-cu{}", major)) ||
            contains(real, format("/nvidia/cu{}/", major)))
          library.cuda_major = major;
      }
      return;
    }
  }

  // The environment's own copy of a library that is loaded from elsewhere, or found nowhere, is
  // evidence as well.
  void add_environment_copies(TorchLoads& loads) {
    for (const facts::LoadedLibrary& library : loads.loads) {
      if (library.inside || !facts::is_cuda_library(library.name)) continue;
      for (const SharedObject& object : packages_.objects) {
        if (file_name(object.path) != library.name) continue;
        bool listed = std::any_of(
            loads.shadowed.begin(), loads.shadowed.end(), [&](const facts::LoadedLibrary& one) {
              return files_.real_path(one.path) == files_.real_path(object.path);
            });
        if (listed) continue;
        facts::LoadedLibrary copy;
        copy.name = library.name;
        copy.path = object.path;
        copy.by = "environment";
        copy.asked_by = library.asked_by;
        copy.cuda_major = facts::cuda_major_of_library(library.name);
        add_owner(copy);
        loads.shadowed.push_back(std::move(copy));
      }
    }
  }

  // Who put torch there says more than the folder (`uv pip install` into a venv of another tool).
  void read_installer() {
    if (env_.installer != "pip") return;
    for (const facts::Distribution& one : packages_.distributions)
      if (one.name == "torch" && (one.installer == "uv" || one.installer == "poetry"))
        env_.installer = one.installer;
  }

  const Host& host_;
  const LoaderSettings& settings_;
  const PythonPrefix& prefix_;
  facts::Facts& facts_;
  const bool every_file_;
  ElfFiles files_;
  facts::PythonEnv env_;
  InstalledPackages packages_;
  std::map<std::string, std::string> owners_;
  std::string
      closed_;  // a folder of packages that may not be listed: what is in it is unknown, not absent
  std::optional<std::vector<formats::SymbolTable>> torch_symbols_;
  std::optional<LibrarySearch> search_;
};

// Python looks into the current folder (or that of the script) before it looks for packages. A
// folder without __init__.py gives way to a package.
std::vector<std::string> read_local_modules(const Host& host) {
  std::vector<std::string> out;
  for (const char* name : {"torch", "torchvision", "torchaudio", "triton", "numpy"}) {
    if (host.exists(format("./{}/__init__.py", name))) out.push_back(format("{}/", name));
    if (host.exists(format("./{}.py", name))) out.push_back(format("{}.py", name));
  }
  return out;
}

// 'name = "torch"' of a lock, "torch==2.9.1" or "torch" of a list.
bool lists_torch(std::string_view line) {
  line = trim(line);
  for (const char* key : {"name = \"", "- conda: ", "- pypi: "})
    if (starts_with(line, key)) line.remove_prefix(std::string_view(key).size());
  if (!starts_with(line, "torch")) return false;
  line.remove_prefix(5);
  return line.empty() || std::string_view("=<>!~[;@ \"").find(line[0]) != std::string_view::npos;
}

void read_project_lock(const Host& host, facts::SystemFacts& system) {
  for (const char* name : {"uv.lock", "pixi.lock", "poetry.lock", "requirements.txt"}) {
    const Result<std::string> text = host.read_file(std::string("./") + name, 16u << 20);
    if (!text) continue;
    for (const std::string_view line : split_lines(*text)) {
      if (!lists_torch(line)) continue;
      system.project_lock = known<std::string>(name, SourceKind::file, std::string("./") + name);
      return;
    }
  }
  system.project_lock = missing<std::string>(WhyNot::not_present, SourceKind::file, ".");
}

// What is an image for steps: a container of an engine, not a machine that looks like one.
std::optional<bool> in_image(const facts::Facts& facts) {
  if (!facts.system.container) return std::nullopt;
  const std::string& kind = *facts.system.container;
  return kind != "none" && kind != "lxc";
}

}  // namespace

void read_python_envs(const Host& host, const ProbeOptions& options, facts::Facts& facts) {
  LoaderSettings settings = read_loader_settings(host);
  for (const std::string& problem : settings.problems) facts.problems.push_back(problem);
  PythonSearch search;
  search.env_dirs = options.env_dirs;
  search.user_site = options.user_site;
  search.everywhere = options.search_everywhere;
  search.in_image = in_image(facts);
  for (const PythonPrefix& prefix : find_python_prefixes(host, search, facts.problems)) {
    if (options.progress) options.progress(prefix.path, 0, 0);
    facts.envs.push_back(EnvReader(host, settings, prefix, facts, options.every_file).run());
  }
  facts.local_modules = read_local_modules(host);
  if (options.search_everywhere) read_project_lock(host, facts.system);
  read_uv(host, facts.system);
  read_root(host, facts.system);
}

}  // namespace cufit::host
