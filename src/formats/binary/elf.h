// SPDX-License-Identifier: Apache-2.0
// What cufit wants to know of one ELF file: what it needs at load time and which device code it
// carries. Used by inspect, by the environment probe and by the loader simulation. Runs nothing and
// loads nothing; reads only headers and the tables that they point to, so a 500 MB library costs
// some thousand small reads.
//
// 32-bit files and other machines' files are read the same way; big-endian ones are an
// Error{unsupported}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "formats/damage.h"
#include "formats/binary/device_code.h"

namespace cufit::formats {

// One file of .gnu.version_r and the versions of it that are needed: {"libc.so.6", {"GLIBC_2.28",
// ...}}.
struct VersionNeed {
  std::string file;
  std::vector<std::string> versions;
};

struct ElfFile {
  bool is_64bit = false;
  uint16_t machine = 0,
           type = 0;  // e_machine (62 x86-64, 183 AArch64, 190 CUDA), e_type (3 shared object)
  std::string soname, interpreter;
  std::vector<std::string> needed;
  std::vector<std::string> rpath, runpath;  // split at ':'; $ORIGIN and its like as written
  bool no_default_lib = false;              // -z nodefaultlib
  std::vector<VersionNeed> version_needs;
  std::string glibc, glibcxx, cxxabi;  // highest needed: "2.28", "3.4.29", "1.3.13"; empty = none
  // Which std::string torch's symbols in this file use: true = __cxx11; nullopt when none of them
  // tells.
  std::optional<bool> cxx11_abi;
  bool has_fatbin = false;  // a fatbin section exists, even without entries
  bool only_empty_images =
      false;  // there is device code, and none of it holds a kernel (FatbinEntry::is_empty_image)
  std::vector<DeviceCode> device_code;  // sorted by kind, architecture, suffix, PTX ISA
  std::string compat_note;              // JSON text of .note.cuda.fwd_compatibility; empty = none
  // with ElfOptions::symbols: what torch's libraries must define
  std::vector<std::string> undefined_torch;
  std::vector<Damage> damage;
};

struct ElfOptions {
  bool device_code = true;
  bool symbols = false;  // fill undefined_torch
  bool abi = true;       // fill cxx11_abi; reads names of symbols, so not for files of no interest
};

bool is_elf(const ByteSource& source);
Result<ElfFile> read_elf(const ByteSource& source, const ElfOptions& options = {});

}  // namespace cufit::formats
