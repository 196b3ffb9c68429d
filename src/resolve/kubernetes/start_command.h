// SPDX-License-Identifier: Apache-2.0
// What the command of a container tells of the program in it: how many processes a launcher starts,
// loader workers, a model's size. Read from words, never run; what a variable or a script decides
// is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/system/kubernetes_objects.h"

namespace cufit::resolve {

enum class Launcher { none, torchrun, accelerate, deepspeed, vllm, tgi, sglang, nvidia_smi };
const char* to_string(Launcher launcher);  // "torchrun", "vllm": what a user calls it

struct StartCommand {
  Launcher launcher = Launcher::none;
  // One process (or shard) for each GPU of the pod: the number, where words say it.
  std::optional<uint32_t> processes;
  std::string processes_text;      // "--nproc_per_node=8"
  bool processes_default = false;  // torchrun without the option: 1
  bool one_per_gpu = false;        // "gpu", "auto"
  bool many_nodes = false;         // the number may count other pods as well
  bool stays = false;              // waits for ever when its work is done: `sleep infinity`
  bool only_looks = false;         // cufit's own commands that look at GPUs and use none
  uint32_t workers = 0;            // of a DataLoader
  std::string workers_text;        // "--num_workers=8"
  std::string needs_gpu;           // words that work with a GPU alone: "--backend nccl"
  bool computes = false;  // on a GPU: a launcher, a training run, a word that asks for CUDA
  std::string trains;     // "train.py": a program that ends when it has trained
  std::vector<std::string> devices;  // what a script sets CUDA_VISIBLE_DEVICES to
  std::string model;                 // "meta-llama/Llama-3.1-70B"
  uint64_t model_bytes = 0;          // of its weights in 16 bit; 0 = not said
};

StartCommand read_start(const formats::ManifestContainer& container);

// "70B" of "Llama-3.1-70B-Instruct" as bytes in 16 bit; 0 where the name does not say it, or says
// that the weights are packed (AWQ, GPTQ, FP8 ...) or of several experts (8x7B).
uint64_t named_model_bytes(const std::string& name);

}  // namespace cufit::resolve
