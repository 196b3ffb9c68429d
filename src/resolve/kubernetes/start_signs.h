// SPDX-License-Identifier: Apache-2.0
// What single commands of a container tell: a training run that ends, a GPU that they cannot do
// without, the GPUs that a script chooses. A sign that has a harmless reading is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/system/shell_commands.h"

namespace cufit::resolve {

using ShellCommands = std::vector<formats::ShellCommand>;

// "train.py": a Python program whose name says that it trains, and that no loop starts again.
std::string trained_program(const ShellCommands& commands);
// "--device cuda": a word by which a program asks for CUDA; empty = none.
std::string asks_for_cuda(const std::vector<std::string>& words);
// "nvidia-smi && ...": nothing behind it starts without a GPU.
bool begins_with_smi(const ShellCommands& commands);
// What CUDA_VISIBLE_DEVICES is set to before a command or for those after it.
std::vector<std::string> chosen_devices(const ShellCommands& commands);
// MPI starts Python in the workers, as many processes as they have slots.
bool fills_slots_with_python(const ShellCommands& commands, uint64_t gpus);
// The image is of another device, as far as its name says: a processor, another vendor's card.
bool is_for_other_device(const std::string& image);

}  // namespace cufit::resolve
