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
          {"--world", request.world},
          {"--ranks", request.ranks},
          {"--train", request.train},
          {"--res", request.res},
          {"--dtype", request.dtype},
          {"--optimizer", request.optimizer},
          {"--checkpointing", request.checkpointing},
          {"--lora-targets", request.lora_targets},
          {"--gpus", request.ranks_of_model},
          {"--strategy", request.strategy}};
}

// The card that the program was told it runs on, where one was asked for (fit::traced_card); else "".
std::string card_of_trace(const std::vector<fit::Card>& cards) {
  for (const fit::Card& card : cards)
    if (card.asked && !card.cc.empty()) return card.name;
  return {};
}

// All that decides the answer but for the files. Every word with its length: none runs into another.
// `card`: that of the trace; empty: whichever was traced last.
std::string key_of(const Context& context, const FitRequest& request, const std::string& card) {
  std::vector<std::string> words = {CUFIT_VERSION, std::string(context.knowledge.date),
                                    context.knowledge.updated ? "updated" : "built in", card,
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

// nullopt: it is none, or what `changed` names is not what it was. `beside`: files that an import would
// take: of one that came since nobody knows what it changes.
std::optional<Kept> read_kept(const std::string& text, const std::vector<std::string>& beside,
                              std::string& changed) {
  std::optional<Json> json = Json::parse(text);
  if (!json || json->text_at("schema") != k_kept_schema) return std::nullopt;
  const Json* files = json->member("files");
  const Json* made = json->member("made");
  const Json* answer = json->member("answer");
  if (files == nullptr || !files->is_array() || made == nullptr || !made->is_number_integer() ||
      answer == nullptr || !answer->is_object() || files->size() > k_most_program_files)
    return std::nullopt;
  std::set<std::string> known;
  for (const Json& file : *files) {
    known.insert(file.text_at("path"));
    if (host::file_mark(file.text_at("path")) == file.text_at("mark")) continue;
    changed = file.text_at("path");
    return std::nullopt;
  }
  for (const std::string& path : beside) {
    if (known.count(path) != 0) continue;
    changed = path;
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

void keep_answer(const Context& context, const FitRequest& request, const std::string& program,
                 const fit::Answer& answer, const std::vector<fit::Card>& cards,
                 const FileMarks& files) {
  if (request.command.empty() || files.empty() || answer.unanswered || answer.recorded) return;
  const report::FitView view{program, answer, context.knowledge};
  std::optional<Json> said = Json::parse(report::fit_json(view));
  if (!said) return;
  Json kept;
  kept["schema"] = k_kept_schema;
  kept["made"] = static_cast<int64_t>(context.now());
  kept["files"] = Json::array();
  for (const auto& [path, mark] : files) kept["files"].push_back({{"path", path}, {"mark", mark}});
  kept["answer"] = std::move(*said);
  const std::string text = kept.dump(), card = card_of_trace(cards);
  const host::PredictionCache cache(context.files);
  (void)cache.save(key_of(context, request, ""), text);
  if (!card.empty()) (void)cache.save(key_of(context, request, card), text);
}

int print_cached(const Context& context, const FitRequest& request,
                 const std::vector<fit::Card>& cards) {
  const Output& output = context.output;
  if (const Result<void> alone = stands_alone(request); !alone)
    return output.exit_code_for(alone.error());
  const host::PredictionCache cache(context.files);
  const std::vector<std::string> beside = files_beside(context.files, request.command);
  std::string changed;
  std::optional<Kept> kept;
  // A program may do otherwise on another card: what was traced for this one comes first.
  for (const std::string& card : {card_of_trace(cards), std::string()}) {
    const std::optional<std::string> text = cache.load(key_of(context, request, card));
    if (text && !kept) kept = read_kept(*text, beside, changed);
  }
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
