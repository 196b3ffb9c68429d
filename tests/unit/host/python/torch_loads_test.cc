// SPDX-License-Identifier: Apache-2.0
// What `import torch` misses and what only a later call of torch misses.
#include "host/python/torch_loads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/elf_builder.h"
#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace torch_loads_test {

std::string library(const char* soname, std::vector<std::string> needed) {
  tests::ElfSpec spec;
  spec.soname = soname;
  spec.runpath = "$ORIGIN:$ORIGIN/lib";
  spec.needed = std::move(needed);
  return tests::build_elf(spec);
}

// cuBLAS is needed by the import and by the part that is opened later: it is missed by the import.
TEST(TorchLoads, WhatTheImportMissesIsNotOfALaterCall) {
  TemporaryTree tree;
  tree.write("/torch/__init__.py", "");
  tree.write("/torch/_C.cpython-312-x86_64-linux-gnu.so", library("", {"libtorch_cuda.so"}));
  tree.write("/torch/lib/libtorch_cuda.so", library("libtorch_cuda.so", {"libcublas.so.12"}));
  tree.write("/torch/lib/libtorch_cuda_linalg.so",
             library("libtorch_cuda_linalg.so",
                     {"libtorch_cuda.so", "libcublas.so.12", "libcusolver.so.11"}));
  const RealHost host(tree.root(), {});
  const LibrarySearch search(host, read_loader_settings(host));
  TorchProcess process;
  process.torch_folder = "/torch";
  process.python_tag = "cpython-312";
  const auto read = [&](const std::string& path, std::string& why) {
    const auto source = host.open(path);
    const auto elf = source ? formats::read_elf(**source, {})
                            : Result<formats::ElfFile>(fail(Code::io, "unread"));
    if (!elf) why = elf.error().text();
    return elf ? std::make_shared<const formats::ElfFile>(*elf) : nullptr;
  };
  const TorchLoads found = find_torch_loads(host, search, process, read);
  const auto by = [&](const char* name) -> std::string {
    for (const facts::LoadedLibrary& one : found.loads)
      if (one.name == name) return one.path.empty() ? "missed by:" + one.by : one.path;
    return "not asked for";
  };
  EXPECT_EQ(by("libcublas.so.12"), "missed by:");
  EXPECT_EQ(by("libcusolver.so.11"), "missed by:dlopen");
}

}  // namespace torch_loads_test
}  // namespace cufit::host
