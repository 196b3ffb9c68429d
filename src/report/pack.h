// SPDX-License-Identifier: Apache-2.0
// The answers of `cufit pack` and `cufit mig plan` and their views.
#pragma once

#include <string>
#include <vector>

#include "fit/pack/pack_plan.h"
#include "report/report.h"

namespace cufit::report {

struct PackView {
  const pack::Question& question;
  const pack::Plan& plan;
  const knowledge::Knowledge& knowledge;
};

std::string pack_text(const PackView& view, const Style& style);
std::string pack_json(const PackView& view);  // schema cufit.pack/1

// One GPU, divided for the jobs of the question.
struct MigView {
  const pack::Question& question;
  const pack::Plan& plan;
  const pack::MigCard& card;
  const knowledge::Knowledge& knowledge;
};

std::string mig_plan_text(const MigView& view, const Style& style);
std::string mig_plan_json(const MigView& view);  // schema cufit.mig.plan/1
// Without jobs: what the GPU can be divided into.
std::string mig_profiles_text(const MigView& view, const Style& style);

// "20992MiB", "20GiB": for `cufit run --vram`.
std::string vram_text(uint64_t bytes);
// " python train.py", quoted for a POSIX shell; " " and `program` where the command is not known.
std::string program_words(const pack::Job& job, const std::string& program);
// The line that starts the job where it was placed; `program` stands where its command is not known.
// Every word is quoted for a POSIX shell.
std::string start_command(const PackView& view, size_t gpu, const pack::PlacedJob& job,
                          const std::string& program);
// What makes the instances of a divided GPU, in order; root's. `index`: nvidia-smi's.
std::vector<std::string> mig_commands(const pack::PackedGpu& gpu, uint32_t index);
// What takes them away again.
std::vector<std::string> mig_undo_commands(uint32_t index);
// Why a job has no place: "pack.too_large" and so on of data/messages/pack.toml.
std::string unplaced_text(const PackView& view, const pack::Unplaced& job, std::string_view lang);
// Starts it once there is room; empty: no whole GPU of the question would have it.
std::string waiting_command(const PackView& view, const pack::Unplaced& job,
                            const std::string& program);

}  // namespace cufit::report
