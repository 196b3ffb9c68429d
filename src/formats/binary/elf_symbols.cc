// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf_symbols.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr size_t k_elf_symbols_max_name =
    1u << 16;  // mangled names of libtorch reach some 10 000 characters
constexpr uint64_t k_max_symbols = 16u << 20;  // libtorch_cpu.so has about 150 000
constexpr uint64_t k_max_table = 64u << 20;    // bytes of a bloom filter or bucket array
constexpr uint64_t k_max_chain = 1u << 16;     // steps for one name; a good table needs two

struct Symbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  bool is_weak() const { return info >> 4 == 2; }
  bool is_local() const { return info >> 4 == 0; }
};

size_t symbol_bytes(bool is_64bit) { return is_64bit ? 24 : 16; }

// Elf64_Sym: name, info, other, shndx, value, size. Elf32_Sym: name, value, size, info, other,
// shndx.
Symbol decode_symbol(const std::byte* at, bool is_64bit) {
  Symbol symbol;
  symbol.name = load_le<uint32_t>(at);
  symbol.info = load_le<uint8_t>(at + (is_64bit ? 4 : 12));
  symbol.section = load_le<uint16_t>(at + (is_64bit ? 6 : 14));
  return symbol;
}

template <class T>
std::optional<T> load_at(const ByteSource& source, uint64_t offset) {
  std::byte bytes[sizeof(T)];
  Result<size_t> got = source.read(offset, bytes);
  if (!got || *got != sizeof(T)) return std::nullopt;
  return load_le<T>(bytes);
}

std::optional<FileRange> symbol_range(const ElfImage& image) {
  std::optional<uint64_t> address = image.dynamic_value(k_tag_symtab);
  return address ? image.find_address(*address) : std::nullopt;
}

// How many dynamic symbols there are: DT_HASH says it, else the section, else the usual layout
// where the strings follow the symbols.
uint64_t count_symbols(const ByteSource& source, const ElfImage& image, const FileRange& symbols) {
  const size_t bytes = symbol_bytes(image.is_64bit);
  uint64_t most = std::min<uint64_t>(symbols.size / bytes, k_max_symbols);
  if (std::optional<uint64_t> hash = image.dynamic_value(k_tag_hash)) {
    if (std::optional<FileRange> range = image.find_address(*hash)) {
      if (std::optional<uint32_t> count = load_at<uint32_t>(source, range->offset + 4))
        return std::min<uint64_t>(*count, most);
    }
  }
  for (const Section& section : image.sections)
    if (section.type == k_section_dynsym) return std::min<uint64_t>(section.size / bytes, most);
  if (std::optional<FileRange> strings = image.string_table()) {
    if (strings->offset > symbols.offset)
      return std::min<uint64_t>((strings->offset - symbols.offset) / bytes, most);
  }
  return most;
}

// Symbols below this index may be undefined. DT_GNU_HASH orders the defined ones to the end, so
// that in a library with 100 000 symbols only its few thousand imports are looked at.
uint64_t undefined_end(const ByteSource& source, const ElfImage& image, const FileRange& symbols) {
  std::optional<uint64_t> hash = image.dynamic_value(k_tag_gnu_hash);
  std::optional<FileRange> range = hash ? image.find_address(*hash) : std::nullopt;
  uint64_t all = count_symbols(source, image, symbols);
  if (!range) return all;
  std::optional<uint32_t> first = load_at<uint32_t>(source, range->offset + 4);
  // Linkers write first = 1 into the empty table of a file that exports nothing.
  return first && *first > 1 ? std::min<uint64_t>(*first, all) : all;
}

// Calls visit(name) for every undefined symbol until it returns false. Returns false when the
// tables are broken.
template <class Visit>
bool for_each_undefined(const ByteSource& source, const ElfImage& image, bool with_weak,
                        Visit visit) {
  std::optional<FileRange> symbols = symbol_range(image);
  std::optional<FileRange> strings = image.string_table();
  if (!symbols || !strings) return true;
  const size_t bytes = symbol_bytes(image.is_64bit);
  // Names of imports are scattered over a table of up to 60 MB: a large window would copy it
  // several times.
  Window table(source, 16u << 10), names(source, 512);
  const uint64_t end = undefined_end(source, image, *symbols);
  const uint64_t strings_end =
      strings->offset + std::min(strings->size, UINT64_MAX - strings->offset);
  std::string name;
  for (uint64_t i = 1; i < end; ++i) {
    const std::byte* at = table.at(symbols->offset + i * bytes, bytes);
    if (!at) return false;
    Symbol symbol = decode_symbol(at, image.is_64bit);
    if (symbol.section != 0 || symbol.name == 0 || (symbol.is_weak() && !with_weak)) continue;
    if (symbol.name >= strings->size ||
        !names.string(strings->offset + symbol.name, strings_end, k_elf_symbols_max_name, name))
      return false;
    if (!visit(name)) return true;
  }
  return true;
}

uint32_t gnu_hash(std::string_view name) {
  uint32_t hash = 5381;
  for (char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

uint32_t old_hash(std::string_view name) {  // gABI, "Hash Table Section"
  uint32_t hash = 0;
  for (char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

std::string read_table(const ByteSource& source, uint64_t offset, uint64_t size) {
  Result<std::string> bytes = source.read_exact(offset, size, k_max_table);
  return bytes ? std::move(*bytes) : std::string();
}

}  // namespace

bool is_torch_symbol(std::string_view mangled) {
  // Variables and functions of torch's Python binding have C names (THPVariableClass) or are global
  // functions
  // (_Z16THPVariable_Wrap...).
  if (starts_with(mangled, "THP") || starts_with(mangled, "aoti_torch_")) return true;
  if (!starts_with(mangled, "_Z")) return false;
  std::string_view rest = mangled.substr(2);
  for (std::string_view special : {"TV", "TT", "TI", "TS", "GV", "GR"}) {
    if (starts_with(rest, special)) {
      rest.remove_prefix(2);
      break;
    }
  }
  if (!rest.empty() && is_digit(rest[0])) {
    while (!rest.empty() && is_digit(rest[0])) rest.remove_prefix(1);
    return starts_with(rest, "THP");
  }
  if (!starts_with(rest, "N")) return false;
  rest.remove_prefix(1);
  while (!rest.empty() &&
         (rest[0] == 'r' || rest[0] == 'V' || rest[0] == 'K' || rest[0] == 'R' || rest[0] == 'O'))
    rest.remove_prefix(1);
  return starts_with(rest, "3c10") || starts_with(rest, "2at") || starts_with(rest, "5torch") ||
         starts_with(rest, "6caffe2");
}

std::vector<std::string> undefined_torch_symbols(const ByteSource& source, const ElfImage& image,
                                                 std::vector<Damage>& damage) {
  std::vector<std::string> out;
  // Symbols may share one long name: 40 000 times 64 KB from a file of 1 MB.
  constexpr uint64_t k_max_bytes = 64u << 20;
  uint64_t bytes = 0;
  bool whole = for_each_undefined(source, image, false, [&](const std::string& name) {
    bytes += name.size();
    if (is_torch_symbol(name)) out.push_back(name);
    return bytes < k_max_bytes;
  });
  whole = whole && bytes < k_max_bytes;
  if (!whole)
    add_damage(damage, 0, "the table of dynamic symbols is broken; not every import was read");
  return out;
}

// Itanium C++ ABI, 5.1: std::string is the substitution "Ss" under the old ABI and
// St7__cxx1112basic_string under the new one. Identifiers ("4Sspx") and literals ("Lj16E") are
// stepped over so that only real substitutions count.
std::optional<bool> cxx11_abi_of(std::string_view mangled) {
  if (!starts_with(mangled, "_Z")) return std::nullopt;
  if (contains(mangled, "7__cxx1112basic_string")) return true;
  for (size_t i = 2; i < mangled.size();) {
    char c = mangled[i];
    if (is_digit(c)) {
      size_t length = 0;
      while (i < mangled.size() && is_digit(mangled[i]) && length < mangled.size())
        length = length * 10 + static_cast<size_t>(mangled[i++] - '0');
      i += length;
    } else if (c == 'L' && i + 2 < mangled.size() && mangled[i + 1] >= 'a' &&
               mangled[i + 1] <= 'z' && (is_digit(mangled[i + 2]) || mangled[i + 2] == 'n')) {
      size_t close = mangled.find('E', i);
      if (close == std::string_view::npos) return std::nullopt;
      i = close + 1;
    } else if (c == 'S' || c == 'T') {
      char next = i + 1 < mangled.size() ? mangled[i + 1] : '\0';
      if (c == 'S' && next == 's') return false;
      if (next == '_' || is_digit(next) || (c == 'S' && next >= 'A' && next <= 'Z')) {
        size_t close = mangled.find('_', i + 1);
        if (close == std::string_view::npos) return std::nullopt;
        i = close + 1;
      } else {
        i += 2;
      }
    } else if (c == 'A' && i + 1 < mangled.size() && is_digit(mangled[i + 1])) {
      size_t close = mangled.find('_', i);  // array bound: A16_c
      if (close == std::string_view::npos) return std::nullopt;
      i = close + 1;
    } else {
      ++i;
    }
  }
  return std::nullopt;
}

std::optional<bool> find_cxx11_abi(const ByteSource& source, const ElfImage& image) {
  bool old_seen = false, new_seen = false;
  // One compiler run has one ABI, and a file is linked from several at most: this many that agree
  // are enough, and libtorch_python alone has 12 000 imports.
  int telling = 8;
  for_each_undefined(source, image, true, [&](const std::string& name) {
    if (!is_torch_symbol(name)) return true;
    std::optional<bool> abi = cxx11_abi_of(name);
    if (!abi) return true;
    (*abi ? new_seen : old_seen) = true;
    return --telling > 0 && !(new_seen && old_seen);
  });
  if (new_seen != old_seen) return new_seen;
  if (new_seen) return std::nullopt;
  // libc10 imports nothing of torch; it defines c10::Error's constructors (SourceLocation,
  // std::string).
  SymbolTable table = SymbolTable::from_image({std::shared_ptr<const void>(), &source}, image);
  bool defines_new = table.defines(
      "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  bool defines_old = table.defines("_ZN3c105ErrorC1ENS_14SourceLocationESs") ||
                     table.defines("_ZN3c105ErrorC1ENS_14SourceLocationERKSs");
  if (defines_new == defines_old) return std::nullopt;
  return defines_new;
}

Result<SymbolTable> SymbolTable::open(std::shared_ptr<const ByteSource> source) {
  std::vector<Damage> damage;
  CUFIT_TRY(image, ElfImage::open(*source, damage));
  return from_image(std::move(source), image);
}

SymbolTable SymbolTable::from_image(std::shared_ptr<const ByteSource> source,
                                    const ElfImage& image) {
  SymbolTable table;
  table.source_ = std::move(source);
  table.is_64bit_ = image.is_64bit;
  std::optional<FileRange> symbols = symbol_range(image), strings = image.string_table();
  if (!symbols || !strings) return table;
  table.symbols_ = *symbols;
  table.strings_ = *strings;
  const ByteSource& file = *table.source_;
  auto range_of = [&](uint64_t tag) {
    std::optional<uint64_t> address = image.dynamic_value(tag);
    return address ? image.find_address(*address) : std::nullopt;
  };
  // DT_GNU_HASH: nbuckets, first hashed symbol, bloom words, bloom shift; bloom filter; buckets;
  // chains.
  if (std::optional<FileRange> at = range_of(k_tag_gnu_hash)) {
    if (Result<std::string> head = file.read_exact(at->offset, 16)) {
      GnuHash hash;
      uint64_t buckets = uint64_t{load_le<uint32_t>(head->data())} * 4;
      uint64_t bloom = uint64_t{load_le<uint32_t>(head->data() + 8)} * (image.is_64bit ? 8 : 4);
      hash.first_symbol = load_le<uint32_t>(head->data() + 4);
      hash.bloom_shift = load_le<uint32_t>(head->data() + 12);
      if (16 + bloom + buckets <= at->size) {
        hash.bloom = read_table(file, at->offset + 16, bloom);
        hash.buckets = read_table(file, at->offset + 16 + bloom, buckets);
        hash.chains = {at->offset + 16 + bloom + buckets, at->size - 16 - bloom - buckets};
      }
      if (!hash.bloom.empty() && !hash.buckets.empty()) table.gnu_ = std::move(hash);
    }
  }
  // DT_HASH: nbucket, nchain; buckets; chains.
  if (std::optional<FileRange> at = range_of(k_tag_hash); at && !table.gnu_) {
    if (Result<std::string> head = file.read_exact(at->offset, 8)) {
      OldHash hash;
      uint64_t buckets = uint64_t{load_le<uint32_t>(head->data())} * 4;
      if (8 + buckets <= at->size) {
        hash.buckets = read_table(file, at->offset + 8, buckets);
        hash.chains = {at->offset + 8 + buckets, at->size - 8 - buckets};
      }
      if (!hash.buckets.empty()) table.old_ = std::move(hash);
    }
  }
  if (!table.gnu_ && !table.old_) table.scan_count_ = count_symbols(file, image, *symbols);
  return table;
}

bool SymbolTable::is_defined_as(uint64_t index, std::string_view name) const {
  const size_t bytes = symbol_bytes(is_64bit_);
  if (index >= symbols_.size / bytes) return false;
  std::byte raw[24];
  Result<size_t> got = source_->read(symbols_.offset + index * bytes, std::span(raw, bytes));
  if (!got || *got != bytes) return false;
  Symbol symbol = decode_symbol(raw, is_64bit_);
  if (symbol.section == 0 || symbol.is_local()) return false;
  if (symbol.name >= strings_.size || name.size() >= strings_.size - symbol.name) return false;
  std::byte text[256];
  uint64_t offset = strings_.offset + symbol.name;
  for (size_t done = 0; done <= name.size();) {  // the terminating zero belongs to the comparison
    size_t part = std::min(sizeof text, name.size() + 1 - done);
    got = source_->read(offset + done, std::span(text, part));
    if (!got || *got != part) return false;
    size_t letters = std::min(part, name.size() - done);
    if (std::memcmp(text, name.data() + done, letters) != 0) return false;
    if (letters < part && text[letters] != std::byte{0}) return false;
    done += part;
  }
  return true;
}

bool SymbolTable::find_gnu(std::string_view name) const {
  const uint32_t hash = gnu_hash(name);
  const uint32_t bits = is_64bit_ ? 64 : 32;
  const uint64_t words = gnu_->bloom.size() / (bits / 8);
  const uint64_t word_index = (hash / bits) % words;
  uint64_t word = is_64bit_ ? load_le<uint64_t>(gnu_->bloom.data() + word_index * 8)
                            : load_le<uint32_t>(gnu_->bloom.data() + word_index * 4);
  uint32_t second = gnu_->bloom_shift < 32 ? (hash >> gnu_->bloom_shift) % bits : 0;
  if (!(word >> (hash % bits) & 1) || !(word >> second & 1)) return false;
  const uint64_t bucket = hash % (gnu_->buckets.size() / 4);
  uint64_t index = load_le<uint32_t>(gnu_->buckets.data() + bucket * 4);
  if (index < gnu_->first_symbol) return false;  // 0 = empty
  for (uint64_t step = 0; step < k_max_chain; ++step, ++index) {
    uint64_t at = (index - gnu_->first_symbol) * 4;
    if (at + 4 > gnu_->chains.size) return false;
    std::optional<uint32_t> link = load_at<uint32_t>(*source_, gnu_->chains.offset + at);
    if (!link) return false;
    if ((*link | 1) == (hash | 1) && is_defined_as(index, name)) return true;
    if (*link & 1) return false;  // end of the chain
  }
  return false;
}

bool SymbolTable::find_old(std::string_view name) const {
  const uint64_t bucket = old_hash(name) % (old_->buckets.size() / 4);
  uint64_t index = load_le<uint32_t>(old_->buckets.data() + bucket * 4);
  for (uint64_t step = 0; index != 0 && step < k_max_chain; ++step) {
    if (is_defined_as(index, name)) return true;
    if (index * 4 + 4 > old_->chains.size) return false;
    std::optional<uint32_t> link = load_at<uint32_t>(*source_, old_->chains.offset + index * 4);
    if (!link) return false;
    index = *link;
  }
  return false;
}

bool SymbolTable::defines(std::string_view name) const {
  if (name.empty() || !source_) return false;
  if (gnu_) return find_gnu(name);
  if (old_) return find_old(name);
  for (uint64_t i = 1; i < scan_count_; ++i)
    if (is_defined_as(i, name)) return true;
  return false;
}

}  // namespace cufit::formats
