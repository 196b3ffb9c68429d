// SPDX-License-Identifier: Apache-2.0
#include "report/step_command.h"

#include <gtest/gtest.h>

namespace cufit::report {
namespace step_command_test {

// A step in both languages; the Chinese one only has to be another text.
std::string command(const std::string& en, bool same = false) {
  return step_command(en, same ? en : "中文").value_or("-");
}

TEST(StepCommand, IsWhatCanBeRunAsItStands) {
  EXPECT_EQ(command("/e/bin/python -m pip install 'numpy<2'", true),
            "/e/bin/python -m pip install 'numpy<2'");
  EXPECT_EQ(command("`sudo dkms autoinstall`, then `sudo modprobe nvidia`"),
            "sudo dkms autoinstall && sudo modprobe nvidia");
  EXPECT_EQ(command("`pip install a==1`, a build that this driver runs; or update the driver"),
            "pip install a==1");
  EXPECT_EQ(command("Look with `nvidia-smi -L`, then ask for a larger profile"), "nvidia-smi -L");
  EXPECT_EQ(command("unset PYTHONPATH", true), "unset PYTHONPATH");
  EXPECT_EQ(command("CUDA_LAUNCH_BLOCKING=1 python train.py", true),
            "CUDA_LAUNCH_BLOCKING=1 python train.py");
}

TEST(StepCommand, IsNothingWhereAPersonHasToDoSomething) {
  EXPECT_EQ(command("Install a driver of branch 580, then reboot"), "-");
  EXPECT_EQ(command("Update the driver first, then install torch: `pip install torch==2.11.0`"),
            "-");
  EXPECT_EQ(command("pip install PACKAGE", true), "-");
  EXPECT_EQ(command("CUDA_VISIBLE_DEVICES=<index> python train.py", true), "-");
  EXPECT_EQ(command("Load on the CPU: `ckpt = torch.load(path, map_location=\"cpu\")`"), "-");
  EXPECT_EQ(command("Mount an emptyDir with `medium: Memory` at /dev/shm"), "-");
  EXPECT_EQ(command("docker run --gpus all --shm-size=16g", true), "-");  // which image?
  EXPECT_EQ(command("docker run --rm --gpus all ubuntu nvidia-smi", true),
            "docker run --rm --gpus all ubuntu nvidia-smi");
}

// The second half is not left out in silence.
TEST(StepCommand, IsNoHalfOfAStep) {
  EXPECT_EQ(command("`pip uninstall -y torch` until nothing is left, best `pip install torch==2`"),
            "-");
}

TEST(StepCommand, KnowsWhatChangesItsShell) {
  EXPECT_TRUE(changes_its_shell("source /venv/bin/activate"));
  EXPECT_TRUE(changes_its_shell("unset LD_LIBRARY_PATH"));
  EXPECT_FALSE(changes_its_shell("sudo ldconfig"));
}

}  // namespace step_command_test
}  // namespace cufit::report
