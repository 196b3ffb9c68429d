// SPDX-License-Identifier: Apache-2.0
// cufit.lock: which environment of a set serves which hardware, and why. TOML, written beside one
// pylock.<class>.toml (PEP 751) per class. Everything that `cufit run` needs to choose stands in
// it, so that no table has to be asked at launch: an older cufit reads a newer lock.
//
//   schema = "cufit.lock/1"
//   created-by = "cufit 0.1.0"
//   requirements = ["torch>=2.4", "numpy"]
//   targets = ["RTX 4090,535", "this machine"]
//   asked = ["-r requirements.txt"]   # what the lock was made from, to make it again
//
//   [[class]]
//   name = "cu126"
//   file = "pylock.cu126.toml"
//   sha256 = "..."                    # of that file
//   torch = "2.14.1"
//   tag = "cu126"
//   cuda = "12.6.3"                   # absent in a CPU class
//   python = "3.12"
//   platform = "linux_x86_64"
//   driver-min = "525.60.13"
//   driver-full = "560.28.03"
//   cubins = ["50", "60", "70", "75", "80", "86", "90"]
//   ptx = [{ arch = "120", isa = "9.0" }]
//   glibc = "2.28"
//   packages = 42
//   download-bytes = 3141592653
//   serves = ["RTX 4090,535"]
//   why = "newest torch for ..."      # one line, English
//
//   [sum]                             # last; locks made before it was written have none
//   sha256 = "..."                    # of all bytes above this table
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "resolve/wheel/wheel_compatibility.h"

namespace cufit::resolve {

struct LockClass {
  std::string name, file, sha256;
  Wheel wheel;         // torch, tag, cuda, drivers, code, glibc, platform
  std::string python;  // "3.12"
  uint64_t packages = 0, download_bytes = 0;
  std::vector<std::string> serves;
  std::string why;
};

struct LockFile {
  std::string path;  // for messages; not written
  std::string created_by;
  std::vector<std::string> requirements, targets;
  // "-r FILE" (seen from the lock's folder), "--extra NAME", "--python 3.12",
  // "--default-index-only" and requirements of the command line: what `cufit lock` without them
  // takes up again.
  std::vector<std::string> asked;
  std::vector<LockClass> classes;  // best first
  bool edited = false;             // read: it is not what its own sum was taken of; not written
  bool summed = true;              // read: it has a sum; without, nobody can tell
};

// Error{malformed} names the file and the line. Unknown keys are left alone; another schema is
// Error{unsupported}.
Result<LockFile> parse_lock(std::string_view text, const std::string& path);
std::string lock_text(const LockFile& lock);

// The first class, in the lock's order, that the target can use; full fits before
// minor-version-compatible ones of the same torch only. npos = none; verdicts has one entry per
// class either way.
struct Routing {
  size_t chosen = npos;
  std::vector<Verdict> verdicts;
  static constexpr size_t npos = static_cast<size_t>(-1);
};
Routing route(const LockFile& lock, const Target& target, const knowledge::Knowledge& knowledge);
// Some class serves the whole target, as `routing` of it says, or each group of its GPUs its own.
bool serves_all_gpus(const LockFile& lock, const Target& target, const Routing& routing,
                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
