// SPDX-License-Identifier: Apache-2.0
// The commands of a plan: they are there to be copied, and hold nothing that a shell would read.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "formats/prose/printable.h"
#include "report/pack.h"
#include "report/terminal/mem_words.h"

namespace cufit::report {
namespace {

// The UUID of an instance is known once it is made: the n-th of its name on that GPU in
// "GPU 0: NVIDIA H100 (UUID: GPU-...)" and "  MIG 3g.40gb     Device  0: (UUID: MIG-...)".
std::string uuid_of_instance(uint32_t index, const std::string& profile, uint32_t same) {
  return format(
      R"sh("$(nvidia-smi -L | awk '/^GPU /{{g=$2+0}} g=={} && $2=="{}" && n++=={}{{sub(/.*UUID: /,""); sub(/\).*/,""); print}}')")sh",
      index, profile, same);
}

std::string words_of(const PackView& view, size_t job, const std::string& program) {
  return program_words(view.question.jobs[job], program);
}

// Of the GPU that comes nearest, while nothing else runs on it.
bool fits_when_empty(const PackView& view, const pack::Unplaced& job) {
  return !job.too_large || job.missing <= view.question.gpus[job.gpu].in_use;
}

}  // namespace

std::string program_words(const pack::Job& job, const std::string& program) {
  std::string out;
  for (const std::string& word : job.command) out += " " + shell_argument(word);
  return out.empty() ? " " + program : out;
}

std::string vram_text(uint64_t bytes) {
  const uint64_t mib = bytes >> 20;
  return mib % 1024 == 0 ? format("{}GiB", mib / 1024) : format("{}MiB", mib);
}

std::string start_command(const PackView& view, size_t gpu, const pack::PlacedJob& job,
                          const std::string& program) {
  const pack::Gpu& on = view.question.gpus[gpu];
  std::string out;
  if (job.instance)
    out =
        "CUDA_VISIBLE_DEVICES=" + uuid_of_instance(on.index, job.instance->profile->name, job.same);
  else if (on.visible.empty())
    out = "CUDA_VISIBLE_DEVICES=" + uuid_of_instance(on.index, on.profile, on.same);
  else if (starts_with(on.visible, "GPU-") || starts_with(on.visible, "MIG-"))
    out = "CUDA_VISIBLE_DEVICES=" + shell_word(on.visible);
  else
    out = "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=" + shell_word(on.visible);
  out += format(" cufit run --vram {} --", vram_text(job.bytes));
  return out + words_of(view, job.job, program);
}

std::vector<std::string> mig_commands(const pack::PackedGpu& gpu, uint32_t index) {
  if (!gpu.divided || gpu.jobs.empty()) return {};
  std::string instances;
  for (const pack::PlacedJob& job : gpu.jobs)
    instances += format("{}{}:{}", instances.empty() ? "" : ",", job.instance->profile->id,
                        job.instance->start);
  return {format("sudo nvidia-smi -i {} -mig 1", index),
          format("sudo nvidia-smi mig -i {} -cgi {} -C", index, instances)};
}

std::vector<std::string> mig_undo_commands(uint32_t index) {
  return {format("sudo nvidia-smi mig -i {} -dci", index),
          format("sudo nvidia-smi mig -i {} -dgi", index),
          format("sudo nvidia-smi -i {} -mig 0", index)};
}

std::string unplaced_text(const PackView& view, const pack::Unplaced& job, std::string_view lang) {
  const pack::Gpu& gpu = view.question.gpus[job.gpu];
  const bool now = gpu.in_use > 0 && fits_when_empty(view, job);
  const uint64_t missing =
      job.too_large && !now ? job.missing - std::min(job.missing, gpu.in_use) : job.missing;
  const char* key = job.too_large     ? now ? "pack.too_large_now" : "pack.too_large"
                    : job.missing > 0 ? "pack.no_room"
                                      : "pack.no_instance";
  return label(view.knowledge, lang, key,
               {{"gpu", formats::printable(gpu.name, 200)},
                {"used", gib(gpu.in_use)},
                {"bytes", gib(job.bytes)},
                {"missing", gib(missing)}});
}

std::string waiting_command(const PackView& view, const pack::Unplaced& job,
                            const std::string& program) {
  if (view.question.divide || view.question.gpus[job.gpu].is_instance ||
      !fits_when_empty(view, job))
    return {};
  return format("cufit run --wait --vram {} --", vram_text(job.bytes)) +
         words_of(view, job.job, program);
}

}  // namespace cufit::report
