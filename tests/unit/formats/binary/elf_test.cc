// SPDX-License-Identifier: Apache-2.0
#include "formats/binary/elf.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "formats/binary/elf_symbols.h"
#include "support/elf_builder.h"

namespace cufit::formats {
namespace elf_test {

using tests::build_container;
using tests::build_elf;
using tests::cubin;
using tests::ElfSpec;
using tests::HashStyle;
using tests::ptx;
using tests::put;

constexpr const char* k_new_abi =
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char* k_old_abi = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs";

ElfFile read(const std::string& bytes, const ElfOptions& options = {}) {
  Result<ElfFile> file = read_elf(MemorySource("x.so", bytes), options);
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  return file ? *file : ElfFile{};
}

std::string listed(const std::vector<DeviceCode>& code) {
  std::vector<std::string> out;
  for (const DeviceCode& c : code) {
    out.push_back(format("{} {}{}{} x{}{}", to_string(c.kind), c.arch, c.ptx_isa.empty() ? "" : "@",
                         c.ptx_isa, c.count, c.loadable ? "" : " (not loadable)"));
  }
  return join(out, ", ");
}

std::string damages(const ElfFile& file) {
  std::vector<std::string> out;
  for (const Damage& damage : file.damage)
    out.push_back(format("{}: {}", damage.offset, damage.what));
  return join(out, "; ");
}

ElfSpec full_spec(bool is_64bit) {
  ElfSpec spec;
  spec.is_64bit = is_64bit;
  spec.machine = is_64bit ? 62 : 3;
  spec.soname = "libx.so.1";
  spec.interpreter = "/lib64/ld-linux-x86-64.so.2";
  spec.needed = {"libcudart.so.13", "libc.so.6"};
  spec.rpath = "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN";
  spec.runpath = "/opt/a::/opt/b";
  spec.no_default_lib = true;
  spec.version_needs = {
      {"libc.so.6", {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_PRIVATE", "GLIBC_2.9"}},
      {"libstdc++.so.6", {"GLIBCXX_3.4.9", "GLIBCXX_3.4.29", "CXXABI_1.3.13", "CXXABI_TM_1"}}};
  spec.symbols = {{"exported"},
                  {k_new_abi, false},
                  {"_ZN2at4_ops3add4callE", false},
                  {"_ZN5torchQ", false, true},
                  {"other", false},
                  {"second"},
                  {"third"},
                  {"fourth"}};
  spec.sections = {{".nv_fatbin", build_container({cubin(80), cubin(90, 'a'), ptx(120, 9, 0)})}};
  return spec;
}

TEST(Elf, ReadsTheSameFromBothClasses) {
  for (bool is_64bit : {true, false}) {
    SCOPED_TRACE(is_64bit);
    ElfFile file = read(build_elf(full_spec(is_64bit)), {true, true});
    EXPECT_EQ(file.is_64bit, is_64bit);
    EXPECT_EQ(file.machine, is_64bit ? 62 : 3);
    EXPECT_EQ(file.type, 3);
    EXPECT_EQ(file.soname, "libx.so.1");
    EXPECT_EQ(file.interpreter, "/lib64/ld-linux-x86-64.so.2");
    EXPECT_EQ(file.needed, (std::vector<std::string>{"libcudart.so.13", "libc.so.6"}));
    EXPECT_EQ(file.rpath, (std::vector<std::string>{"$ORIGIN/../../nvidia/cu13/lib", "$ORIGIN"}));
    EXPECT_EQ(file.runpath, (std::vector<std::string>{"/opt/a", "", "/opt/b"}));
    EXPECT_TRUE(file.no_default_lib);
    ASSERT_EQ(file.version_needs.size(), 2u);
    EXPECT_EQ(file.version_needs[0].file, "libc.so.6");
    EXPECT_EQ(file.version_needs[0].versions.size(), 4u);
    EXPECT_EQ(file.version_needs[1].versions.back(), "CXXABI_TM_1");
    EXPECT_EQ(file.glibc, "2.17");
    EXPECT_EQ(file.glibcxx, "3.4.29");
    EXPECT_EQ(file.cxxabi, "1.3.13");
    EXPECT_EQ(file.cxx11_abi, true);
    EXPECT_EQ(file.undefined_torch, (std::vector<std::string>{k_new_abi, "_ZN2at4_ops3add4callE"}));
    EXPECT_EQ(listed(file.device_code), "cubin 80 x1, cubin 90a x1, ptx 120@9.0 x1");
    EXPECT_EQ(damages(file), "");
  }
}

TEST(Elf, AnEmptyFileHasNothing) {
  ElfFile file = read(build_elf({}));
  EXPECT_TRUE(file.needed.empty() && file.rpath.empty() && file.runpath.empty() &&
              file.device_code.empty());
  EXPECT_EQ(file.glibc + file.glibcxx + file.cxxabi + file.soname + file.compat_note, "");
  EXPECT_FALSE(file.has_fatbin);
  EXPECT_FALSE(file.no_default_lib);
  EXPECT_EQ(file.cxx11_abi, std::nullopt);
  EXPECT_EQ(damages(file), "");
}

// What cuFFT of CUDA 13 has where CUDA looks: one image of 1904 bytes without a kernel.
TEST(Elf, ImagesTooSmallForAKernelAreTold) {
  auto image = [](size_t bytes) {
    tests::EntrySpec entry = cubin(75);
    entry.payload = std::string(bytes, 'x');
    return entry;
  };
  const struct {
    std::vector<tests::EntrySpec> entries;
    bool empty;
  } k_rows[] = {{{image(1904)}, true},
                {{image(1904), image(3880)}, false},
                {{image(3880)}, false},
                {{image(1904), ptx(90, 8, 0)}, false},
                {{}, false}};
  for (const auto& row : k_rows) {
    ElfSpec spec;
    spec.sections = {{".nv_fatbin", build_container(row.entries)}};
    EXPECT_EQ(read(build_elf(spec)).only_empty_images, row.empty) << row.entries.size();
  }
}

TEST(Elf, StrippedSectionHeadersLeaveTheDynamicSection) {
  ElfSpec spec = full_spec(true);
  spec.strip_section_headers = true;
  ElfFile file = read(build_elf(spec), {true, true});
  EXPECT_EQ(file.needed.size(), 2u);
  EXPECT_EQ(file.glibc, "2.17");
  EXPECT_EQ(file.undefined_torch.size(), 2u);
  EXPECT_FALSE(file.has_fatbin);
}

TEST(Elf, OtherFilesAreErrorsThatNameTheByte) {
  std::string good = build_elf({});
  std::string big = good, odd_class = good, odd_order = good;
  big[5] = 2;
  odd_class[4] = 9;
  odd_order[5] = 0;
  const struct {
    std::string bytes;
    Code code;
    const char* part;
  } k_rows[] = {
      {"", Code::malformed, "not an ELF file (byte 0)"},
      {"#!/bin/sh\nexit 0\n", Code::malformed, "not an ELF file (byte 0)"},
      {good.substr(0, 30), Code::malformed, "ends inside the ELF header (30 of 64 bytes)"},
      {big, Code::unsupported, "big-endian"},
      {odd_class, Code::malformed, "unknown ELF class 9 (byte 4)"},
      {odd_order, Code::malformed, "byte order 0 (byte 5)"},
  };
  for (const auto& row : k_rows) {
    Result<ElfFile> file = read_elf(MemorySource("y.so", row.bytes));
    ASSERT_FALSE(file) << row.part;
    EXPECT_EQ(file.error().code, row.code);
    EXPECT_TRUE(contains(file.error().what, row.part)) << file.error().what;
    EXPECT_TRUE(contains(file.error().what, "`y.so`")) << file.error().what;
  }
  EXPECT_FALSE(is_elf(MemorySource("y",
                                   "\x7f"
                                   "EL")));
  EXPECT_TRUE(is_elf(MemorySource("y", good)));
}

TEST(Elf, RelocatableCodeCountsOnlyWhenEveryObjectHasIt) {
  ElfSpec spec;
  spec.sections = {
      {"__nv_relfatbin", build_container({cubin(80), cubin(89), ptx(90, 8, 7)}) +
                             build_container({cubin(80), ptx(90, 8, 8), ptx(120, 8, 8)})},
      {".nv_fatbin", build_container({cubin(80)})}};
  EXPECT_EQ(listed(read(build_elf(spec)).device_code),
            "cubin 80 x3, cubin 89 x1 (not loadable), ptx 90@8.7 x1, ptx 90@8.8 x1, ptx 120@8.8 x1 "
            "(not loadable)");
  spec.sections.pop_back();  // an object file: what a program linked from it will have
  EXPECT_EQ(listed(read(build_elf(spec)).device_code),
            "cubin 80 x2, cubin 89 x1, ptx 90@8.7 x1, ptx 90@8.8 x1, ptx 120@8.8 x1");
}

TEST(Elf, DeviceCodeIsLeftOutOnRequest) {
  EXPECT_TRUE(read(build_elf(full_spec(true)), {false, false}).device_code.empty());
}

TEST(Elf, ReadsTheNoteOnForwardCompatibility) {
  const std::string json = R"({"CUDA Version":"13.0","Driver":["535"]})";
  std::string note(12, '\0');
  put(note, 0, 19, 4), put(note, 4, json.size(), 4), put(note, 8, 1, 4);
  note += std::string("NVIDIA Corporation\0\0", 20) + json;
  ElfSpec spec;
  spec.sections = {{".note.cuda.fwd_compatibility", note}};
  EXPECT_EQ(read(build_elf(spec)).compat_note, json);
  put(note, 4, 1u << 30, 4);
  spec.sections = {{".note.cuda.fwd_compatibility", note}};
  ElfFile file = read(build_elf(spec));
  EXPECT_EQ(file.compat_note, "");
  EXPECT_TRUE(contains(damages(file), "reaches past its section")) << damages(file);
}

TEST(Elf, CudaAbiOfTheFileComesFromTorchSymbolsOnly) {
  const struct {
    std::vector<tests::DynamicSymbol> symbols;
    std::optional<bool> abi;
  } k_rows[] = {
      {{{k_new_abi, false}}, true},
      {{{k_old_abi, false}}, false},
      {{{k_new_abi, false}, {k_old_abi, false}}, std::nullopt},
      {{{"_ZN6mylib3foERKSs", false}}, std::nullopt},
      {{{"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_"
         "traitsIcESaIcEEE"}},
       true},
      {{{"_ZN3c105ErrorC1ENS_14SourceLocationESs"}}, false},
      {{{"_ZN3c105ErrorC1ENS_14SourceLocationERKSs"}}, false},
      {{{"_ZN2at5emptyEN3c108ArrayRefIlEE", false}}, std::nullopt},
      {{}, std::nullopt},
  };
  for (const auto& row : k_rows) {
    ElfSpec spec;
    spec.symbols = row.symbols;
    EXPECT_EQ(read(build_elf(spec)).cxx11_abi, row.abi)
        << (row.symbols.empty() ? "" : row.symbols[0].name);
  }
}

// Every prefix of a file, and every byte of it set to 0xff and to 0: no crash, no endless loop, no
// read outside (the sanitizers watch), and a file whose tail is cut off says so.
TEST(Elf, DamagedFilesAreSurvived) {
  for (bool is_64bit : {true, false}) {
    const std::string good = build_elf(full_spec(is_64bit));
    for (size_t size = 0; size < good.size(); ++size) {
      Result<ElfFile> file = read_elf(MemorySource("cut.so", good.substr(0, size)), {true, true});
      if (file) {
        EXPECT_FALSE(file->damage.empty()) << "cut after " << size << " of " << good.size();
      }
    }
    for (size_t i = 0; i < good.size(); ++i) {
      for (char value : {'\xff', '\0', '\x7f'}) {
        std::string bad = good;
        bad[i] = value;
        Result<ElfFile> file = read_elf(MemorySource("bad.so", bad), {true, true});
        if (file) {
          EXPECT_LE(file->damage.size(), 33u) << i;
        }
        auto source = std::make_shared<MemorySource>("bad.so", bad);
        if (Result<SymbolTable> table = SymbolTable::open(source)) {
          EXPECT_FALSE(table->defines("no such symbol")) << i;
        }
      }
    }
  }
}

TEST(Elf, LyingCountsEndEarly) {
  std::string file = build_elf(full_spec(true));
  put(file, 56, 0xffff, 2);  // e_phnum: the real count is in section 0
  put(file, load_le<uint64_t>(file.data() + 40) + 44, 0xffffffff, 4);
  ElfFile out = read(file);
  EXPECT_TRUE(contains(damages(out), "4294967295 program headers; only the first 4096 are read"))
      << damages(out);

  file = build_elf(full_spec(true));
  put(file, 60, 0, 2);  // e_shnum
  put(file, load_le<uint64_t>(file.data() + 40) + 32, uint64_t{1} << 32, 8);
  out = read(file);
  EXPECT_TRUE(contains(damages(out), "4294967296 section headers")) << damages(out);
  EXPECT_EQ(out.device_code.size(), 3u);  // what is there is read
}

// Many sections over the same bytes: each byte is read about once.
TEST(Elf, SectionsThatOverlapAreNotReadOverAndOver) {
  std::string code;
  for (int i = 0; i < 200; ++i) code += build_container({cubin(80)});
  ElfSpec spec;
  for (int i = 0; i < 50; ++i) spec.sections.push_back({".nv_fatbin", i == 0 ? code : "x"});
  std::string file = build_elf(spec);
  const auto headers = load_le<uint64_t>(file.data() + 40);
  const auto count = load_le<uint16_t>(file.data() + 60);
  size_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = headers + i * 64;
    const auto size = load_le<uint64_t>(file.data() + at + 32);
    if (size == code.size()) first = at;
    if (size == 1 && first != 0) file.replace(at + 24, 16, file, first + 24, 16);
  }
  const ElfFile out = read(file);
  EXPECT_TRUE(contains(damages(out), "overlap")) << damages(out);
  ASSERT_EQ(out.device_code.size(), 1u);
  EXPECT_LT(out.device_code[0].count, 1000u);
}

// Segments that claim more than the file has: nothing behind its end is looked for.
TEST(Elf, SegmentsEndWhereTheFileEnds) {
  ElfSpec spec = full_spec(true);
  spec.hash = HashStyle::none;
  spec.strip_section_headers = true;
  std::string file = build_elf(spec);
  put(file, 64 + 32, UINT64_MAX / 2, 8);  // file size of the loadable segment
  std::vector<Damage> damage;
  MemorySource source("x.so", file);
  Result<ElfImage> image = ElfImage::open(source, damage);
  ASSERT_TRUE(image);
  std::optional<FileRange> range = image->find_address(*image->dynamic_value(k_tag_symtab));
  ASSERT_TRUE(range);
  EXPECT_EQ(range->offset + range->size, file.size());
  EXPECT_FALSE(image->find_address(0x10000 + file.size()));
}

TEST(ElfSymbols, LooksUpThroughEveryTable) {
  for (bool is_64bit : {true, false}) {
    for (HashStyle hash : {HashStyle::gnu, HashStyle::old, HashStyle::none}) {
      ElfSpec spec;
      spec.is_64bit = is_64bit;
      spec.hash = hash;
      for (int i = 0; i < 200; ++i)
        spec.symbols.push_back({format("_ZN2at3f{:03}Ev", i), i % 4 != 0});
      spec.symbols.push_back({std::string(3000, 'n')});
      Result<SymbolTable> table =
          SymbolTable::open(std::make_shared<MemorySource>("x.so", build_elf(spec)));
      ASSERT_TRUE(table);
      for (const auto& symbol : spec.symbols)
        EXPECT_EQ(table->defines(symbol.name), symbol.defined) << symbol.name;
      for (const char* absent : {"", "_ZN2at3f00", "_ZN2at3f001Ev2", "x"})
        EXPECT_FALSE(table->defines(absent)) << absent;
    }
  }
}

TEST(ElfSymbols, TorchSymbolsByMangledName) {
  for (const char* name :
       {"_ZN3c105ErrorD1Ev", "_ZNK2at10TensorBase4sizeEl", "_ZTVN3c1016StorageImplE",
        "_ZN5torch3jit5parseE", "_ZTIN5torch8autograd4NodeE", "_ZN6caffe28TypeMetaE",
        "_Z16THPVariable_WrapN2at10TensorBaseE", "THPVariableClass", "aoti_torch_empty_strided",
        "_ZNKR3c108optionalIlE5valueEv"})
    EXPECT_TRUE(is_torch_symbol(name)) << name;
  for (const char* name :
       {"", "_Z", "_ZN", "_ZSt4cout", "_ZN10torchaudio3fooEv", "_ZN3atx3fooEv", "_ZN4c10d3fooEv",
        "cudaMalloc", "PyObject_Call", "_ZN6mylib3atE", "torch"})
    EXPECT_FALSE(is_torch_symbol(name)) << name;
}

TEST(ElfSymbols, StringAbiOfOneName) {
  const struct {
    const char* name;
    std::optional<bool> abi;
  } k_rows[] = {
      {k_new_abi, true},
      {k_old_abi, false},
      {"_ZN3c105ErrorC1ENS_14SourceLocationESs", false},
      {"_ZN2at6SspaceEi", std::nullopt},    // an identifier that begins with Ss
      {"_ZN2at3fooILj16EEEvS1_Ss", false},  // a literal, a substitution, then the string
      {"_ZN2at3fooILj2ESsE", false},
      {"_ZN2at3fooEA16_KcSs", false},        // an array bound is no identifier's length
      {"_ZN2at3fooES0_sS_s", std::nullopt},  // substitutions followed by short
      {"_ZN2at3fooERSo", std::nullopt},
      {"_ZN2at9999999999999999999999foo", std::nullopt},
      {"_ZN2atS", std::nullopt},
      {"foo_Ss", std::nullopt},
  };
  for (const auto& row : k_rows) EXPECT_EQ(cxx11_abi_of(row.name), row.abi) << row.name;
}

}  // namespace elf_test
}  // namespace cufit::formats
