// SPDX-License-Identifier: Apache-2.0
#include "explain/codes.h"

#include <gtest/gtest.h>

#include <set>

namespace cufit::explain {
namespace codes_test {

using knowledge::Knowledge;

// "finding|fact up to the colon", or "" where the line has no code.
std::string code(const std::string& line) {
  const std::vector<CodeHit> hits =
      find_codes(formats::plain_text_lines(line), Knowledge::builtin());
  if (hits.empty()) return {};
  return std::string(hits[0].finding) + "|" + hits[0].fact.substr(0, hits[0].fact.find(':'));
}

TEST(Codes, AreReadByName) {
  EXPECT_EQ(code("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
            "gpu_memory_exhausted|CUDNN_STATUS_ALLOC_FAILED");
  EXPECT_EQ(code("CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm("),
            "app_kernel_fault|CUBLAS_STATUS_EXECUTION_FAILED");
  EXPECT_EQ(code("ncclRemoteError: A call failed possibly due to a network error"),
            "nccl_network_config|ncclRemoteError");
  EXPECT_EQ(code("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY"), "|CUDA_ERROR_OUT_OF_MEMORY (2)");
  EXPECT_EQ(code("status CUDNN_STATUS_SUCCESS, ncclSuccess"), "");
  EXPECT_EQ(code("ncclGroupStart CUDNN_STATUS_OF_MY_OWN"), "");
}

TEST(Codes, AreReadByNumber) {
  EXPECT_EQ(code("NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus"),
            "gpu_fell_off_bus|Xid 79");
  EXPECT_EQ(code("we saw Xid 31 in dmesg"), "app_kernel_fault|Xid 31");
  EXPECT_EQ(code("cuInit() returned 999"), "|CUDA error 999 (CUDA_ERROR_UNKNOWN)");
  EXPECT_EQ(code("CUDA error 700 at kernel.cu:12"), "|CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)");
}

TEST(Codes, AreReadFromEndsOfPrograms) {
  EXPECT_EQ(code("Process finished with exit code 137"), "host_ram_kill|exit code 137 (SIGKILL)");
  EXPECT_EQ(code("failed (exitcode: -11) local_rank: 0"),
            "ext_abi_mismatch|exit code -11 (SIGSEGV)");
  EXPECT_EQ(code("Exited (137) 2 minutes ago"), "host_ram_kill|exit code 137 (SIGKILL)");
  EXPECT_EQ(code("进程已结束,退出代码-1073741819 (0xC0000005)"),
            "ext_abi_mismatch|exit code 3221225477 (STATUS_ACCESS_VIOLATION (0xC0000005))");
  EXPECT_EQ(code("returned non-zero exit status 1"), "");
}

TEST(Codes, AreNoCountsVersionsOrSizes) {
  EXPECT_EQ(code("CUDA error 12.1 is not"), "");
  EXPECT_EQ(code("cuda returned 35MiB"), "");
  EXPECT_EQ(code("exit code 137x"), "");
  EXPECT_EQ(code("error 804 of my web server"), "");  // nothing says CUDA
  EXPECT_EQ(code("Xid"), "");
  EXPECT_EQ(code("Xid (PCI"), "");
}

// Rows name findings that exist, and no library has a number or a name twice.
TEST(Codes, TablesAgreeWithTheFindings) {
  const Knowledge& all = Knowledge::builtin();
  std::set<std::pair<std::string_view, int>> numbers;
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const knowledge::LibraryCodeRow& row : all.library_codes) {
    EXPECT_TRUE(row.finding.empty() || all.find_texts(row.finding)) << row.finding;
    EXPECT_TRUE(numbers.emplace(row.library, row.code).second) << row.library << row.code;
    EXPECT_TRUE(names.emplace(row.library, row.name).second) << row.name;
  }
  std::set<int64_t> exits;
  for (const knowledge::ExitCodeRow& row : all.exit_codes) {
    EXPECT_TRUE(row.finding.empty() || all.find_texts(row.finding)) << row.finding;
    EXPECT_TRUE(exits.insert(row.code).second) << row.code;
  }
  EXPECT_GT(numbers.size(), 40u);
  EXPECT_GT(exits.size(), 20u);
}

}  // namespace codes_test
}  // namespace cufit::explain
