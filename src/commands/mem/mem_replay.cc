// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_replay.h"

#include <algorithm>

#include "base/format.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/size_argument.h"
#include "memory/allocator/card_capacity.h"
#include "report/mem_replay.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_replay_options[] = {
    k_snapshot_option<MemReplayRequest>,
    option<&MemReplayRequest::settings>("--set", "KEY=VALUE,...").or_empty(),
    option<&MemReplayRequest::all>("--all"),
    option<&MemReplayRequest::limit>("--limit", "GIB"),
    option<&MemReplayRequest::gpu>("--gpu", "NAME"),
    k_device_option<MemReplayRequest>,
    k_torch_option<MemReplayRequest>,
    option<&MemReplayRequest::json>("--json"),
    option<&MemReplayRequest::verbose>("-v,--verbose"),
};

// What the user asks, but for the settings.
struct Bounds {
  memory::Question question;
  std::string card;  // its name when --gpu gives one
  bool card_measured = false;
};

Result<Bounds> bounds_of(const MemReplayRequest& request, const knowledge::Knowledge& knowledge) {
  Bounds bounds;
  if (request.limit) {
    CUFIT_TRY(limit, size_argument("--limit", *request.limit));
    bounds.question.allowed = limit;
  }
  if (request.gpu) {
    const std::string& name = *request.gpu;
    const knowledge::Gpu* gpu = knowledge.find_gpu(name);
    if (gpu == nullptr) {
      const std::vector<std::string> near = knowledge.nearest_gpus(name, 3);
      return fail(Code::usage, format("`--gpu {}`: no such GPU in the table{}", name,
                                      near.empty() ? "" : "; nearest: " + join(near, ", ")));
    }
    if (const std::vector<const knowledge::Gpu*> meant = knowledge.gpus_meant(name);
        meant.size() > 1) {
      std::vector<std::string> names;
      for (const knowledge::Gpu* one : meant) names.push_back(format("\"{}\"", one->name));
      return fail(Code::usage,
                  format("`--gpu {}`: sold with several sizes of memory; which is it: {}", name,
                         join(names, ", ")));
    }
    const memory::CardCapacity card = memory::card_capacity(*gpu, knowledge);
    bounds.question.capacity = card.usable();
    bounds.question.total_memory = card.total;
    bounds.card = gpu->name;
    bounds.card_measured = card.measured;
  }
  return bounds;
}

std::vector<memory::Question> questions_of(const MemReplayRequest& request,
                                           const memory::VerifiedRecording& verified,
                                           const memory::Question& bounds) {
  std::vector<memory::Question> questions;
  const auto add = [&](std::string settings) {
    memory::Question question = bounds;
    question.settings = std::move(settings);
    questions.push_back(std::move(question));
  };
  for (const std::string& text : request.settings) add(memory::settings_from_option(text));
  const size_t asked = questions.size();
  if (request.all) {
    bool recorded_listed = false;
    for (const std::string_view settings : memory::usual_settings()) {
      if (!memory::parse_allocator_settings(settings, verified.recording.version)) continue;
      recorded_listed = recorded_listed || settings == verified.settings;
      add(std::string(settings));
    }
    if (!recorded_listed) add(verified.settings);
  }
  if (questions.size() == asked && asked == 0) add(verified.settings);
  return questions;
}

bool died(const memory::VerifiedRecording& verified, const std::vector<memory::Answer>& answers) {
  return verified.limit || std::any_of(answers.begin(), answers.end(),
                                       [](const memory::Answer& a) { return !a.survives(); });
}

}  // namespace

std::span<const Option> mem_replay_options() { return k_mem_replay_options; }

int run_mem_replay(const Context& context, const MemReplayRequest& request) {
  const Output& output = context.output;
  const Result<Bounds> bounds = bounds_of(request, context.knowledge);
  if (!bounds) return output.exit_code_for(bounds.error());
  const Result<OpenedRecording> opened =
      open_recording(context, request, {}, bounds->question.allowed);
  if (!opened) return output.exit_code_for(opened.error());
  const auto& [path, snapshot, device, verified] = *opened;
  const std::vector<memory::Question> questions = questions_of(request, verified, bounds->question);
  Result<std::vector<memory::Answer>> answers = memory::ask(verified, questions);
  if (!answers) return output.exit_code_for(answers.error());
  // Those that were asked for stay in their order; the grid is ranked.
  const auto grid = answers->begin() + static_cast<std::ptrdiff_t>(request.settings.size());
  if (request.all) std::stable_sort(grid, answers->end(), memory::better);
  analysis::Steps steps;
  if (died(verified, *answers))
    steps = analysis::steps_of(*snapshot, device, analysis::lifetimes_of(*snapshot, verified));
  const report::MemReplayView view{path,
                                   verified,
                                   *answers,
                                   steps,
                                   bounds->card,
                                   request.device.has_value(),
                                   bounds->card_measured,
                                   context.knowledge};
  if (request.json) return output.print(report::mem_replay_json(view), k_ok);
  return output.print(report::mem_replay_text(view, output.style(request.verbose)), k_ok);
}

}  // namespace cufit::commands
