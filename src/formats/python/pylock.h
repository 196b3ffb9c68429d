// SPDX-License-Identifier: Apache-2.0
// pylock.toml (PEP 751): every package of an environment with the files to install and their
// hashes. Read by `cufit lock`, `env` and `export`; written by the installer. What cufit does not
// need (tool tables, attestations, upload times) is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/version.h"

namespace cufit::formats {

// One file: a wheel, a source distribution or a plain archive.
struct PylockFile {
  std::string name;  // "torch-2.7.1-cp311-....whl"; where not written, the end of url or path
  std::string url, path;
  std::optional<uint64_t> size;
  std::vector<std::pair<std::string, std::string>> hashes;  // {"sha256", "..."}, lower case
  std::string uploaded = {};  // day: "2023-12-14"; empty where the index does not tell
};

struct PylockPackage {
  std::string name;     // normalised
  std::string version;  // empty where the file does not tell (a directory, a VCS)
  std::string marker, requires_python, index;
  std::vector<PylockFile> wheels;
  std::optional<PylockFile> sdist, archive;
  std::string vcs;        // "git https://..." of [packages.vcs]
  std::string directory;  // path of [packages.directory]
  bool editable = false;  // of that folder
  uint32_t line = 0;
};

struct Pylock {
  std::string lock_version, requires_python, created_by;
  std::vector<PylockPackage> packages;  // in the file's order
};

// Error{malformed} "FILE:LINE: what"; Error{unsupported} for a lock-version that is not 1.x, which
// PEP 751 asks readers to refuse. Limits: 64 MiB, 20 000 packages, 2 000 files of a package.
Result<Pylock> parse_pylock(std::string_view text, const std::string& file);

// The first day on which a file of it was there; empty where no file tells.
std::string uploaded(const PylockPackage& package);

const PylockPackage* find_package(const Pylock& lock, std::string_view normalised_name);

// Whether the package's marker holds on Linux with this Python ("3.11") and machine ("x86_64"); a
// marker that cannot be decided counts as true.
bool applies(const PylockPackage& package, const std::string& python, const std::string& machine);

// Bytes to download: of each package its largest wheel, else its sdist or archive. Sizes that are
// not written count as nothing; `unsized` gets their number.
uint64_t download_bytes(const Pylock& lock, const std::string& python, const std::string& machine,
                        uint64_t* unsized = nullptr);

// "flash-attn 2.8.3": packages with no wheel for CPython of this minor on Linux with this machine
// and glibc. The installer builds them from their source where the environment is made.
std::vector<std::string> built_from_source(const Pylock& lock, const std::string& python,
                                           const std::string& machine, const Version& glibc);

}  // namespace cufit::formats
