// SPDX-License-Identifier: Apache-2.0
#include "host/machine/system_parts.h"

#include <algorithm>

#include "base/version.h"
#include "formats/binary/elf_versions.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

// The loader's default directories: Debian's multiarch ones, then those of the other distributions.
std::vector<std::string> library_dirs(const facts::SystemFacts& system) {
  std::string triple = system.architecture.value_or("x86_64") + "-linux-gnu";
  return {"/usr/lib/" + triple, "/lib/" + triple, "/usr/lib64", "/lib64", "/usr/lib", "/lib"};
}

// The file that this process itself has mapped: the only place on distributions without the usual
// folders (NixOS).
std::string mapped_file(const Host& host, std::string_view name) {
  Result<std::string> maps = host.read_file("/proc/self/maps", 1u << 20);
  if (!maps) return {};
  for (std::string_view line : split_lines(*maps)) {
    size_t slash = line.find('/');
    if (slash != std::string_view::npos && ends_with(line, "/" + std::string(name))) {
      return std::string(line.substr(slash));
    }
  }
  return {};
}

std::string find_library(const Host& host, const facts::SystemFacts& system,
                         const std::string& name) {
  for (const std::string& dir : library_dirs(system)) {
    Result<FileStatus> status = host.status(dir + "/" + name);
    if (status && status->is_regular) return dir + "/" + name;
  }
  return mapped_file(host, name);
}

// "GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36." The text is what
// running libc.so.6 prints; the number at its end is upstream's and has no distribution suffix.
// Empty when the file has no such text.
std::string glibc_banner_version(const ByteSource& libc) {
  constexpr size_t k_block = 256u << 10, k_overlap = 512;
  constexpr uint64_t k_most = 32u << 20;  // libc.so.6 has 2 MB
  constexpr std::string_view k_banner = "GNU C Library (", k_release = "release version ";
  std::string buffer(k_block, '\0');
  for (uint64_t at = 0; at < std::min(libc.size_bytes(), k_most); at += k_block - k_overlap) {
    Result<size_t> got =
        libc.read(at, std::as_writable_bytes(std::span(buffer.data(), buffer.size())));
    if (!got || *got == 0) break;
    std::string_view block(buffer.data(), *got);
    size_t banner = block.find(k_banner);
    if (banner == std::string_view::npos) continue;
    std::string_view line = block.substr(banner, k_overlap);
    line = line.substr(0, line.find('\n'));
    size_t release = line.find(k_release);
    if (release == std::string_view::npos) continue;
    std::optional<Version> version = parse_version(line.substr(release + k_release.size()));
    if (version && version->parts.size() >= 2) return version->text();
  }
  return {};
}

Fact<std::string> defined_version(const Host& host, const std::string& path,
                                  std::string_view prefix) {
  Result<std::unique_ptr<ByteSource>> source = host.open(path);
  if (!source) return missing_file<std::string>(source.error(), path);
  std::vector<formats::Damage> damage;
  Result<std::vector<std::string>> names = formats::read_version_definitions(**source, damage);
  if (!names)
    return missing<std::string>(WhyNot::malformed, SourceKind::file, path, names.error().what);
  std::string version = formats::highest_version(*names, prefix);
  if (!version.empty()) return known(version, SourceKind::file, path);
  std::string note =
      damage.empty() ? format("defines no version {}*", prefix) : damage.front().what;
  return missing<std::string>(WhyNot::malformed, SourceKind::file, path, note);
}

// musl's loader is /lib/ld-musl-x86_64.so.1; Debian's musl package puts it beside glibc, so glibc
// is looked for first.
std::string find_musl(const Host& host) {
  Result<std::vector<std::string>> names = host.list("/lib");
  if (!names) return {};
  for (const std::string& name : *names) {
    if (starts_with(name, "ld-musl-")) return "/lib/" + name;
  }
  return {};
}

}  // namespace

void read_libc(const Host& host, facts::SystemFacts& system) {
  std::string path = find_library(host, system, "libc.so.6");
  if (path.empty()) {
    std::string musl = find_musl(host);
    std::string tried = musl.empty() ? library_dirs(system).front() + "/libc.so.6" : musl;
    system.glibc = missing<std::string>(WhyNot::not_present, SourceKind::file, tried);
    system.libc = musl.empty() ? missing<std::string>(WhyNot::not_present, SourceKind::file, tried)
                               : known<std::string>("musl", SourceKind::file, musl);
    return;
  }
  system.libc = known<std::string>("glibc", SourceKind::file, path);
  Result<std::unique_ptr<ByteSource>> source = host.open(path);
  std::string version = source ? glibc_banner_version(**source) : std::string();
  // Without the text, the newest symbol version is at most the library's own version: no release
  // takes one away.
  system.glibc = version.empty() ? defined_version(host, path, "GLIBC_")
                                 : known(version, SourceKind::file, path);
}

// NCCL's packages name the file by the whole version and link the soname to it.
void read_nccl(const Host& host, facts::SystemFacts& system) {
  constexpr std::string_view k_name = "libnccl.so.";
  std::vector<std::string> dirs = library_dirs(system);
  dirs.push_back("/usr/local/lib");
  for (const std::string& dir : dirs) {
    Result<std::string> real = host.real_path(dir + "/libnccl.so.2");
    if (!real) continue;
    const size_t at = real->rfind(k_name);
    const std::string version = at == std::string::npos ? "" : real->substr(at + k_name.size());
    system.nccl = contains(version, ".")
                      ? known(formats::printable(version, 40), SourceKind::file, *real)
                      : missing<std::string>(WhyNot::not_supported, SourceKind::file, *real,
                                             "the file's name has no version");
    return;
  }
  system.nccl =
      missing<std::string>(WhyNot::not_present, SourceKind::file, dirs.front() + "/libnccl.so.2");
}

void read_system_libraries(const Host& host, facts::SystemFacts& system) {
  read_libc(host, system);
  std::string path = find_library(host, system, "libstdc++.so.6");
  system.glibcxx = path.empty()
                       ? missing<std::string>(WhyNot::not_present, SourceKind::file,
                                              library_dirs(system).front() + "/libstdc++.so.6")
                       : defined_version(host, path, "GLIBCXX_");
  read_nccl(host, system);
}

}  // namespace cufit::host
