// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/inspect_files.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "support/elf_builder.h"
#include "support/fake_root.h"

namespace cufit::commands {
namespace inspect_files_test {

using tests::build_container;
using tests::build_elf;
using tests::cubin;
using tests::ElfSpec;

std::string cuda_library() {
  ElfSpec spec;
  spec.sections = {{".nv_fatbin", build_container({cubin(80)})}};
  return build_elf(spec);
}

std::string library_that_needs(const std::string& name) {
  ElfSpec spec;
  spec.needed = {name};
  return build_elf(spec);
}

report::InspectResult inspect(const test::FakeRoot& root, const std::string& path) {
  report::InspectResult result;
  inspect_path(root.host(), path, {}, result);
  return result;
}

std::string paths(const report::InspectResult& result) {
  std::vector<std::string> out;
  for (const report::InspectedFile& file : result.files) out.push_back(file.path);
  return join(out, " ");
}

TEST(InspectFiles, ADirectoryListsWhatHasCudaParts) {
  test::FakeRoot root;
  root.file("/env/a/code.so", cuda_library())
      .file("/env/a/runtime.so.1", library_that_needs("libcudart.so.13"))
      .file("/env/b/plain.so", library_that_needs("libc.so.6"))
      .file("/env/b/tool", library_that_needs("libcuda.so.1"))
      .file("/env/b/code.py", cuda_library())  // no name of a shared object
      .file("/env/b/text.so", std::string(200, 't'))
      .file("/env/b/empty.so", "");
  report::InspectResult result = inspect(root, "/env/");
  EXPECT_EQ(paths(result), "/env/a/code.so /env/a/runtime.so.1 /env/b/tool");
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(result.skipped, 1u);
}

TEST(InspectFiles, LinksAreFollowedOnce) {
  test::FakeRoot root;
  root.file("/env/lib/libx.so.1", cuda_library())
      .link("/env/lib/libx.so", "libx.so.1")
      .link("/env/lib64", "lib")
      .link("/env/lib/loop", "..")
      .link("/env/lib/self", "self")
      .link("/env/lib/gone.so", "nowhere");
  EXPECT_EQ(inspect(root, "/env").files.size(), 1u);
}

TEST(InspectFiles, AFileThatIsNamedIsListed) {
  test::FakeRoot root;
  root.file("/plain.bin", library_that_needs("libc.so.6"))
      .file("/text", "hello, world\n")
      .file("/cut.so", cuda_library().substr(0, 40));
  EXPECT_EQ(paths(inspect(root, "/plain.bin")), "/plain.bin");
  const struct {
    const char* path;
    const char* what;
  } k_rows[] = {
      {"/text", "neither an ELF file nor a wheel"},
      {"/cut.so", "ends inside the ELF header"},
      {"/absent", "/absent"},
  };
  for (const auto& row : k_rows) {
    report::InspectResult result = inspect(root, row.path);
    EXPECT_TRUE(result.files.empty()) << row.path;
    ASSERT_EQ(result.errors.size(), 1u) << row.path;
    EXPECT_EQ(result.errors[0].path, row.path);
    EXPECT_TRUE(contains(result.errors[0].what, row.what)) << result.errors[0].what;
  }
}

TEST(InspectFiles, WhichFilesHaveCudaParts) {
  const struct {
    const char* name;
    bool cuda;
  } k_rows[] = {
      {"libcudart.so.12", true}, {"libcudnn.so.9", true},     {"libtorch_cuda.so", true},
      {"libc10_cuda.so", true},  {"libnvidia-ml.so.1", true}, {"libnccl.so.2", true},
      {"libc10.so", false},      {"libc.so.6", false},        {"libtorch.so", false},
  };
  for (const auto& row : k_rows) {
    formats::ElfFile needs, is;
    needs.needed = {row.name};
    is.soname = row.name;
    EXPECT_EQ(has_cuda_parts(needs), row.cuda) << row.name;
    EXPECT_EQ(has_cuda_parts(is), row.cuda) << row.name;
  }
  formats::ElfFile with_section;
  with_section.has_fatbin = true;
  EXPECT_TRUE(has_cuda_parts(with_section));
}

}  // namespace inspect_files_test
}  // namespace cufit::commands
