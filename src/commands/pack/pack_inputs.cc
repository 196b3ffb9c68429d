// SPDX-License-Identifier: Apache-2.0
#include "commands/pack/pack_inputs.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/fit/fit_recordings.h"
#include "commands/fit/fit_traces.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/size_argument.h"
#include "fit/answer/traced_answer.h"
#include "formats/model/pack_jobs.h"
#include "host/files/paths.h"

namespace cufit::commands {
namespace {

// "run-a" of "logs/run-a.pickle.gz".
std::string name_of_file(const std::string& path) {
  std::string name(file_name(path));
  for (const std::string_view end : {".gz", ".zst", ".json", ".toml", ".pickle", ".pkl"})
    if (ends_with(name, end) && name.size() > end.size())
      name = name.substr(0, name.size() - end.size());
  return name;
}

// What stands in `program` of an answer is a command only where a launcher begins it: it can be the
// names of event files, or a model.
std::vector<std::string> command_in(const std::string& program) {
  const std::optional<std::vector<std::string>> words = formats::command_words(program);
  if (!words || words->empty()) return {};
  const std::string_view first = file_name((*words)[0]);
  const bool launcher = starts_with(first, "python") || first == "torchrun" ||
                        first == "accelerate" || first == "deepspeed" || ends_with(first, ".py");
  const bool model = std::find(words->begin(), words->end(), "--train") != words->end() &&
                     ends_with((*words)[0], ".safetensors");
  return launcher && !model ? *words : std::vector<std::string>{};
}

class PackInputs {
 public:
  PackInputs(const Context& context, const std::vector<pack::Gpu>& gpus, size_t most)
      : context_(context), gpus_(gpus), most_(most) {}

  Result<void> add(const std::string& input) {
    if (trim(input).empty())
      return fail(Code::usage, "a job is empty: a file or a size such as 20G is expected");
    if (ends_with(input, ".toml")) return add_file(input);
    if (ends_with(input, ".json")) {
      CUFIT_TRY(job, predicted(input));
      return keep(std::move(job), 1);
    }
    const bool number = !input.empty() && std::isdigit(static_cast<unsigned char>(input[0])) != 0;
    if (number && !host::is_file(input)) {
      CUFIT_TRY(job, job_of_size("JOB", input,
                                 context_.message("pack.input.job",
                                                  {{"number", std::to_string(out_.size() + 1)}})));
      return keep(std::move(job), 1);
    }
    CUFIT_TRY(job, recorded(input));
    return keep(std::move(job), 1);
  }

  std::vector<pack::Job> take() && { return std::move(out_); }

 private:
  Result<void> keep(pack::Job job, uint32_t count) {
    if (out_.size() + count > most_) return fail(Code::usage, format("more than {} jobs", most_));
    for (uint32_t i = 1; i <= count; ++i) {
      out_.push_back(job);
      if (count > 1) out_.back().name = format("{} {}", job.name, i);
    }
    return {};
  }

  Result<void> add_file(const std::string& path) {
    CUFIT_TRY(text, context_.files.read_file(path, formats::k_pack_jobs_most_bytes));
    CUFIT_TRY(entries, formats::parse_pack_jobs(text, path, most_));
    for (formats::JobEntry& entry : entries) {
      CUFIT_TRY(job, job_of(entry, path));
      job.gpus = entry.gpus;
      if (!entry.command.empty()) job.command = std::move(entry.command);
      if (!entry.name.empty()) job.name = std::move(entry.name);
      if (job.name.empty())
        job.name =
            context_.message("pack.input.job", {{"number", std::to_string(out_.size() + 1)}});
      if (Result<void> done = keep(std::move(job), entry.count); !done) return done;
    }
    return {};
  }

  // Files that a job names lie beside JOBS.toml.
  Result<pack::Job> job_of(const formats::JobEntry& entry, const std::string& path) {
    const auto beside = [&](const std::string& name) { return path_in(parent_folder(path), name); };
    if (!entry.prediction.empty()) return predicted(beside(entry.prediction));
    if (!entry.snapshot.empty()) return recorded(beside(entry.snapshot));
    if (entry.fit) return traced(entry, path);
    pack::Job job;
    job.size.allocator = entry.size;
    job.size.total = entry.total;
    return job;
  }

  Result<pack::Job> predicted(const std::string& path) {
    CUFIT_TRY(text, context_.files.read_file(path, formats::k_fit_json_most_bytes));
    CUFIT_TRY(answer, formats::parse_fit_answer(text, path));
    pack::Job job;
    job.name = name_of_file(path);
    job.command = command_in(answer.program);
    job.size.allocator = answer.peak_reserved_upper;
    for (const formats::FitAnswerFacts::OnGpu& gpu : answer.gpus) {
      if (!gpu.peak_reserved_upper || gpu.runs_out) continue;
      // A card by its size has the context of another.
      if (const knowledge::Gpu* row = context_.knowledge.find_gpu(gpu.name))
        job.size.on_cards.push_back(
            {std::string(row->name), *gpu.peak_reserved_upper, gpu.outside});
    }
    return job;
  }

  Result<pack::Job> recorded(const std::string& path) {
    // The batch size is asked for where others are predicted; here the run is taken as it was.
    CUFIT_TRY(run, read_measured_run(context_, {path, 1}));
    if (run.ran_out)
      return fail(Code::usage,
                  format("{}: that run ran out of memory, so what it takes is not known; "
                         "`cufit mem explain {}` says what it would need",
                         path, shell_word(path)));
    pack::Job job;
    job.name = name_of_file(path);
    job.size.allocator = run.peak_reserved;
    return job;
  }

  Result<pack::Job> traced(const formats::JobEntry& entry, const std::string& path) {
    const knowledge::Knowledge& knowledge = context_.knowledge;
    std::vector<fit::Card> cards;
    for (const pack::Gpu& gpu : gpus_) {
      const knowledge::Gpu* row = gpu.table.empty() ? nullptr : knowledge.find_gpu(gpu.table);
      if (row == nullptr) continue;
      cards.push_back(fit::card_of(*row, knowledge));
      cards.back().asked = true;
    }
    fit::Question question;
    question.cards = fit::each_once(std::move(cards));
    question.traced_card = fit::traced_card(question.cards, knowledge);
    FitProgramRequest program;
    program.command = entry.command;
    CUFIT_TRY(traces,
              fit_traces(context_, program, FitModelRequest{}, std::nullopt,
                         {parse_compute_capability(question.traced_card.cc),
                          fit::pretended_gpu(question.traced_card, knowledge),
                          fit::cudnn_devices(question.traced_card, question.cards, knowledge)}));
    if (traces.failure)
      return fail(Code::io, format("{}, line {}: no size for the job: `cufit fit -- {}` says why",
                                   path, entry.line, traces.program));
    CUFIT_TRY(begun, fit::TracedAnswer::begin(std::move(traces.traces), question, knowledge));
    const fit::Answer answer = std::move(begun).finish();
    pack::Job job;
    job.size.allocator = answer.prediction.peak_reserved_upper;
    for (const fit::CardAnswer& card : answer.cards)
      if (card.fits && card.prediction)
        job.size.on_cards.push_back(
            {card.name, card.prediction->peak_reserved_upper, card.outside_allocator});
    return job;
  }

  const Context& context_;
  const std::vector<pack::Gpu>& gpus_;
  const size_t most_;
  std::vector<pack::Job> out_;
};

}  // namespace

Result<pack::Job> job_of_size(const std::string& option, const std::string& text,
                              const std::string& name) {
  if (option == "JOB" && !parse_memory_size(text))
    return fail(Code::usage,
                format("size {} of a job: a size in GiB such as 22.5, or 800MiB", text));
  CUFIT_TRY(bytes, size_argument(option, text));
  pack::Job job;
  job.name = name;
  job.size.allocator = bytes;
  return job;
}

Result<std::vector<pack::Job>> pack_jobs(const Context& context,
                                         const std::vector<std::string>& inputs,
                                         const std::vector<pack::Gpu>& gpus, size_t most) {
  PackInputs read(context, gpus, most);
  for (const std::string& input : inputs)
    if (Result<void> done = read.add(input); !done) return done.error();
  return std::move(read).take();
}

}  // namespace cufit::commands
