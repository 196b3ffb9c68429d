// SPDX-License-Identifier: Apache-2.0
#include "objects.h"

#include <elf.h>
#include <link.h>
#include <string.h>

namespace guard {
namespace {

// What of a dynamic section a look-up needs. ld.so has added the base to the addresses, except for the vDSO's.
struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* hash = nullptr;
  const char* soname = "";

  Dynamic(const void* section, uintptr_t base) {
    if (!section) return;
    uint64_t name = UINT64_MAX;
    auto at = [base](ElfW(Addr) address) { return address < base ? address + base : address; };
    for (auto* entry = static_cast<const ElfW(Dyn)*>(section); entry->d_tag != DT_NULL; ++entry) {
      ElfW(Addr) place = at(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(place);
      if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(place);
      if (entry->d_tag == DT_GNU_HASH) gnu_hash = reinterpret_cast<const uint32_t*>(place);
      if (entry->d_tag == DT_HASH) hash = reinterpret_cast<const uint32_t*>(place);
      if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
    }
    if (strings && name != UINT64_MAX) soname = strings + name;
  }

  bool is(uint32_t index, const char* name) const {
    const auto& symbol = symbols[index];
    unsigned type = symbol.st_info & 0xf, binding = symbol.st_info >> 4;
    return symbol.st_shndx != SHN_UNDEF && type == STT_FUNC &&
           (binding == STB_GLOBAL || binding == STB_WEAK) && equal(strings + symbol.st_name, name);
  }

  // GNU hash: nbuckets, symoffset, bloom words, bloom shift; bloom[]; buckets[]; chain[] from symoffset on.
  uint32_t by_gnu_hash(const char* name) const {
    uint32_t wanted = 5381;
    for (const char* c = name; *c; ++c) wanted = wanted * 33 + static_cast<unsigned char>(*c);
    uint32_t buckets = gnu_hash[0], offset = gnu_hash[1], words = gnu_hash[2];
    const uint32_t* bucket = gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t* chain = bucket + buckets;
    uint32_t index = buckets ? bucket[wanted % buckets] : 0;
    if (index < offset) return 0;
    while (true) {
      uint32_t found = chain[index - offset];
      if ((found | 1) == (wanted | 1) && is(index, name)) return index;
      if (found & 1) return 0;
      ++index;
    }
  }

  // The older table: nbucket, nchain, bucket[], chain[].
  uint32_t by_hash(const char* name) const {
    uint32_t wanted = 0;
    for (const char* c = name; *c; ++c) {
      wanted = (wanted << 4) + static_cast<unsigned char>(*c);
      uint32_t high = wanted & 0xf0000000;
      wanted ^= high >> 24;
      wanted &= ~high;
    }
    uint32_t buckets = hash[0];
    const uint32_t *bucket = hash + 2, *chain = bucket + buckets;
    for (uint32_t i = buckets ? bucket[wanted % buckets] : 0; i != 0; i = chain[i]) {
      if (is(i, name)) return i;
    }
    return 0;
  }
};

struct Walk {
  VisitObject visit;
  void* data;
  int position;
};

int visit_one(dl_phdr_info* info, size_t, void* data) {
  auto* walk = static_cast<Walk*>(data);
  Object object;
  object.base = info->dlpi_addr;
  object.path = info->dlpi_name ? info->dlpi_name : "";
  object.position = walk->position++;
  object.begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    uintptr_t start = object.base + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) object.dynamic = reinterpret_cast<const void*>(start);
    if (header.p_type != PT_LOAD) continue;
    if (start < object.begin) object.begin = start;
    if (start + header.p_memsz > object.end) object.end = start + header.p_memsz;
  }
  object.soname = Dynamic(object.dynamic, object.base).soname;
  return walk->visit(object, walk->data) ? 1 : 0;
}

}  // namespace

void* Object::function(const char* name) const {
  Dynamic table(dynamic, base);
  if (!table.symbols || !table.strings) return nullptr;
  uint32_t index = 0;
  if (table.gnu_hash)
    index = table.by_gnu_hash(name);
  else if (table.hash)
    index = table.by_hash(name);
  return index ? reinterpret_cast<void*>(base + table.symbols[index].st_value) : nullptr;
}

Family Object::family() const {
  const char* name = *soname ? soname : base_name(path);
  if (starts_with(name, "libcuda.so")) return Family::cuda;
  if (starts_with(name, "libnvidia-ml.so")) return Family::nvml;
  return Family::none;
}

bool each_object_plain(VisitObject visit, void* data) {
  Walk walk{visit, data, 0};
  return dl_iterate_phdr(visit_one, &walk) != 0;
}

bool object_of(const void* address, Object* out) {
  return each_object([&](const Object& object) {
    if (!object.holds(address)) return false;
    *out = object;
    return true;
  });
}

bool object_of_family(Family family, Object* out) {
  return each_object([&](const Object& object) {
    if (object.family() != family) return false;
    *out = object;
    return true;
  });
}

bool within_guard(const void* address) {
  Object own;
  return object_of(reinterpret_cast<const void*>(&visit_one), &own) && own.holds(address);
}

}  // namespace guard
