// SPDX-License-Identifier: Apache-2.0
// Dynamic symbols: which of torch's symbols a file wants, and whether a library defines them. Exact
// (the hash tables that the loader itself uses) and without loading anything. Symbol versions are
// not looked at: torch has none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/binary/elf_image.h"

namespace cufit::formats {

// A mangled name of a function or variable of the namespaces c10, at, torch or caffe2 (their
// vtables and type information included), or torch's C interface (aoti_torch_*, torch_*).
bool is_torch_symbol(std::string_view mangled);

// Undefined, not weak torch symbols in table order.
std::vector<std::string> undefined_torch_symbols(const ByteSource& source, const ElfImage& image,
                                                 std::vector<Damage>& damage);

// What one mangled name says about its std::string: true = std::__cxx11::basic_string, false = the
// old one ("Ss").
std::optional<bool> cxx11_abi_of(std::string_view mangled);
// What the torch symbols of a file say; nullopt when none tells or when they contradict each other.
std::optional<bool> find_cxx11_abi(const ByteSource& source, const ElfImage& image);

class SymbolTable {
 public:
  // Error for what is no ELF; a library without dynamic symbols defines nothing.
  static Result<SymbolTable> open(std::shared_ptr<const ByteSource> source);
  static SymbolTable from_image(std::shared_ptr<const ByteSource> source, const ElfImage& image);
  // Does the library export this (mangled) name?
  bool defines(std::string_view name) const;

 private:
  struct GnuHash {
    uint32_t first_symbol = 0, bloom_shift = 0;
    std::string bloom, buckets;  // as in the file: 8 (ELF32: 4) and 4 bytes each
    FileRange chains;
  };
  struct OldHash {  // DT_HASH
    std::string buckets;
    FileRange chains;
  };

  bool is_defined_as(uint64_t index, std::string_view name) const;
  bool find_gnu(std::string_view name) const;
  bool find_old(std::string_view name) const;

  std::shared_ptr<const ByteSource> source_;
  bool is_64bit_ = true;
  FileRange symbols_, strings_;
  uint64_t scan_count_ = 0;  // symbols to scan where no hash table exists
  std::optional<GnuHash> gnu_;
  std::optional<OldHash> old_;
};

}  // namespace cufit::formats
