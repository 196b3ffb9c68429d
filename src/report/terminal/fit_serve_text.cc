// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fit --serve` on a terminal: what the model takes, what each card holds of it,
// how the engine is started there or what it would say.
#include "report/fit_serve.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_serve_types_shown = 4, k_serve_cards_shown = 12;

std::string engine_title(fit::Engine engine) {
  switch (engine) {
    case fit::Engine::vllm:
      return "vLLM";
    case fit::Engine::sglang:
      return "SGLang";
    case fit::Engine::llama_cpp:
      return "llama.cpp";
    default:
      return "transformers";
  }
}

class ServePainter : private TerminalWriter {
 public:
  ServePainter(const FitServeView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), answer_(view.answer) {}

  std::string paint() {
    title();
    table();
    for (const fit::ServeCard& card : answer_.cards)
      if (card.asked) details(card);
    warnings();
    return finish();
  }

 private:
  void title() {
    flow(say("serve.title", {{"model", printable(view_.model)},
                             {"engine", engine_title(answer_.engine)},
                             {"context", thousands(answer_.context)},
                             {"sequences", thousands(answer_.sequences)}}),
         "", "  ", "1");
    const fit::ServedWeights& weights = answer_.weights;
    std::string types;
    for (size_t i = 0; i < std::min(weights.types.size(), k_serve_types_shown); ++i)
      types += (i == 0 ? "" : ", ") + printable(weights.types[i].first);
    flow(say(answer_.tp > 1 ? "serve.weights_each" : "serve.weights",
             {{"weights", gib(weights.bytes)},
              {"each", gib(weights.gpu_bytes)},
              {"gpus", thousands(answer_.tp)},
              {"from", weights.reckoned ? say("serve.from_config")
                                        : say("serve.from_headers", {{"types", types}})}}),
         "  ", "  ");
    std::string cache = say("serve.cache", {{"token", thousands(answer_.token_bytes) + " B"},
                                            {"type", answer_.type.name}});
    if (answer_.far_token_bytes != answer_.token_bytes)
      cache += say("semicolon") +
               say("serve.cache_far", {{"token", thousands(answer_.far_token_bytes) + " B"}});
    if (answer_.state_bytes != 0)
      cache += say("semicolon") + say("serve.cache_state", {{"state", gib(answer_.state_bytes)}});
    flow(cache, "  ", "  ");
  }

  // All that were asked for by name; of `all` those that hold it, the smallest first.
  std::vector<const fit::ServeCard*> shown(size_t& small, size_t& large) const {
    std::vector<const fit::ServeCard*> out;
    size_t others = 0;
    for (const fit::ServeCard& card : answer_.cards) {
      if (card.asked || (card.fits && others++ < k_serve_cards_shown))
        out.push_back(&card);
      else
        ++(card.fits ? large : small);
    }
    return out;
  }

  void table() {
    if (answer_.cards.empty()) return;
    size_t small = 0, large = 0;
    const std::vector<const fit::ServeCard*> cards = shown(small, large);
    heading(say(answer_.tp > 1 ? "serve.heading.cards_each" : "serve.heading.cards",
                {{"gpus", thousands(answer_.tp)}}));
    int first = columns(say("fit.column.gpu"));
    for (const fit::ServeCard* card : cards) first = std::max(first, columns(card->name));
    const int outcome = std::max(columns(say("fit.fits")), columns(say("fit.fits_not")));
    const std::string context = say("serve.column.context");
    const std::string sequences =
        say("serve.column.sequences", {{"context", thousands(answer_.context)}});
    out_ += coloured("  " + pad(say("fit.column.gpu"), first) + "  " +
                         pad(say("fit.column.fits"), outcome) + "  " + context + "  " + sequences,
                     "1") +
            "\n";
    if (small != 0) flow(say("serve.more_small", {{"count", thousands(small)}}), "  ", "  ", "2");
    for (const fit::ServeCard* card : cards) {
      out_ += "  " + pad(card->name, first) + "  ";
      out_ += coloured(pad(say(card->fits ? "fit.fits" : "fit.fits_not"), outcome),
                       card->fits ? "32" : "31");
      out_ += "  " + right(thousands(card->max_context), columns(context)) + "  " +
              right(thousands(card->max_sequences), columns(sequences)) + "\n";
    }
    if (large != 0) flow(say("serve.more_large", {{"count", thousands(large)}}), "  ", "  ", "2");
  }

  void details(const fit::ServeCard& card) {
    heading(card.name);
    if (card.budget != 0)
      flow(say(answer_.engine == fit::Engine::sglang ? "serve.takes_apart" : "serve.takes",
               {{"budget", gib(card.budget)},
                {"weights", gib(answer_.weights.gpu_bytes)},
                {"activation", gib(card.step.activation.usual)},
                {"activation_upper", gib(card.step.activation.upper)},
                {"other", gib(card.step.other.usual)},
                {"other_upper", gib(card.step.other.upper)},
                {"available", gib(card.cache_available)},
                {"needed", gib(card.cache_needed)}}),
           "  ", "  ");
    if (!card.message.empty()) {
      const bool half = card.refused && card.refused->id == "half";
      flow(say(half ? "serve.prints_half" : "serve.prints",
               {{"engine", engine_title(answer_.engine)}}),
           "  ", "  ");
      flow(card.message, "    ", "    ", "2");
    }
    if (card.fp8_context != 0)
      flow(say("serve.fp8", {{"context", thousands(card.fp8_context)}}), "  ", "  ");
    start(card);
  }

  void start(const fit::ServeCard& card) {
    const std::string command = serve_command(answer_.engine, answer_.served, card.flags);
    if (card.refused) {
      flow(say("serve.refused." + card.refused->id, card.refused->args), "  ", "  ");
      return;
    }
    if (card.started_context == 0) {
      flow(say("serve.nothing",
               {{"context", thousands(std::min(answer_.context, fit::k_serve_least_context))}}),
           "  ", "  ");
      return;
    }
    if (command.empty()) {
      flow(say(card.fits ? "serve.loads" : "serve.most",
               {{"context", thousands(card.started_context)},
                {"sequences", thousands(card.started_sequences)}}),
           "  ", "  ");
      return;
    }
    const char* key = card.fits                                ? "serve.start"
                      : card.gpu_layers != 0                   ? "serve.start_part"
                      : card.started_context < answer_.context ? "serve.start_shorter"
                                                               : "serve.start_fewer";
    labelled(
        say("part.next") + say("colon"),
        say(key, {{"context", thousands(card.started_context)},
                  {"layers", thousands(card.gpu_layers)},
                  {"started", thousands(card.started_sequences)},
                  {"sequences", thousands(std::min(card.max_sequences, card.started_sequences))}}));
    out_ += "      " + coloured(command, "1") + "\n";
  }

  void warnings() {
    if (answer_.warnings.empty()) return;
    heading(say("fit.heading.warnings"));
    for (const auto& warning : answer_.warnings)
      flow(fit_serve_warning(warning, knowledge_, style_.lang), "  - ", "    ");
  }

  const FitServeView& view_;
  const fit::ServeAnswer& answer_;
};

}  // namespace

std::string fit_serve_text(const FitServeView& view, const Style& style) {
  return ServePainter(view, style).paint();
}

std::string fit_serve_warning(const std::pair<std::string, std::string>& warning,
                              const knowledge::Knowledge& knowledge, std::string_view lang) {
  return label(knowledge, lang, "serve.warning." + warning.first,
               {{"detail", printable(warning.second)}});
}

std::string serve_command(fit::Engine engine, const std::string& model,
                          const std::vector<std::string>& flags) {
  std::string out;
  switch (engine) {
    case fit::Engine::vllm:
      out = "vllm serve ";
      break;
    case fit::Engine::sglang:
      out = "python3 -m sglang.launch_server --model-path ";
      break;
    case fit::Engine::llama_cpp:
      out = "llama-server -m ";
      break;
    default:
      return {};
  }
  out += shell_word(model);
  for (const std::string& word : flags) out += " " + shell_argument(word);
  return out;
}

}  // namespace cufit::report
