// SPDX-License-Identifier: Apache-2.0
// Where glibc's loader would find a library: the search of ld.so(8) for one name, done on the files
// of a Host. Used for the driver libraries and, by host/python/process_image, for everything that a
// torch process would load. It opens candidates to compare the ELF header, as glibc does; it loads
// and runs nothing.
//
// Order (elf/dl-load.c): a name with a slash is the path; else the DT_RPATH of the requester, of
// what loaded the requester, and so on up to the program, all of it only if the requester has no
// DT_RUNPATH, and never of an object with a DT_RUNPATH; LD_LIBRARY_PATH; the requester's own
// DT_RUNPATH; /etc/ld.so.cache; the default directories. Every directory is tried with its
// glibc-hwcaps sub-directories first. A file of another class or machine is passed over, a file
// that is not ELF ends the search with an error. Objects that are already loaded are the caller's
// business. Not modelled: musl, auditing, setuid programs, the "tls" and "haswell" sub-directories
// of glibc before 2.37.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/binary/ld_cache.h"
#include "host/files/host.h"

namespace cufit::host {

struct LoaderSettings {
  std::string libc = "glibc";  // "glibc", "musl" (not modelled: nothing is found), "none"
  std::string architecture;    // "x86_64", "aarch64"
  std::vector<std::string> ld_library_path;  // split, in order; "" = the current directory
  std::vector<std::string> ld_preload;
  std::shared_ptr<const formats::LdCache> cache;  // null = none could be read
  std::vector<std::string> default_dirs;          // compiled into the loader: multiarch or lib64
  std::string lib_token;              // what $LIB stands for: "lib/x86_64-linux-gnu", "lib64"
  std::vector<std::string> problems;  // "`/etc/ld.so.cache`: ..."
};

// Settings of a process that would be started now on `host` with its variables.
LoaderSettings read_loader_settings(const Host& host);

// What the search must know of the object that asks for a library.
struct Requester {
  std::string path;                  // as it was opened; $ORIGIN is its folder
  std::vector<std::string> rpath;    // DT_RPATH, split at ':'
  std::vector<std::string> runpath;  // DT_RUNPATH; when present DT_RPATH is ignored
  bool no_default_lib = false;       // -z nodefaultlib
  const Requester* loader =
      nullptr;  // the object whose need or dlopen brought it in; null for the program
};

struct Located {
  std::string path;
  // "RPATH", "LD_LIBRARY_PATH", "RUNPATH", "ld.so.cache", "default directory", "path"
  std::string by;
  std::string problem;  // not empty: glibc stops here with this error ("invalid ELF header")
};

class LibrarySearch {
 public:
  LibrarySearch(const Host& host, LoaderSettings settings);

  // `requester` null: as if the program itself (without RPATH) asked. `program` is the executable,
  // whose RPATH is tried even when the chain of loaders does not lead to it.
  std::optional<Located> find(const std::string& name, const Requester* requester = nullptr,
                              const Requester* program = nullptr) const;

  // Every file of this name that any search path of this requester holds, in order; the first is
  // what find() gives.
  std::vector<Located> find_all(const std::string& name, const Requester* requester = nullptr,
                                const Requester* program = nullptr) const;

  const LoaderSettings& settings() const { return settings_; }

 private:
  enum class Fit { absent, other_machine, usable, not_elf };
  struct Directory {
    bool exists = false;
    std::vector<std::string> hwcaps;  // existing sub-directories for this CPU, best first
  };

  bool collect(const std::string& name, const Requester* requester, const Requester* program,
               bool all, std::vector<Located>& out) const;
  bool try_directories(const std::vector<std::string>& dirs, const Requester* object,
                       const std::string& name, const char* by, bool all,
                       std::vector<Located>& out) const;
  bool try_cache(const std::string& name, bool no_default, bool all,
                 std::vector<Located>& out) const;
  bool try_file(const std::string& path, const char* by, bool all, std::vector<Located>& out) const;
  std::optional<std::string> expand(const std::string& path, const Requester* object) const;
  const Directory& directory(const std::string& path) const;
  const std::vector<std::string>& cpu_levels() const;
  bool is_default(const std::string& path) const;
  Fit check(const std::string& path, std::string& problem) const;

  const Host& host_;
  LoaderSettings settings_;
  mutable std::map<std::string, Directory> directories_;
  mutable std::optional<std::vector<std::string>> cpu_levels_;
};

}  // namespace cufit::host
