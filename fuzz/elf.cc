// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ELF file: everything that inspect and the environment probe read of it.
#include <cstdlib>
#include <memory>

#include "formats/binary/elf.h"
#include "formats/binary/elf_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  auto source = std::make_shared<MemorySource>(
      "fuzz", std::string(reinterpret_cast<const char*>(data), size));
  Result<formats::ElfFile> file = formats::read_elf(*source, {true, true});
  if (file && file->damage.size() > formats::k_max_damage + 1) std::abort();
  if (Result<formats::SymbolTable> table = formats::SymbolTable::open(source)) {
    for (const char* name : {"exported", "_ZN3c105ErrorD1Ev", ""}) (void)table->defines(name);
    if (file && !file->undefined_torch.empty()) (void)table->defines(file->undefined_torch.front());
  }
  return 0;
}
