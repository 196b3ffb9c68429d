// SPDX-License-Identifier: Apache-2.0
#include "host/machine/loader.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/format.h"

namespace cufit::host {
namespace {

std::string parent(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> split_at_any(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  size_t start = 0;
  while (true) {
    size_t end = text.find_first_of(separators, start);
    out.emplace_back(text.substr(start, end == std::string_view::npos ? end : end - start));
    if (end == std::string_view::npos) return out;
    start = end + 1;
  }
}

bool has_all(std::string_view flags, std::initializer_list<std::string_view> wanted) {
  for (std::string_view name : wanted) {
    bool found = false;
    for (size_t at = flags.find(name); at != std::string_view::npos && !found;
         at = flags.find(name, at + 1)) {
      bool left = at == 0 || flags[at - 1] == ' ' || flags[at - 1] == '\t';
      size_t end = at + name.size();
      found = left && (end == flags.size() || flags[end] == ' ' || flags[end] == '\n');
    }
    if (!found) return false;
  }
  return true;
}

void read_machine(const Host& host, LoaderSettings& settings) {
  struct Loader {
    const char* path;
    const char* architecture;
    const char* libc;
  };
  static const Loader k_loaders[] = {
      {"/lib64/ld-linux-x86-64.so.2", "x86_64", "glibc"},
      {"/lib/ld-linux-aarch64.so.1", "aarch64", "glibc"},
      {"/lib/ld-musl-x86_64.so.1", "x86_64", "musl"},
      {"/lib/ld-musl-aarch64.so.1", "aarch64", "musl"},
  };
  settings.libc = "none";
  for (const Loader& loader : k_loaders) {
    if (!host.exists(loader.path)) continue;
    settings.architecture = loader.architecture;
    settings.libc = loader.libc;
    break;
  }
  if (settings.architecture.empty()) {
#if defined(__aarch64__)
    settings.architecture = "aarch64";
#else
    settings.architecture = "x86_64";
#endif
  }
  // The default directories are compiled into ld.so: Debian and its children use the multiarch
  // ones, Fedora and SUSE lib64, Arch /usr/lib alone. libc.so.6 itself lies in one of them.
  std::string multiarch = settings.architecture + "-linux-gnu";
  if (host.exists("/lib/" + multiarch + "/libc.so.6") ||
      host.exists("/usr/lib/" + multiarch + "/libc.so.6")) {
    settings.lib_token = "lib/" + multiarch;
    settings.default_dirs = {"/lib/" + multiarch, "/usr/lib/" + multiarch, "/lib", "/usr/lib"};
  } else if (host.exists("/lib64/libc.so.6") || host.exists("/usr/lib64/libc.so.6")) {
    settings.lib_token = "lib64";
    settings.default_dirs = {"/lib64", "/usr/lib64"};
  } else {
    settings.lib_token = "lib";
    settings.default_dirs = {"/lib", "/usr/lib"};
  }
}

}  // namespace

LoaderSettings read_loader_settings(const Host& host) {
  LoaderSettings settings;
  read_machine(host, settings);
  // An empty value counts as unset; an empty element is the current directory (a frequent accident:
  // "$OLD:/new").
  if (auto value = host.variable("LD_LIBRARY_PATH"); value && !value->empty())
    settings.ld_library_path = split_at_any(*value, ":;");
  if (auto value = host.variable("LD_PRELOAD"))
    for (std::string& name : split_at_any(*value, ": "))
      if (!name.empty()) settings.ld_preload.push_back(std::move(name));
  auto bytes = host.read_file("/etc/ld.so.cache", 64u << 20);
  if (!bytes) {
    if (bytes.error().code != Code::not_found) settings.problems.push_back(bytes.error().text());
    return settings;
  }
  auto cache = formats::parse_ld_cache(std::move(*bytes));
  if (!cache) {
    settings.problems.push_back("`/etc/ld.so.cache`: " + cache.error().text());
    return settings;
  }
  for (const formats::Damage& damage : cache->damage)
    settings.problems.push_back(
        format("`/etc/ld.so.cache`, byte {}: {}", damage.offset, damage.what));
  settings.cache = std::make_shared<const formats::LdCache>(std::move(*cache));
  return settings;
}

LibrarySearch::LibrarySearch(const Host& host, LoaderSettings settings)
    : host_(host), settings_(std::move(settings)) {}

std::optional<Located> LibrarySearch::find(const std::string& name, const Requester* requester,
                                           const Requester* program) const {
  std::vector<Located> out;
  collect(name, requester, program, false, out);
  if (out.empty()) return std::nullopt;
  return std::move(out.front());
}

std::vector<Located> LibrarySearch::find_all(const std::string& name, const Requester* requester,
                                             const Requester* program) const {
  std::vector<Located> out;
  collect(name, requester, program, true, out);
  return out;
}

// Returns true when the search is over.
bool LibrarySearch::collect(const std::string& name, const Requester* requester,
                            const Requester* program, bool all, std::vector<Located>& out) const {
  if (settings_.libc == "musl" || name.empty()) return true;
  if (name.find('/') != std::string::npos) {
    auto path = expand(name, requester);
    return path && try_file(*path, "path", all, out);
  }
  if (!requester || requester->runpath.empty()) {
    bool program_done = false;
    for (const Requester* object = requester; object; object = object->loader) {
      if (object->runpath.empty() &&
          try_directories(object->rpath, object, name, "RPATH", all, out))
        return true;
      program_done |= object == program;
    }
    if (!program_done && program && program->runpath.empty() &&
        try_directories(program->rpath, program, name, "RPATH", all, out)) {
      return true;
    }
  }
  if (try_directories(settings_.ld_library_path, program, name, "LD_LIBRARY_PATH", all, out))
    return true;
  if (requester && try_directories(requester->runpath, requester, name, "RUNPATH", all, out))
    return true;
  bool no_default = requester && requester->no_default_lib;
  if (try_cache(name, no_default, all, out)) return true;
  return !no_default &&
         try_directories(settings_.default_dirs, requester, name, "default directory", all, out);
}

bool LibrarySearch::try_directories(const std::vector<std::string>& dirs, const Requester* object,
                                    const std::string& name, const char* by, bool all,
                                    std::vector<Located>& out) const {
  for (const std::string& raw : dirs) {
    auto path = expand(raw, object);
    if (!path) continue;  // an element with an unknown origin is dropped
    while (path->size() > 1 && path->back() == '/') path->pop_back();
    if (path->empty()) *path = ".";
    const Directory& dir = directory(*path);
    if (!dir.exists) continue;
    std::string prefix = *path == "/" ? "" : *path;
    for (const std::string& level : dir.hwcaps)
      if (try_file(prefix + "/glibc-hwcaps/" + level + "/" + name, by, all, out)) return true;
    if (try_file(prefix + "/" + name, by, all, out)) return true;
  }
  return false;
}

bool LibrarySearch::try_cache(const std::string& name, bool no_default, bool all,
                              std::vector<Located>& out) const {
  if (!settings_.cache) return false;
  const formats::LdCacheEntry* best = nullptr;
  size_t best_level = 0;
  for (const formats::LdCacheEntry* entry : settings_.cache->find(name, settings_.architecture)) {
    if (entry->legacy_hwcap) continue;
    // Named levels beat the plain entry, a better level beats a worse one; otherwise the first
    // entry stays.
    size_t level = SIZE_MAX;
    if (!entry->hwcaps.empty()) {
      const auto& levels = cpu_levels();
      auto found = std::find(levels.begin(), levels.end(), entry->hwcaps);
      if (found == levels.end()) continue;
      level = static_cast<size_t>(found - levels.begin());
    }
    if (!best || level < best_level) {
      best = entry;
      best_level = level;
    }
  }
  // A listed file that is gone does not end the search (a stale cache).
  if (!best || (no_default && is_default(std::string(best->path)))) return false;
  return try_file(std::string(best->path), "ld.so.cache", all, out);
}

bool LibrarySearch::try_file(const std::string& path, const char* by, bool all,
                             std::vector<Located>& out) const {
  std::string problem;
  Fit fit = check(path, problem);
  if (fit != Fit::usable && fit != Fit::not_elf) return false;
  out.push_back({path, by, std::move(problem)});
  return !all;
}

std::optional<std::string> LibrarySearch::expand(const std::string& path,
                                                 const Requester* object) const {
  if (path.find('$') == std::string::npos) return path;
  std::string out;
  for (size_t at = 0; at < path.size();) {
    if (path[at] != '$') {
      out += path[at++];
      continue;
    }
    struct Token {
      std::string_view name;
      int kind;
    };
    static const Token k_tokens[] = {{"ORIGIN", 0}, {"PLATFORM", 1}, {"LIB", 2}};
    bool braces = path.compare(at + 1, 1, "{") == 0;
    size_t begin = at + 1 + braces;
    const Token* token = nullptr;
    for (const Token& one : k_tokens) {
      if (path.compare(begin, one.name.size(), one.name) != 0) continue;
      size_t end = begin + one.name.size();
      if (braces ? path.compare(end, 1, "}") != 0
                 : end < path.size() &&
                       (std::isalnum(static_cast<unsigned char>(path[end])) || path[end] == '_')) {
        continue;
      }
      token = &one;
      at = end + braces;
      break;
    }
    if (!token) {
      out += path[at++];  // an unknown name stays as it is
      continue;
    }
    if (token->kind == 0 && !object) return std::nullopt;
    out += token->kind == 0   ? parent(object->path)
           : token->kind == 1 ? settings_.architecture
                              : settings_.lib_token;
  }
  return out;
}

const LibrarySearch::Directory& LibrarySearch::directory(const std::string& path) const {
  auto [place, is_new] = directories_.try_emplace(path);
  if (!is_new) return place->second;
  auto status = host_.status(path);
  place->second.exists = status && status->is_directory;
  if (place->second.exists && host_.exists(path + "/glibc-hwcaps")) {
    for (const std::string& level : cpu_levels())
      if (host_.exists(path + "/glibc-hwcaps/" + level)) place->second.hwcaps.push_back(level);
  }
  return place->second;
}

// Levels of this CPU, best first (x86-64 psABI; Linux names the features in /proc/cpuinfo).
const std::vector<std::string>& LibrarySearch::cpu_levels() const {
  if (cpu_levels_) return *cpu_levels_;
  cpu_levels_.emplace();
  if (settings_.architecture != "x86_64") return *cpu_levels_;
  auto text = host_.read_file("/proc/cpuinfo", 8u << 20);
  if (!text) return *cpu_levels_;
  size_t at = text->find("\nflags");
  if (at == std::string::npos) return *cpu_levels_;
  size_t end = text->find('\n', at + 1);
  std::string_view flags =
      std::string_view(*text).substr(at, end == std::string::npos ? end : end - at);
  bool v2 = has_all(flags, {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"});
  bool v3 =
      v2 && has_all(flags, {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"});
  bool v4 = v3 && has_all(flags, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  if (v4) cpu_levels_->push_back("x86-64-v4");
  if (v3) cpu_levels_->push_back("x86-64-v3");
  if (v2) cpu_levels_->push_back("x86-64-v2");
  return *cpu_levels_;
}

bool LibrarySearch::is_default(const std::string& path) const {
  for (const std::string& dir : settings_.default_dirs)
    if (path.compare(0, dir.size(), dir) == 0 && path.size() > dir.size() &&
        path[dir.size()] == '/')
      return true;
  return false;
}

// The comparisons of glibc's open_verify on the first bytes of the ELF header.
LibrarySearch::Fit LibrarySearch::check(const std::string& path, std::string& problem) const {
  auto file = host_.open(path);
  if (!file) {
    if (file.error().code == Code::not_found || file.error().code == Code::no_permission)
      return Fit::absent;
    // Such a name can be opened but not read: glibc gives up instead of looking further.
    auto status = host_.status(path);
    if (!status || !status->is_directory) return Fit::absent;
    problem = "cannot read file data: Is a directory";
    return Fit::not_elf;
  }
  std::byte head[64];
  auto got = (*file)->read(0, head);
  if (!got || *got < sizeof head) {
    problem = "file too short";
    return Fit::not_elf;
  }
  const char* bytes = reinterpret_cast<const char*>(head);
  if (std::string_view(bytes, 4) != "\177ELF") {
    problem = "invalid ELF header";
    return Fit::not_elf;
  }
  uint16_t type = load_le<uint16_t>(bytes + 16), machine = load_le<uint16_t>(bytes + 18);
  uint16_t wanted = settings_.architecture == "aarch64" ? 183 : 62;
  if (bytes[4] != 2 || bytes[5] != 1 || machine != wanted) return Fit::other_machine;
  if (type != 3 && type != 2) {
    problem = "only ET_DYN and ET_EXEC can be loaded";
    return Fit::not_elf;
  }
  return Fit::usable;
}

}  // namespace cufit::host
