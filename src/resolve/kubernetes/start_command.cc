// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/start_command.h"

#include <algorithm>
#include <initializer_list>

#include "base/format.h"
#include "base/number.h"
#include "formats/system/shell_commands.h"
#include "resolve/kubernetes/start_signs.h"

namespace cufit::resolve {
namespace {

class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}

  const std::vector<std::string>& all() const { return words_; }

  bool has(std::string_view word) const {
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }
  bool assigns(std::string_view name) const {
    return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return starts_with(word, std::string(name) + "=");
    });
  }
  // The program itself, whatever folder it lies in.
  bool runs(std::string_view name) const {
    return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
      return word == name || ends_with(word, "/" + std::string(name));
    });
  }
  // The value of an option, "--name value" or "--name=value", and both as written. "-" and "_"
  // are one, as argparse of torchrun takes them.
  std::optional<std::string> value(std::initializer_list<std::string_view> names,
                                   std::string* written = nullptr) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (const std::string_view name : names) {
        const std::string word = dashed(words_[i].substr(0, words_[i].find('=')));
        if (word != name) continue;
        const size_t equals = words_[i].find('=');
        if (equals != std::string::npos) {
          if (written != nullptr) *written = words_[i];
          return words_[i].substr(equals + 1);
        }
        if (i + 1 >= words_.size()) return std::nullopt;
        if (written != nullptr) *written = words_[i] + " " + words_[i + 1];
        return words_[i + 1];
      }
    return std::nullopt;
  }
  std::optional<uint32_t> number(std::initializer_list<std::string_view> names,
                                 std::string* written = nullptr) const {
    const std::optional<std::string> text = value(names, written);
    const std::optional<uint64_t> read = text ? parse_uint(*text) : std::nullopt;
    return read && *read <= 100000 ? std::optional<uint32_t>(static_cast<uint32_t>(*read))
                                   : std::nullopt;
  }

 private:
  static std::string dashed(std::string word) {
    std::replace(word.begin(), word.end(), '_', '-');
    return word;
  }
  std::vector<std::string> words_;
};

std::string set_variable(const formats::ManifestContainer& container, std::string_view name) {
  for (const formats::PodVariable& one : container.variables)
    if (one.name == name && one.value) return *one.value;
  return {};
}

// The repository's own image, with or without a registry in front; not those of other devices.
bool is_image(const std::string& image, std::string_view name) {
  const std::string bare = image.substr(0, image.find('@'));
  const size_t slash = bare.rfind('/');
  const size_t colon = bare.find(':', slash == std::string::npos ? 0 : slash);
  const std::string repository = bare.substr(0, colon);
  const std::string tag = colon == std::string::npos ? "" : lower(bare.substr(colon));
  for (const char* other : {"cpu", "rocm", "xpu", "tpu", "gaudi", "neuron", "intel"})
    if (contains(tag, other)) return false;
  return repository == name || ends_with(repository, "/" + std::string(name));
}

void read_torchrun(const Words& words, const formats::ManifestContainer& container,
                   StartCommand& out) {
  out.launcher = Launcher::torchrun;
  const std::optional<std::string> asked = words.value({"--nproc-per-node"}, &out.processes_text);
  if (asked) {
    out.processes = words.number({"--nproc-per-node"});
    out.one_per_gpu = *asked == "gpu" || *asked == "auto";
    if (*asked == "gpu") out.needs_gpu = out.processes_text;
    return;
  }
  const std::string set = set_variable(container, "PET_NPROC_PER_NODE");
  if (!set.empty()) {
    const std::optional<uint64_t> read = parse_uint(set);
    if (read && *read <= 100000) out.processes = static_cast<uint32_t>(*read);
    out.processes_text = "PET_NPROC_PER_NODE=" + set;
    return;
  }
  if (container.variables_from) return;
  for (const formats::PodVariable& one : container.variables)
    if (one.name == "PET_NPROC_PER_NODE") return;
  out.processes = 1;
  out.processes_default = true;
  out.processes_text = "torchrun";
}

void read_vllm(const Words& words, const formats::ManifestContainer& container, StartCommand& out) {
  out.launcher = Launcher::vllm;
  std::string written;
  const std::optional<std::string> tensor =
      words.value({"--tensor-parallel-size", "-tp"}, &written);
  const std::optional<uint32_t> width = words.number({"--tensor-parallel-size", "-tp"});
  if (width) {
    out.processes = *width * words.number({"--pipeline-parallel-size", "-pp"}).value_or(1);
    out.processes_text = written;
  }
  out.many_nodes = words.has("ray") || words.value({"--nnodes"}).has_value() ||
                   words.value({"--distributed-executor-backend"}).value_or("") == "ray" ||
                   words.value({"--pipeline-parallel-size", "-pp"}).has_value();
  out.model = words.value({"--model"}).value_or("");
  const auto serve = std::find(words.all().begin(), words.all().end(), "serve");
  if (out.model.empty() && serve != words.all().end() && serve + 1 != words.all().end() &&
      (serve + 1)->find('-') != 0)
    out.model = *(serve + 1);
  if (is_image(container.image, "vllm/vllm-openai") && !words.value({"--device"}))
    out.needs_gpu = "vllm";
}

// `vllm serve` where nothing says that another device, or another pod, computes.
bool serves_on_gpu(const Words& words, const formats::ManifestContainer& container) {
  const auto vllm = std::find_if(words.all().begin(), words.all().end(), [](const auto& word) {
    return word == "vllm" || ends_with(word, "/vllm");
  });
  const bool serves =
      vllm != words.all().end() && vllm + 1 != words.all().end() && *(vllm + 1) == "serve";
  if (!serves && !words.runs("text-generation-launcher")) return false;
  for (const char* name : {"--device", "--data-parallel-size-local", "--data-parallel-address"})
    if (words.value({name})) return false;
  for (const char* option : {"--help", "-h", "--disable-custom-kernels", "--headless"})
    if (words.has(option)) return false;
  for (const formats::PodVariable& one : container.variables)
    if (starts_with(one.name, "VLLM_CPU") || one.name == "VLLM_TARGET_DEVICE") return false;
  return !is_for_other_device(container.image);
}

// One process for each GPU of its tensor parallelism; restarts and images are anybody's.
void read_sglang(const Words& words, StartCommand& out) {
  out.launcher = Launcher::sglang;
  out.processes =
      words.number({"--tensor-parallel-size", "--tp-size", "--tp"}, &out.processes_text);
  out.many_nodes = words.value({"--nnodes"}).value_or("1") != "1";
  out.model = words.value({"--model-path", "--model"}).value_or("");
}

// One command of the container; the first may be the arguments of the image's own entry point.
void read_launcher(const Words& words, bool first, const formats::ManifestContainer& container,
                   StartCommand& out) {
  const bool alone = first && container.command.empty();
  if (words.runs("torchrun") || words.has("torch.distributed.run") ||
      words.has("torch.distributed.launch")) {
    read_torchrun(words, container, out);
  } else if (words.runs("accelerate") && words.has("launch")) {
    out.launcher = Launcher::accelerate;
    out.processes = words.number({"--num-processes"}, &out.processes_text);
    // The number counts the processes of all machines.
    out.many_nodes = words.value({"--num-machines"}).value_or("1") != "1" ||
                     words.value({"--machine-rank"}) || words.value({"--main-process-ip"});
  } else if (words.runs("deepspeed")) {
    out.launcher = Launcher::deepspeed;
    out.processes = words.number({"--num-gpus"}, &out.processes_text);
    if (out.processes.value_or(0) > 0 && !words.value({"--hostfile", "-H"}))
      out.needs_gpu = out.processes_text;
  } else if ((words.runs("vllm") && words.has("serve")) ||
             words.has("vllm.entrypoints.openai.api_server") ||
             (alone && is_image(container.image, "vllm/vllm-openai"))) {
    read_vllm(words, container, out);
  } else if (words.has("sglang.launch_server") || (words.runs("sglang") && words.has("serve"))) {
    read_sglang(words, out);
  } else if (words.runs("text-generation-launcher") ||
             (alone && is_image(container.image, "huggingface/text-generation-inference"))) {
    out.launcher = Launcher::tgi;
    out.processes = words.number({"--num-shard"}, &out.processes_text);
    out.model = words.value({"--model-id"}).value_or("");
  } else if (first &&
             (words.all()[0] == "nvidia-smi" || ends_with(words.all()[0], "/nvidia-smi"))) {
    // Behind another command it may look whether there is a GPU.
    out.launcher = Launcher::nvidia_smi;
    out.needs_gpu = "nvidia-smi";
    out.stays = words.has("-l") || words.has("dmon") || words.has("pmon") ||
                std::any_of(words.all().begin(), words.all().end(), [](const std::string& word) {
                  return starts_with(word, "--loop") || starts_with(word, "-lms");
                });
  }
}

// What waits for ever: the pod ends when somebody deletes it.
bool waits(const Words& words) {
  const std::string& program = words.all()[0];
  if (words.runs("sleep")) return words.has("infinity") || words.has("inf");
  return (program == "tail" && (words.has("-f") || words.has("-F"))) || words.runs("sshd");
}

// The command after it runs in other containers.
bool starts_elsewhere(const Words& words) {
  for (const char* program : {"mpirun", "mpiexec", "orterun", "horovodrun", "srun", "kubectl"})
    if (words.runs(program)) return true;
  return words.runs("ray") && words.has("submit");
}

// The checkpoint itself is packed, whatever its name says; others are packed while they are read.
bool is_packed(const std::vector<Words>& commands) {
  for (const Words& words : commands) {
    const std::string how = lower(words.value({"--quantization", "--quantize"}).value_or(""));
    for (const char* packed : {"awq", "gptq", "gguf", "marlin", "compressed", "modelopt", "exl2"})
      if (contains(how, packed)) return true;
  }
  return false;
}

// Of several launchers one that ends after the other: equal numbers are the number, others and
// GPUs that a script divides itself are not known.
void read_commands(const std::vector<Words>& commands, const formats::ManifestContainer& container,
                   StartCommand& out) {
  bool divided = false;
  for (const Words& words : commands) {
    StartCommand one;
    read_launcher(words, &words == &commands[0], container, one);
    if (one.launcher == Launcher::none) continue;
    divided = divided || words.assigns("CUDA_VISIBLE_DEVICES");
    if (out.launcher == Launcher::none) {
      out = one;
      continue;
    }
    if (out.processes == one.processes && out.one_per_gpu == one.one_per_gpu) continue;
    divided = true;
  }
  if (!divided) return;
  out.processes.reset();
  out.processes_default = out.one_per_gpu = false;
}

}  // namespace

const char* to_string(Launcher launcher) {
  static const char* const k_names[] = {"",          "torchrun",  "accelerate launch",
                                        "deepspeed", "vllm",      "text-generation-launcher",
                                        "sglang",    "nvidia-smi"};
  return k_names[static_cast<size_t>(launcher)];
}

StartCommand read_start(const formats::ManifestContainer& container) {
  std::vector<Words> commands;
  std::vector<std::string> arguments = container.command;
  arguments.insert(arguments.end(), container.args.begin(), container.args.end());
  ShellCommands all = formats::read_commands(arguments);
  StartCommand out;
  const bool smi = begins_with_smi(all);
  const std::string trains = trained_program(all);
  const bool elsewhere = std::any_of(
      all.begin(), all.end(), [](const auto& one) { return starts_elsewhere(Words(one.words)); });
  std::vector<std::string> devices = elsewhere ? std::vector<std::string>() : chosen_devices(all);
  for (formats::ShellCommand& one : all)
    if (!formats::starts_nothing(one.words)) commands.emplace_back(std::move(one.words));
  read_commands(commands, container, out);
  out.computes = out.launcher != Launcher::none && out.launcher != Launcher::nvidia_smi;
  out.devices = std::move(devices);
  if (!elsewhere) out.trains = trains;
  if (smi && out.needs_gpu.empty()) out.needs_gpu = "nvidia-smi";
  for (const Words& words : commands) {
    out.only_looks =
        out.only_looks || (words.runs("cufit") &&
                           (words.has("doctor") || words.has("exporter") || words.has("watch")));
    out.stays = out.stays || waits(words);
    if (out.workers == 0)
      out.workers = words
                        .number({"--num-workers", "--dataloader-num-workers", "--data-workers"},
                                &out.workers_text)
                        .value_or(0);
    std::string written;
    if (out.needs_gpu.empty() && !starts_elsewhere(words) &&
        words.value({"--backend"}, &written).value_or("") == "nccl")
      out.needs_gpu = written;
    if (out.needs_gpu.empty() && !elsewhere) out.needs_gpu = asks_for_cuda(words.all());
    if (out.needs_gpu.empty() && !out.many_nodes && serves_on_gpu(words, container))
      out.needs_gpu = to_string(out.launcher);
    if (out.model.empty())
      out.model = words.value({"--model", "--model-name-or-path", "--model-id"}).value_or("");
  }
  out.computes = out.computes || !out.trains.empty() ||
                 (!out.needs_gpu.empty() && out.needs_gpu != "nvidia-smi");
  if (out.model.empty()) out.model = set_variable(container, "MODEL_ID");
  if (!is_packed(commands)) out.model_bytes = named_model_bytes(out.model);
  return out;
}

}  // namespace cufit::resolve
