// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_cached.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "formats/model/pack_jobs.h"
#include "formats/prose/printable.h"
#include "host/files/paths.h"
#include "host/files/prediction_cache.h"
#include "report/fit_cached.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_program_files = 256, k_most_word_bytes = 4096;
constexpr const char* k_kept_schema = "kept answer 1";

// The options that change the answer, and where a command line has them.
struct KeyOption {
  const char* name;
  std::optional<std::string> value;
};
std::vector<KeyOption> key_options(const FitRequest& request) {
  return {{"--batch", request.batch == "auto" ? std::nullopt : std::optional(request.batch)},
          {"--set", request.settings},
          {"--function", request.function},
          {"--batch-arg", request.batch_arg},
          {"--seq", request.seq},
          {"--seq-arg", request.seq_arg},
          {"--steps", request.steps},
          {"--train", request.train},
          {"--res", request.res},
          {"--dtype", request.dtype},
          {"--optimizer", request.optimizer},
          {"--checkpointing", request.checkpointing},
          {"--lora-targets", request.lora_targets}};
}

// All that decides the answer but for the files. Every word with its length: none runs into another.
std::string key_of(const Context& context, const FitRequest& request) {
  std::vector<std::string> words = {CUFIT_VERSION, std::string(context.knowledge.date),
                                    host::resolved_path(host::working_folder())};
  for (const KeyOption& option : key_options(request))
    words.push_back(option.value ? "=" + *option.value : "-");
  words.insert(words.end(), request.command.begin(), request.command.end());
  std::string out;
  for (const std::string& word : words) out += format("{} {}\n", word.size(), word);
  return out;
}

// What makes the answer, as it was typed.
std::string making_command(const FitRequest& request) {
  std::string out = "cufit fit";
  for (const KeyOption& option : key_options(request))
    if (option.value) out += format(" {} {}", option.name, shell_argument(*option.value));
  out += " --";
  for (const std::string& word : request.command) out += " " + shell_argument(word);
  return formats::printable(out, 4000);
}

Result<void> stands_alone(const FitRequest& request) {
  if (!request.command.empty() && request.events.empty() && request.from.empty() &&
      request.batch_was.empty() && !request.plan && !request.html && !request.keep)
    return {};
  return fail(Code::usage,
              "`--cached` takes the program and the options that it was traced with, and no "
              "`--events`, `--from`, `--plan`, `--keep`, `--html`");
}

// The answer's own value for a card, else that of no card.
report::CachedCard on_card(const fit::Card& card, const formats::FitAnswerFacts& answer) {
  report::CachedCard out{card.name, answer.peak_reserved_upper, card.usable};
  for (const formats::FitAnswerFacts::OnGpu& one : answer.gpus)
    if (one.name == card.name && one.peak_reserved_upper && !one.runs_out)
      out.needs = *one.peak_reserved_upper;
  return out;
}

struct Kept {
  Json answer;
  int64_t made = 0;
  size_t files = 0;
};

// nullopt: it is none, or what `changed` names is not what it was.
std::optional<Kept> read_kept(const std::string& text, std::string& changed) {
  std::optional<Json> json = Json::parse(text);
  if (!json || json->text_at("schema") != k_kept_schema) return std::nullopt;
  const Json* files = json->member("files");
  const Json* made = json->member("made");
  const Json* answer = json->member("answer");
  if (files == nullptr || !files->is_array() || made == nullptr || !made->is_number_integer() ||
      answer == nullptr || !answer->is_object() || files->size() > k_most_program_files)
    return std::nullopt;
  for (const Json& file : *files) {
    if (host::file_mark(file.text_at("path")) == file.text_at("mark")) continue;
    changed = file.text_at("path");
    return std::nullopt;
  }
  return Kept{*answer, made->integer(), files->size()};
}

std::string why_not_cached(const FitRequest& request, const std::string& changed) {
  const std::string command = making_command(request);
  if (changed.empty()) return format("no answer is kept for this command; make one: `{}`", command);
  return format("`{}` has changed since the answer that is kept; make a new one: `{}`",
                formats::printable(changed, 400), command);
}

int not_cached(const Context& context, const FitRequest& request, const std::string& changed) {
  const std::string why = why_not_cached(request, changed);
  std::string program;
  for (const std::string& word : request.command)
    program += (program.empty() ? "" : " ") + shell_argument(word);
  if (request.json)
    (void)context.output.print(report::fit_not_cached_json(formats::printable(program, 4000), why),
                               k_not_cached);
  context.output.print_error(why);
  return k_not_cached;
}

}  // namespace

std::vector<std::string> program_files(const host::Host& machine,
                                       const std::vector<std::string>& command,
                                       const fit::Traces& traces) {
  std::set<std::string> out;
  const auto add = [&](const std::string& path) {
    if (path.size() <= k_most_word_bytes && host::is_file(path)) out.insert(path);
  };
  for (size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i == 0 && !ends_with(word, ".py")) continue;  // the Python itself
    add(word);
    if (const size_t equals = word.find('='); equals != std::string::npos)
      add(word.substr(equals + 1));
  }
  std::vector<std::string> folders;
  for (const std::string& word : command)
    if (ends_with(word, ".py")) folders.push_back(parent_folder(word));
  for (const std::string& folder : folders) {
    const Result<std::vector<std::string>> names = machine.list(folder.empty() ? "." : folder);
    if (!names) continue;
    for (const std::string& name : *names)
      if (ends_with(name, ".py")) add(folder.empty() ? name : path_in(folder, name));
  }
  // "models/net.py:12": lines of the user's own files.
  for (const formats::TraceEvents& trace : traces.plain)
    for (const formats::TraceSite& site : trace.sites) {
      const std::string& source = trace.texts[site.source];
      if (const size_t colon = source.rfind(':'); colon != std::string::npos)
        add(source.substr(0, colon));
    }
  return {out.begin(), out.end()};
}

void keep_answer(const Context& context, const FitRequest& request, const std::string& program,
                 const fit::Answer& answer, const std::vector<std::string>& files) {
  if (request.command.empty() || files.empty() || files.size() > k_most_program_files ||
      answer.unanswered || answer.recorded)
    return;
  const report::FitView view{program, answer, context.knowledge};
  std::optional<Json> said = Json::parse(report::fit_json(view));
  if (!said) return;
  Json kept;
  kept["schema"] = k_kept_schema;
  kept["made"] = static_cast<int64_t>(context.now());
  kept["files"] = Json::array();
  for (const std::string& path : files) {
    const std::string mark = host::file_mark(path);
    if (mark.empty()) return;
    kept["files"].push_back({{"path", path}, {"mark", mark}});
  }
  kept["answer"] = std::move(*said);
  (void)host::PredictionCache(context.files).save(key_of(context, request), kept.dump());
}

int print_cached(const Context& context, const FitRequest& request,
                 const std::vector<fit::Card>& cards) {
  const Output& output = context.output;
  if (const Result<void> alone = stands_alone(request); !alone)
    return output.exit_code_for(alone.error());
  const std::optional<std::string> text =
      host::PredictionCache(context.files).load(key_of(context, request));
  std::string changed;
  const std::optional<Kept> kept = text ? read_kept(*text, changed) : std::nullopt;
  if (!kept) return not_cached(context, request, changed);
  const Result<formats::FitAnswerFacts> facts =
      formats::parse_fit_answer(kept->answer.dump(), "answer");
  if (!facts) return not_cached(context, request, changed);
  report::FitCachedView view{kept->answer, kept->made, kept->files, {}, context.knowledge};
  bool fits = true;
  for (const fit::Card& card : cards) {
    view.cards.push_back(on_card(card, *facts));
    fits = fits && view.cards.back().fits();
  }
  return output.print(
      request.json ? report::fit_cached_json(view) : report::fit_cached_text(view, output.style()),
      fits ? k_ok : k_findings);
}

}  // namespace cufit::commands
