// SPDX-License-Identifier: Apache-2.0
#include "support/elf_builder.h"

#include <algorithm>

namespace cufit::tests {
namespace {

constexpr uint64_t k_base =
    0x10000;  // address of file offset 0, so that addresses and offsets differ

void append(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void align(std::string& out, size_t to) {
  while (out.size() % to != 0) out += '\0';
}

class Strings {
 public:
  uint32_t add(const std::string& text) {
    uint32_t at = static_cast<uint32_t>(bytes.size());
    bytes += text + '\0';
    return at;
  }
  std::string bytes = std::string(1, '\0');
};

uint32_t gnu_hash(const std::string& name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

uint32_t old_hash(const std::string& name) {
  uint32_t hash = 0;
  for (char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    uint32_t high = hash & 0xf0000000;
    if (high) hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

// Defined symbols go behind the others, ordered by bucket, as DT_GNU_HASH demands.
std::string gnu_table(std::vector<DynamicSymbol>& symbols, bool is_64bit) {
  auto first = std::stable_partition(symbols.begin(), symbols.end(),
                                     [](const auto& s) { return !s.defined; });
  const uint32_t first_index = static_cast<uint32_t>(first - symbols.begin()) + 1;
  const uint32_t count = static_cast<uint32_t>(symbols.end() - first);
  const uint32_t buckets = std::max<uint32_t>(1, count / 3), bits = is_64bit ? 64 : 32, shift = 6,
                 words = 2;
  std::stable_sort(first, symbols.end(), [&](const auto& a, const auto& b) {
    return gnu_hash(a.name) % buckets < gnu_hash(b.name) % buckets;
  });
  std::vector<uint64_t> bloom(words, 0);
  std::vector<uint32_t> starts(buckets, 0), chains;
  for (auto it = first; it != symbols.end(); ++it) {
    uint32_t hash = gnu_hash(it->name), bucket = hash % buckets;
    bloom[hash / bits % words] |= uint64_t{1} << (hash % bits) | uint64_t{1}
                                                                     << ((hash >> shift) % bits);
    if (starts[bucket] == 0) starts[bucket] = first_index + static_cast<uint32_t>(chains.size());
    bool last = it + 1 == symbols.end() || gnu_hash((it + 1)->name) % buckets != bucket;
    chains.push_back((hash & ~1u) | (last ? 1u : 0u));
  }
  std::string out;
  append(out, buckets, 4);
  append(out, count == 0 ? 1 : first_index, 4);
  append(out, words, 4);
  append(out, shift, 4);
  for (uint64_t word : bloom) append(out, word, bits / 8);
  for (uint32_t start : starts) append(out, start, 4);
  for (uint32_t chain : chains) append(out, chain, 4);
  return out;
}

std::string old_table(const std::vector<DynamicSymbol>& symbols) {
  const uint32_t buckets = 3;
  std::vector<uint32_t> starts(buckets, 0), chains(symbols.size() + 1, 0);
  for (uint32_t i = 1; i <= symbols.size(); ++i) {
    uint32_t bucket = old_hash(symbols[i - 1].name) % buckets;
    chains[i] = starts[bucket];
    starts[bucket] = i;
  }
  std::string out;
  append(out, buckets, 4);
  append(out, chains.size(), 4);
  for (uint32_t start : starts) append(out, start, 4);
  for (uint32_t chain : chains) append(out, chain, 4);
  return out;
}

struct Built {
  std::string file;
  std::vector<std::pair<uint64_t, uint64_t>> dynamic;
};

uint64_t place(Built& built, const std::string& bytes) {
  align(built.file, 8);
  uint64_t address = k_base + built.file.size();
  built.file += bytes;
  return address;
}

std::string version_table(const ElfSpec& spec, Strings& strings) {
  std::string out;
  for (size_t i = 0; i < spec.version_needs.size(); ++i) {
    const auto& [file, versions] = spec.version_needs[i];
    bool last = i + 1 == spec.version_needs.size();
    append(out, 1, 2);
    append(out, versions.size(), 2);
    append(out, strings.add(file), 4);
    append(out, 16, 4);
    append(out, last ? 0 : 16 + 16 * versions.size(), 4);
    for (size_t j = 0; j < versions.size(); ++j) {
      append(out, 0, 4);
      append(out, 0, 2);
      append(out, j + 2, 2);
      append(out, strings.add(versions[j]), 4);
      append(out, j + 1 == versions.size() ? 0 : 16, 4);
    }
  }
  return out;
}

std::string symbol_table(const std::vector<DynamicSymbol>& symbols, bool is_64bit,
                         Strings& strings) {
  std::string out(is_64bit ? 24 : 16, '\0');
  for (const DynamicSymbol& symbol : symbols) {
    uint64_t info = symbol.weak ? 0x22 : 0x12, section = symbol.defined ? 1 : 0,
             value = symbol.defined ? k_base : 0;
    append(out, strings.add(symbol.name), 4);
    if (is_64bit) {
      append(out, info, 1), append(out, 0, 1), append(out, section, 2), append(out, value, 8),
          append(out, 8, 8);
    } else {
      append(out, value, 4), append(out, 8, 4), append(out, info, 1), append(out, 0, 1),
          append(out, section, 2);
    }
  }
  return out;
}

void add_dynamic_tables(const ElfSpec& spec, Built& built) {
  Strings strings;
  auto text = [&](uint64_t tag, const std::string& value) {
    if (!value.empty()) built.dynamic.emplace_back(tag, strings.add(value));
  };
  for (const std::string& name : spec.needed) text(1, name);
  text(14, spec.soname);
  text(15, spec.rpath);
  text(29, spec.runpath);
  if (spec.no_default_lib) built.dynamic.emplace_back(0x6ffffffb, 0x800);
  if (!spec.version_needs.empty()) {
    built.dynamic.emplace_back(0x6ffffffe, place(built, version_table(spec, strings)));
    built.dynamic.emplace_back(0x6fffffff, spec.version_needs.size());
  }
  std::vector<DynamicSymbol> symbols = spec.symbols;
  if (spec.hash == HashStyle::gnu)
    built.dynamic.emplace_back(0x6ffffef5, place(built, gnu_table(symbols, spec.is_64bit)));
  if (spec.hash == HashStyle::old) built.dynamic.emplace_back(4, place(built, old_table(symbols)));
  built.dynamic.emplace_back(6, place(built, symbol_table(symbols, spec.is_64bit, strings)));
  built.dynamic.emplace_back(5, place(built, strings.bytes));
  built.dynamic.emplace_back(10, strings.bytes.size());
  built.dynamic.emplace_back(0, 0);
}

}  // namespace

void put(std::string& out, size_t at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

std::string build_elf(const ElfSpec& spec) {
  const size_t word = spec.is_64bit ? 8 : 4, header = spec.is_64bit ? 64 : 52,
               segment = spec.is_64bit ? 56 : 32;
  struct Segment {
    uint32_t type;
    uint64_t offset, size;
  };
  Built built;
  built.file.assign(header + 3 * segment, '\0');
  std::vector<Segment> segments;
  if (!spec.interpreter.empty()) {
    uint64_t at = place(built, spec.interpreter + '\0') - k_base;
    segments.push_back({3, at, spec.interpreter.size() + 1});
  }
  add_dynamic_tables(spec, built);
  align(built.file, 8);
  const uint64_t dynamic_at = built.file.size();
  for (const auto& [tag, value] : built.dynamic)
    append(built.file, tag, word), append(built.file, value, word);
  segments.push_back({2, dynamic_at, built.file.size() - dynamic_at});

  struct Section {
    uint32_t name;
    uint64_t offset, size;
  };
  Strings names;
  std::vector<Section> sections;
  for (const auto& [name, bytes] : spec.sections) {
    uint64_t at = place(built, bytes) - k_base;
    sections.push_back({names.add(name), at, bytes.size()});
  }
  segments.insert(segments.begin(), {1, 0, built.file.size()});
  std::string& file = built.file;
  uint64_t section_at = 0;
  if (!spec.strip_section_headers) {
    uint32_t own_name = names.add(".shstrtab");
    uint64_t names_at = file.size();
    file += names.bytes;
    sections.push_back({own_name, names_at, names.bytes.size()});
    align(file, 8);
    section_at = file.size();
    file.append(spec.is_64bit ? 64 : 40, '\0');
    for (const Section& s : sections) {
      append(file, s.name, 4), append(file, 1, 4), append(file, 0, word), append(file, 0, word);
      append(file, s.offset, word), append(file, s.size, word), append(file, 0, 4),
          append(file, 0, 4);
      append(file, 8, word), append(file, 0, word);
    }
  }
  file.replace(0, 7,
               std::string("\x7f"
                           "ELF") +
                   static_cast<char>(spec.is_64bit ? 2 : 1) + "\1\1");
  put(file, 16, spec.type, 2), put(file, 18, spec.machine, 2), put(file, 20, 1, 4);
  size_t at = 24 + word;
  put(file, at, header, word), put(file, at + word, section_at, word),
      put(file, at + 2 * word + 4, header, 2);
  put(file, at + 2 * word + 6, segment, 2), put(file, at + 2 * word + 8, segments.size(), 2);
  if (section_at != 0) {
    put(file, at + 2 * word + 10, spec.is_64bit ? 64 : 40, 2),
        put(file, at + 2 * word + 12, sections.size() + 1, 2);
    put(file, at + 2 * word + 14, sections.size(), 2);
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& s = segments[i];
    size_t to = header + i * segment;
    put(file, to, s.type, 4);
    if (spec.is_64bit) {
      put(file, to + 8, s.offset, 8), put(file, to + 16, k_base + s.offset, 8);
      put(file, to + 32, s.size, 8), put(file, to + 40, s.size, 8);
    } else {
      put(file, to + 4, s.offset, 4), put(file, to + 8, k_base + s.offset, 4);
      put(file, to + 16, s.size, 4), put(file, to + 20, s.size, 4);
    }
  }
  return file;
}

std::string build_entry(const EntrySpec& spec) {
  std::string name = spec.name;
  if (!name.empty()) {
    name += '\0';
    align(name, 8);
  }
  std::string payload = spec.payload;
  align(payload, 8);
  std::string out;
  append(out, spec.kind, 2), append(out, 0x0101, 2), append(out, 64 + name.size(), 4),
      append(out, payload.size(), 8);
  append(out, 0, 4), append(out, 0, 4), append(out, spec.minor, 2), append(out, spec.major, 2);
  append(out, spec.arch, 4), append(out, name.empty() ? 0 : 64, 4),
      append(out, spec.name.size(), 4);
  append(out, spec.flags, 8), append(out, 0, 8), append(out, 0, 8);
  return out + name + payload;
}

std::string build_container(const std::vector<EntrySpec>& entries, uint32_t magic) {
  std::string body;
  for (const EntrySpec& entry : entries) body += build_entry(entry);
  std::string out;
  append(out, magic, 4), append(out, 1, 2), append(out, 16, 2), append(out, body.size(), 8);
  return out + body;
}

EntrySpec cubin(uint32_t arch, char suffix) {
  EntrySpec entry;
  entry.arch = arch;
  entry.flags |= suffix == 'a' ? 0x100000 : suffix == 'f' ? 0x200000 : 0;
  if (arch >= 100) entry.flags |= 0x1000000;
  return entry;
}

EntrySpec ptx(uint32_t arch, uint16_t major, uint16_t minor, char suffix) {
  EntrySpec entry = cubin(arch, suffix);
  entry.kind = 1;
  entry.major = major;
  entry.minor = minor;
  return entry;
}

}  // namespace cufit::tests
