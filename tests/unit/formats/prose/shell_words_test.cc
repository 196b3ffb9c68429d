// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/shell_words.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace shell_words_test {

ShellWords words_of_text(std::string_view text) {
  return parse_shell_words(plain_text_lines(text));
}
std::string variables_of(std::string_view text) {
  std::vector<std::string> out;
  for (const ShellVariable& variable : words_of_text(text).variables)
    out.push_back(format("{}={} ({})", variable.name, variable.value, variable.how));
  return join(out, ", ");
}

TEST(ShellWords, Assignments) {
  EXPECT_EQ(
      variables_of(
          "export LD_LIBRARY_PATH=\"/a b:$LD_LIBRARY_PATH\"\n$ CUDA_VISIBLE_DEVICES=$0 ./demo.py\n"
          "NCCL_SOCKET_IFNAME=eth0\nset CUDA_HOME=C:\\cuda\nunset LD_PRELOAD\n"),
      "LD_LIBRARY_PATH=/a b:$LD_LIBRARY_PATH (export), CUDA_VISIBLE_DEVICES=$0 (command), "
      "NCCL_SOCKET_IFNAME=eth0 (line), CUDA_HOME=C:\\cuda (set), LD_PRELOAD= (unset)");
  EXPECT_EQ(variables_of("A_B=1 NCCL_DEBUG=INFO python main.py --X=2\nENV TORCH_CUDA_ARCH_LIST "
                         "8.6\nENV A_C=1 A_D=2\n"),
            "A_B=1 (command), NCCL_DEBUG=INFO (command), TORCH_CUDA_ARCH_LIST=8.6 (dockerfile), "
            "A_C=1 (dockerfile), "
            "A_D=2 (dockerfile)");
  EXPECT_EQ(variables_of("$ echo $LD_LIBRARY_PATH\n/usr/local/cuda-12.1/lib64:\n"),
            "LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64: (echo)");
  EXPECT_EQ(variables_of("works with NCCL_P2P_DISABLE=1\ntry setting "
                         "PYTORCH_CUDA_ALLOC_CONF=x:True to avoid\nx=1\n"
                         "if A == B and C==1\n"),
            "");
}

TEST(ShellWords, Containers) {
  ShellWords words = words_of_text(
      "$ docker run --gpus all --ipc=host \\\n  --shm-size 16gb -e NVIDIA_VISIBLE_DEVICES=all -it "
      "--rm \\\n"
      "  nvidia/cuda:11.8.0-devel sh\nnvidia-docker run -ti --network=host --shm-size=64m ...\n");
  ASSERT_EQ(words.containers.size(), 2u);
  EXPECT_EQ(words.containers[0].image, "nvidia/cuda:11.8.0-devel");
  EXPECT_EQ(words.containers[0].gpus, "all");
  EXPECT_EQ(words.containers[0].ipc, "host");
  EXPECT_EQ(words.containers[0].shm_size, "16gb");
  EXPECT_EQ(words.containers[0].line, 1u);
  ASSERT_EQ(words.variables.size(), 1u);
  EXPECT_EQ(words.variables[0].how, "docker");
  EXPECT_TRUE(words.containers[1].nvidia_docker);
  EXPECT_EQ(words.containers[1].image, "");
  EXPECT_EQ(docker_size("16gb"), uint64_t{16} << 30);
  EXPECT_EQ(docker_size("64m"), uint64_t{64} << 20);
  EXPECT_EQ(docker_size("big"), 0u);
}

TEST(ShellWords, LoaderLines) {
  ShellWords words = words_of_text(
      "\tlibnvJitLink.so.12 => /usr/local/lib64/libnvJitLink.so.12 (0x000070ddad800000)\n"
      "\tlibfoo.so.1 => not found\n calling init: /lib/libcudnn_graph.so.9\n/usr/local: cuda => "
      "x\n");
  ASSERT_EQ(words.libraries.size(), 3u);
  EXPECT_EQ(words.libraries[0].path, "/usr/local/lib64/libnvJitLink.so.12");
  EXPECT_EQ(words.libraries[1].name, "libfoo.so.1");
  EXPECT_EQ(words.libraries[1].path, "");
  EXPECT_TRUE(words.libraries[2].init);
  EXPECT_EQ(words.libraries[2].name, "libcudnn_graph.so.9");
}

}  // namespace shell_words_test
}  // namespace cufit::formats
