// SPDX-License-Identifier: Apache-2.0
// Versions of gcc, cmake and nvcc without starting them: from the program's bytes, the package
// database or the Python package that brought it. clang builds its line from parts that differ by
// distribution: not told.
#include "base/path.h"
#include "host/machine/collect_env_parts.h"

#include <optional>

#include "base/version.h"
#include "formats/system/tool_versions.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

constexpr size_t k_max_gcc = 16u << 20;    // the driver program has 1 to 2 MB
constexpr size_t k_max_nvcc = 128u << 20;  // 30 MB in CUDA 13.0
const std::string k_dpkg = "/var/lib/dpkg/status";

// The program that a shell would start, or nothing.
std::string in_path(const Host& host, const std::string& name) {
  const std::string path = host.variable("PATH").value_or("");
  for (std::string_view dir : split(path, ':')) {
    if (dir.empty() || dir[0] != '/') continue;
    std::string file = std::string(dir) + "/" + name;
    Result<FileStatus> status = host.status(file);
    if (status && status->is_regular && (status->mode & 0111)) return file;
  }
  return {};
}

Fact<std::string> not_in_path(const std::string& name) {
  return missing<std::string>(WhyNot::not_present, SourceKind::file, name, "not in PATH");
}

class ToolVersions {
 public:
  ToolVersions(const Host& host, facts::Facts& facts) : host_(host), facts_(facts) {}

  void read() {
    facts_.collect_env.gcc = gcc();
    std::string clang = in_path(host_, "clang");
    facts_.collect_env.clang = clang.empty()
                                   ? not_in_path("clang")
                                   : missing<std::string>(WhyNot::not_supported, SourceKind::file,
                                                          clang, "no file tells its exact text");
    facts_.collect_env.cmake = cmake();
    for (facts::Toolkit& toolkit : facts_.toolkits) nvcc(toolkit);
  }

 private:
  Fact<std::string> gcc() {
    std::string path = in_path(host_, "gcc");
    if (path.empty()) return not_in_path("gcc");
    std::string real = host_.real_path(path).value_or(path);
    Result<std::string> bytes = host_.read_file(real, k_max_gcc);
    if (!bytes) return missing_file<std::string>(bytes.error(), real);
    std::string version = formats::gcc_version_in(*bytes);
    if (!version.empty()) return known(version, SourceKind::file, real);
    version = gcc_of_distribution(std::string(file_name(real)));
    if (!version.empty()) return known(version, SourceKind::file, k_dpkg);
    return missing<std::string>(WhyNot::not_supported, SourceKind::file, real,
                                "does not tell its version");
  }

  // Debian and Ubuntu build gcc with their name and the package's version as its text. A release of
  // gcc ends in ".0"; others print a date as well, which the package does not tell.
  std::string gcc_of_distribution(const std::string& program) {
    size_t at = program.find("gcc-");
    const std::string id = facts_.system.distribution_id.value_or("");
    if (at == std::string::npos || (!starts_with(id, "ubuntu") && !starts_with(id, "debian")))
      return {};
    std::string version = formats::dpkg_version(status(), program.substr(at));
    std::string upstream = formats::dpkg_upstream(version);
    if (version.empty() || !ends_with(upstream, ".0") || contains(upstream, "-")) return {};
    return format("({} {}) {}", starts_with(id, "ubuntu") ? "Ubuntu" : "Debian", version, upstream);
  }

  Fact<std::string> cmake() {
    std::string path = in_path(host_, "cmake");
    if (path.empty()) return not_in_path("cmake");
    const std::string prefix = path.substr(0, path.rfind('/'));  // .../bin
    const std::string root = prefix.substr(0, prefix.rfind('/')) + "/";
    for (const facts::PythonEnv& env : facts_.envs) {
      if (!env.distributions || root == "/usr/" || root == "/") continue;
      for (const facts::Distribution& package : *env.distributions)
        if (package.name == "cmake" && starts_with(package.location, root) &&
            is_number(package.version))
          return known("version " + package.version, SourceKind::file, package.location);
    }
    if (root == "/usr/" || root == "/") {
      std::string version = formats::dpkg_upstream(formats::dpkg_version(status(), "cmake"));
      if (is_number(version)) return known("version " + version, SourceKind::file, k_dpkg);
    }
    return missing<std::string>(WhyNot::not_supported, SourceKind::file, path,
                                "no package tells its version");
  }

  // A suffix ("~rc1", ".post1") is the package's word, not the program's.
  static bool is_number(const std::string& version) {
    return !version.empty() && version.find_first_not_of("0123456789.") == std::string::npos;
  }

  void nvcc(facts::Toolkit& toolkit) {
    if (toolkit.nvcc_version || !toolkit.nvcc) return;
    std::string path =
        toolkit.path + "/bin/nvcc";  // that of a distribution in /usr/bin is a script
    if (!host_.exists(path)) path = *toolkit.nvcc;
    Result<std::string> bytes = host_.read_file(path, k_max_nvcc);
    if (!bytes) {
      toolkit.nvcc_version = missing_file<std::string>(bytes.error(), path);
      return;
    }
    std::string version = formats::nvcc_version_in(*bytes);
    toolkit.nvcc_version = version.empty()
                               ? missing<std::string>(WhyNot::not_supported, SourceKind::file, path,
                                                      "does not tell its version")
                               : known(version, SourceKind::file, path);
  }

  const std::string& status() {
    if (!status_) status_ = host_.read_file(k_dpkg, 64u << 20).value_or(std::string());
    return *status_;
  }

  const Host& host_;
  facts::Facts& facts_;
  std::optional<std::string> status_;
};

}  // namespace

void read_tool_versions(const Host& host, facts::Facts& facts) { ToolVersions(host, facts).read(); }

}  // namespace cufit::host
