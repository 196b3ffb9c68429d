// SPDX-License-Identifier: Apache-2.0
// Fatbins: the containers of device code inside host binaries (sections `.nv_fatbin` and
// `__nv_relfatbin`). Only headers are read; everything that a verdict needs is in them,
// uncompressed. Used by elf.cc and by tests.
//
// Container, little endian, 16 bytes, then its entries back to back; the next container follows on
// 8 bytes:
//    0 u32 magic 0xBA55ED50 (0x1EE55A01 before CUDA 5)   4 u16 version   6 u16 header size   8 u64
//    size of the entries
// Entry, 64 bytes, then options and source name up to the header size, then the payload:
//    0 u16 kind    2 u16 0x0101       4 u32 header size    8 u64 payload size as stored (padded)
//   16 u32 size compressed           20 u32 options        24 u16 minor, u16 major: PTX ISA, or the
//   cubin's own version 28 u32 architecture              32 u32 name offset, u32 name length 40 u64
//   flags                     48 u64 reserved       56 u64 size uncompressed
// Origin: compiled with CUDA 12.4 and 13.0 for every target and compared with cuobjdump
// (tests/wheels/inspect_test.cc). Not known: containers of CUDA 3 and older, whose "fatbin" was a
// structure with pointers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/binary/device_code.h"
#include "formats/binary/byte_window.h"

namespace cufit::formats {

enum FatbinKind : uint16_t {
  k_fatbin_ptx = 1,
  k_fatbin_cubin = 2,
  k_fatbin_lto = 8,         // NVVM IR for the link-time optimiser
  k_fatbin_capsule = 0x10,  // Mercury: stands in for machine code on capability 10 and later
  k_fatbin_index = 0x20,
  k_fatbin_relocatable_ptx = 0x40,
  k_fatbin_tile_ir = 0x80,
  k_fatbin_concatenated = 0x100,
};

constexpr uint64_t k_fatbin_flag_64bit = 0x1;
constexpr uint64_t k_fatbin_flag_specific = 1u << 20;  // "a": runs on that architecture only
constexpr uint64_t k_fatbin_flag_family = 1u << 21;    // "f": runs on that family

struct FatbinEntry {
  uint64_t offset = 0;     // of the entry header in the file
  uint64_t container = 0;  // of its container's header
  uint16_t kind = 0;
  uint16_t major = 0, minor = 0;
  uint32_t architecture = 0;
  uint64_t flags = 0;
  uint64_t payload_bytes = 0;
  uint64_t full_bytes = 0;  // after decompression; payload_bytes where it is not compressed

  CodeKind code_kind() const;
  // A machine code image without a kernel. Measured: 1896 and 1904 bytes in libcufft and libcufftw
  // of CUDA 13, which keep their kernels in data sections and load them by themselves; the smallest
  // with a kernel in libtorch_cuda.so has 3880.
  bool is_empty_image() const;
  std::string arch() const;     // "90a"
  std::string ptx_isa() const;  // "8.8"; empty unless PTX
};

// Visits the entries of all containers in [offset, offset + size) in file order. After a broken
// header it goes on at the next container (on 8-byte boundaries).
void walk_fatbin(const ByteSource& source, uint64_t offset, uint64_t size,
                 const std::function<void(const FatbinEntry&)>& visit, std::vector<Damage>& damage);

// Counts equal entries together without a heap allocation for each.
//
// Entries of `__nv_relfatbin` are relocatable objects. Their machine code has been linked into
// `.nv_fatbin`; their PTX is what the driver links at load time for a device that has no machine
// code ("JIT linking"), which works only when every object has it. So they count, but what some
// object lacks is marked as not loadable.
class CodeTable {
 public:
  void add(const FatbinEntry& entry, bool relocatable = false);
  // Sorted by kind, architecture, suffix and PTX ISA.
  std::vector<DeviceCode> sorted() const;
  bool overflowed() const { return overflowed_; }

 private:
  struct Row {
    FatbinEntry entry;
    uint32_t executable = 0, relocatable = 0;
  };
  bool is_loadable(const Row& row) const;

  std::vector<Row> rows_;
  size_t last_ = 0;
  bool has_executable_ = false;
  uint64_t last_object_ = UINT64_MAX;
  uint32_t objects_ = 0;  // relocatable containers
  bool overflowed_ = false;
};

}  // namespace cufit::formats
