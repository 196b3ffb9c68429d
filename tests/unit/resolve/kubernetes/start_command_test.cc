// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/start_command.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace start_command_test {

StartCommand start(std::vector<std::string> command, std::vector<std::string> args = {},
                   const char* image = "team:1") {
  formats::ManifestContainer container;
  container.command = std::move(command);
  container.args = std::move(args);
  container.image = image;
  return read_start(container);
}

TEST(StartCommand, TorchrunSaysHowMany) {
  EXPECT_EQ(start({"torchrun", "--nproc_per_node=8", "t.py"}).processes, 8u);
  EXPECT_EQ(start({"torchrun", "--nproc-per-node", "4", "t.py"}).processes, 4u);
  EXPECT_EQ(start({"python", "-m", "torch.distributed.run", "--nproc_per_node=2"}).processes, 2u);
  EXPECT_EQ(start({"sh", "-c", "pip list; exec torchrun --nproc_per_node 8 t.py"}).processes, 8u);
  EXPECT_TRUE(start({"torchrun", "t.py"}).processes_default);
  EXPECT_TRUE(start({"torchrun", "--nproc-per-node=gpu", "t.py"}).one_per_gpu);
  // A shell fills it in: not known.
  EXPECT_FALSE(start({"sh", "-c", "torchrun --nproc_per_node=$GPUS t.py"}).processes);
  EXPECT_FALSE(start({"python", "train.py"}).processes);
}

// What a script installs, fetches or has as a comment is not what it runs.
TEST(StartCommand, AScriptIsReadByCommands) {
  const StartCommand fetched =
      start({"bash", "-c"}, {"set -e\n"
                             "# torchrun --nproc_per_node=4 old.py; it isn't\n"
                             "pip install deepspeed && python -m pip install x\n"
                             "git clone https://a.b/deepspeed\n"
                             "cd /work/deepspeed; python train.py"});
  EXPECT_EQ(fetched.launcher, Launcher::none);
  EXPECT_FALSE(fetched.processes);
  EXPECT_EQ(start({"sh", "-c", "pip install deepspeed"}).launcher, Launcher::none);
  EXPECT_EQ(start({"sh", "-c", "A=1 exec deepspeed --num_gpus 2 t.py"}).processes, 2u);
  EXPECT_EQ(start({"sh", "-c", "uv run torchrun --nproc-per-node 2 t.py"}).processes, 2u);
  EXPECT_EQ(start({"sh", "-c",
                   "cat >a.py <<'EOF'\ntorchrun --nproc_per_node=9\nEOF\n"
                   "torchrun \\\n  --nproc_per_node=2 t.py 2>&1 | tee log"})
                .processes,
            2u);
  EXPECT_EQ(start({"/bin/bash", "-lc", "--"}, {"pip install deepspeed; torchrun -h"}).launcher,
            Launcher::torchrun);
  // Options of another command are not torchrun's.
  EXPECT_TRUE(start({"sh", "-c", "a --nproc_per_node=4; torchrun t.py"}).processes_default);
  // A number that a command computes is one word.
  const StartCommand computed =
      start({"sh", "-c", "torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) t.py"});
  EXPECT_EQ(computed.launcher, Launcher::torchrun);
  EXPECT_FALSE(computed.processes || computed.processes_default);
  EXPECT_EQ(start({"torchrun", "--nproc_per_node=2", "t.py", "-c", "a; torchrun"}).processes, 2u);
}

TEST(StartCommand, SeveralLaunchersOfOneScript) {
  EXPECT_EQ(
      start({"sh", "-c", "torchrun --nproc_per_node=2 a; torchrun --nproc_per_node=2 b"}).processes,
      2u);
  for (const char* script : {"torchrun --nproc_per_node=2 a; torchrun --nproc_per_node=4 b",
                             "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 a & "
                             "CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node=2 b & wait"})
    EXPECT_FALSE(start({"sh", "-c", script}).processes) << script;
}

TEST(StartCommand, WhatStaysAndWhatRunsElsewhere) {
  EXPECT_TRUE(start({"sh", "-c", "torchrun t.py; sleep infinity"}).stays);
  EXPECT_TRUE(start({"sh", "-c", "torchrun t.py && tail -f /dev/null"}).stays);
  EXPECT_TRUE(start({"nvidia-smi", "dmon"}).stays);
  EXPECT_FALSE(start({"sh", "-c", "sleep 10; torchrun t.py"}).stays);
  EXPECT_EQ(start({"python", "t.py", "--backend", "nccl"}).needs_gpu, "--backend nccl");
  EXPECT_EQ(start({"mpirun", "-np", "2", "python", "t.py", "--backend", "nccl"}).needs_gpu, "");
  EXPECT_EQ(start({"ray", "job", "submit", "--", "python", "--backend=nccl"}).needs_gpu, "");
  EXPECT_EQ(start({"nvidia-smi"}).needs_gpu, "nvidia-smi");
  EXPECT_EQ(start({"sh", "-c", "nvidia-smi || true"}).needs_gpu, "");
}

TEST(StartCommand, WhatNeedsAGpu) {
  const auto needs = [](std::vector<std::string> command, const char* image = "team:1") {
    return start(std::move(command), {}, image).needs_gpu;
  };
  EXPECT_EQ(needs({"python", "train.py", "--device", "cuda"}), "--device cuda");
  EXPECT_EQ(needs({"sh", "-c", "cd /a && exec python t.py --device=cuda:1"}), "--device=cuda:1");
  EXPECT_EQ(needs({"python", "train.py", "--device", "cpu"}), "");
  EXPECT_EQ(needs({"mpirun", "-np", "2", "python", "t.py", "--device", "cuda"}), "");
  EXPECT_EQ(needs({"vllm", "serve", "a/b"}), "vllm");
  EXPECT_EQ(needs({"vllm", "serve", "a/b"}, "team/vllm-cpu:1"), "");
  EXPECT_EQ(needs({"vllm", "serve", "a/b"}, "rocm/vllm:1"), "");
  EXPECT_EQ(needs({"vllm", "serve", "a/b", "--device", "cpu"}), "");
  EXPECT_EQ(needs({"vllm", "serve", "a/b", "--distributed-executor-backend", "ray"}), "");
  EXPECT_EQ(needs({"vllm", "bench", "serve", "--model", "a/b"}), "");
  EXPECT_EQ(needs({"text-generation-launcher", "--model-id", "a/b"}), "text-generation-launcher");
  EXPECT_EQ(needs({"deepspeed", "--num_gpus=2", "t.py"}), "--num_gpus=2");
  EXPECT_EQ(needs({"deepspeed", "--hostfile", "/h", "--num_gpus=2", "t.py"}), "");
  // Processes may compute on a processor.
  EXPECT_EQ(needs({"torchrun", "--nproc_per_node=4", "t.py"}), "");
}

// Whether there is a GPU may be asked without need of one.
TEST(StartCommand, NvidiaSmiBeforeTheProgram) {
  const auto needs = [](const char* script) {
    return start({"sh", "-c", script}).needs_gpu == "nvidia-smi";
  };
  EXPECT_TRUE(needs("nvidia-smi && python train.py"));
  EXPECT_TRUE(needs("set -e\nnvidia-smi -L >/dev/null && cd /a && exec python train.py\n"));
  EXPECT_TRUE(needs("nvidia-smi"));
  for (const char* script :
       {"nvidia-smi; python train.py", "nvidia-smi && python a.py || python b.py",
        "nvidia-smi && echo found; python a.py", "nvidia-smi || true", "echo a; nvidia-smi",
        "if nvidia-smi && true; then a; fi", "false || nvidia-smi && a", "nvidia-smi | tee log"})
    EXPECT_FALSE(needs(script)) << script;
}

TEST(StartCommand, ATrainingRunByItsName) {
  const auto trains = [](std::vector<std::string> command) { return start(command).trains; };
  EXPECT_EQ(trains({"python", "train.py"}), "train.py");
  EXPECT_EQ(trains({"/usr/bin/python3", "-u", "/a/finetune_llama.py", "--x"}), "finetune_llama.py");
  EXPECT_EQ(trains({"sh", "-c", "cd /a; A=1 exec python -m pkg.train"}), "pkg.train");
  for (const char* program :
       {"serve.py", "train_server.py", "trained.py", "constrained.py", "t.py"})
    EXPECT_EQ(trains({"python", program}), "") << program;
  EXPECT_EQ(trains({"sh", "-c", "while true; do python train.py; done"}), "");
  EXPECT_EQ(trains({"python", "-c", "train.py"}), "");
  EXPECT_EQ(trains({"mpirun", "python", "train.py"}), "");
  EXPECT_TRUE(start({"python", "train.py"}).computes);
  EXPECT_FALSE(start({"python", "t.py"}).computes);
}

TEST(StartCommand, GpusThatAScriptChooses) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(start({"sh", "-c", "CUDA_VISIBLE_DEVICES=4,5 python t.py"}).devices, Texts{"4,5"});
  EXPECT_EQ(start({"sh", "-c", "export CUDA_VISIBLE_DEVICES=1; python t.py"}).devices, Texts{"1"});
  EXPECT_EQ(start({"sh", "-c", "echo CUDA_VISIBLE_DEVICES=1"}).devices, Texts{});
  EXPECT_EQ(start({"mpirun", "env", "CUDA_VISIBLE_DEVICES=1", "a"}).devices, Texts{});
}

TEST(StartCommand, Servers) {
  const StartCommand vllm =
      start({}, {"--model", "meta-llama/Llama-3.1-70B", "-tp", "4"}, "vllm/vllm-openai:v0.9.0");
  EXPECT_EQ(vllm.launcher, Launcher::vllm);
  EXPECT_EQ(vllm.processes, 4u);
  EXPECT_EQ(vllm.needs_gpu, "vllm");
  EXPECT_EQ(start({}, {"--model", "a"}, "vllm/vllm-openai-cpu:v0.9.0").needs_gpu, "");
  EXPECT_EQ(start({}, {"--model", "a"}, "reg/vllm/vllm-openai:v0.9.0-rocm").needs_gpu, "");
  EXPECT_TRUE(
      start({"vllm", "serve", "m", "--tensor-parallel-size", "8", "--pipeline-parallel-size", "2"})
          .many_nodes);
  EXPECT_EQ(start({"text-generation-launcher", "--num-shard", "2"}).processes, 2u);
  const StartCommand sglang =
      start({"python3", "-m", "sglang.launch_server", "--model-path", "a/b-7B", "--tp", "4"});
  EXPECT_EQ(sglang.processes, 4u);
  EXPECT_EQ(sglang.model_bytes, 14'000'000'000u);
  EXPECT_TRUE(start({"sglang", "serve", "--tp-size=8", "--nnodes=2"}).many_nodes);
  EXPECT_FALSE(
      start({"accelerate", "launch", "--num_processes", "8", "--num_machines=1"}).many_nodes);
  for (const char* option : {"--num_machines=2", "--num_machines=$NODES", "--machine_rank=$RANK"})
    EXPECT_TRUE(start({"accelerate", "launch", "--num_processes", "8", option}).many_nodes)
        << option;
}

TEST(StartCommand, APackedCheckpoint) {
  const auto bytes = [](const char* how) {
    return start({"vllm", "serve", "a/b-70B", "--quantization", how}).model_bytes;
  };
  EXPECT_EQ(bytes("awq_marlin"), 0u);
  EXPECT_EQ(bytes("bitsandbytes"), 140'000'000'000u);  // packed while it is read
}

TEST(StartCommand, SizeByName) {
  EXPECT_EQ(named_model_bytes("meta-llama/Llama-3.1-70B-Instruct"), 140'000'000'000u);
  EXPECT_EQ(named_model_bytes("Qwen/Qwen2.5-0.5B"), 1'000'000'000u);
  EXPECT_EQ(named_model_bytes("org/model-7b"), 14'000'000'000u);
  for (const char* name :
       {"mistralai/Mixtral-8x7B", "org/Llama-70B-AWQ", "org/model-70B-FP8", "org/Qwen3-A22B",
        "openai/gpt-oss-120b", "gpt2", "bert-base", "b", "7", ""})
    EXPECT_EQ(named_model_bytes(name), 0u) << name;
}

}  // namespace start_command_test
}  // namespace cufit::resolve
