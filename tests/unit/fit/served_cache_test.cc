// SPDX-License-Identifier: Apache-2.0
// The model of an engine's cache and of its largest step against what engines print in public logs:
// tests/fit/serve/public_logs.tsv, numbers alone, each with the address where it was read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "fit/serve/step_memory.h"
#include "fit/serve/weights.h"

namespace cufit::fit {
namespace served_cache_test {

constexpr double k_gib = 1073741824;

struct Log {
  std::map<std::string, std::string> text;
  double number(const std::string& column) const {
    const auto found = text.find(column);
    return found == text.end() || found->second == "-" ? -1 : std::stod(found->second);
  }
  uint64_t whole(const std::string& column, uint64_t otherwise) const {
    const double value = number(column);
    return value < 0 ? otherwise : static_cast<uint64_t>(value);
  }
};

std::vector<std::string> cut(const std::string& line) {
  std::vector<std::string> out;
  std::stringstream in(line);
  for (std::string part; std::getline(in, part, '\t');) out.push_back(part);
  return out;
}

std::vector<Log> logs() {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/fit/serve/public_logs.tsv");
  std::string line;
  std::vector<std::string> head;
  std::vector<Log> out;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> parts = cut(line);
    if (head.empty()) {
      head = parts;
      continue;
    }
    EXPECT_EQ(parts.size(), head.size()) << line;
    for (size_t i = 0; i < std::min(parts.size(), head.size()); ++i)
      (i == 0 ? out.emplace_back() : out.back()).text[head[i]] = parts[i];
  }
  return out;
}

ServedModel model_of(const Log& log) {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/fit/serve/configs/" + log.text.at("config") + ".json");
  std::stringstream text;
  text << in.rdbuf();
  const auto config = formats::parse_decoder_config(text.str(), log.text.at("config"));
  EXPECT_TRUE(config) << log.text.at("config");
  auto model = served_model(*config, log.text.at("config"));
  EXPECT_TRUE(model) << model.error().what;
  return *model;
}

Engine engine_of(const Log& log) {
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::llama_cpp})
    if (engine_name(engine) == log.text.at("engine")) return engine;
  ADD_FAILURE() << log.text.at("engine");
  return Engine::vllm;
}

CacheUse use_of(const Log& log, const ServedModel& model) {
  return CacheUse(
      model, {engine_of(log), *cache_type(engine_of(log), log.text.at("type")), log.whole("tp", 1),
              log.whole("batched", 8192), log.whole("states", 2), log.whole("flight", 2)});
}

// Errors in percent.
struct Errors {
  std::vector<double> all;
  void add(double got, double printed) { all.push_back(std::abs(got / printed - 1) * 100); }
  double worst() const { return all.empty() ? 0 : *std::max_element(all.begin(), all.end()); }
  double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

void say(const char* what, const Errors& errors) {
  std::printf("%-12s %2zu logs: median %.2f %%, worst %.2f %%\n", what, errors.all.size(),
              errors.median(), errors.worst());
}

TEST(ServedCache, TokensOfPublicLogs) {
  for (const auto& [set, count] : {std::pair("first", 12u), std::pair("last", 8u),
                                   std::pair("unseen", 17u), std::pair("settled", 4u)}) {
    Errors errors;
    for (const Log& log : logs()) {
      if (log.text.at("set") != set || log.number("tokens") < 0 || log.number("cache_gib") < 0)
        continue;
      const ServedModel model = model_of(log);
      const CacheUse use = use_of(log, model);
      const auto cache = static_cast<uint64_t>(log.number("cache_gib") * k_gib);
      // From 0.20 on vLLM counts what its sequences hold together.
      const bool by_sequences = log.text.at("counted") == "sequences";
      const double got = by_sequences ? use.concurrency(cache, log.whole("context", 1)) *
                                            static_cast<double>(log.whole("context", 1))
                                      : static_cast<double>(use.tokens(cache));
      errors.add(got, log.number("tokens"));
      // Printed sizes are rounded to a hundredth of a GiB; of several GPUs the least counts, and
      // another prints.
      if (log.whole("tp", 1) > 1) {
        EXPECT_LT(errors.all.back(), 1.5) << log.text.at("config");
        continue;
      }
      EXPECT_LT(errors.all.back(), 0.1 + 0.5 / log.number("cache_gib"))
          << log.text.at("config") << " " << got << " " << log.number("tokens");
    }
    say(set, errors);
    EXPECT_EQ(errors.all.size(), count);
    EXPECT_LT(errors.median(), 0.2);
  }
}

TEST(ServedCache, SequencesAtOnceOfPublicLogs) {
  Errors errors;
  for (const Log& log : logs()) {
    if (log.number("concurrency") < 0 || log.number("cache_gib") < 0) continue;
    const ServedModel model = model_of(log);
    const auto cache = static_cast<uint64_t>(log.number("cache_gib") * k_gib);
    errors.add(use_of(log, model).concurrency(cache, log.whole("context", 1)),
               log.number("concurrency"));
    if (log.whole("tp", 1) > 1) {  // of several GPUs another one prints
      EXPECT_LT(errors.all.back(), 1.5) << log.text.at("config");
      continue;
    }
    // Both figures are rounded to a hundredth.
    EXPECT_LT(errors.all.back(),
              0.1 + 0.5 / log.number("cache_gib") + 0.5 / log.number("concurrency"))
        << log.text.at("config");
  }
  say("concurrency", errors);
  EXPECT_EQ(errors.all.size(), 28u);
}

// llama.cpp prints the cache that it makes for so many cells and sequences.
TEST(ServedCache, CacheOfLlamaCpp) {
  Errors errors;
  for (const Log& log : logs()) {
    if (log.number("cells") < 0) continue;
    const ServedModel model = model_of(log);
    const double got = static_cast<double>(
        use_of(log, model).bytes(log.whole("cells", 0), log.whole("sequences", 1)));
    errors.add(got, log.number("cache_mib") * 1048576);
    EXPECT_LT(errors.all.back(), 0.01) << log.text.at("config");
  }
  say("llama.cpp", errors);
  EXPECT_EQ(errors.all.size(), 11u);
}

TEST(ServedCache, LargestStepOfPublicLogs) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Errors errors;
  for (const Log& log : logs()) {
    if (log.number("step_gib") < 0) continue;
    const ServedModel model = model_of(log);
    const StepMemory step =
        step_memory(model, Engine::vllm, log.whole("tp", 1),
                    {log.whole("batched", 8192), log.whole("max_seqs", 1024), true}, knowledge);
    const double printed = log.number("step_gib") * k_gib;
    errors.add(static_cast<double>(step.activation.usual), printed);
    EXPECT_LT(errors.all.back(), 15) << log.text.at("config");
    EXPECT_GT(static_cast<double>(step.activation.upper), printed * 0.99) << log.text.at("config");
  }
  say("step", errors);
  EXPECT_EQ(errors.all.size(), 21u);
  EXPECT_LT(errors.median(), 4);
}

TEST(ServedCache, WeightsOfPublicLogs) {
  Errors errors;
  for (const Log& log : logs()) {
    if (log.number("weights_gib") < 0 || log.whole("tp", 1) != 1) continue;
    const ServedModel model = model_of(log);
    const auto got = reckoned_weight_bytes(model, log.text.at("config"));
    if (!got) continue;
    errors.add(static_cast<double>(*got), log.number("weights_gib") * k_gib);
    EXPECT_LT(errors.all.back(), 1.5) << log.text.at("config");
  }
  say("weights", errors);
  EXPECT_EQ(errors.all.size(), 8u);
}

// By hand: 8 layers see all and 40 a window, so five groups of windows stand beside one of all.
TEST(ServedCache, PagesOfGroupsOfLayers) {
  Log log;
  log.text = {{"config", "gemma-3-12b"}, {"engine", "vllm"}, {"type", "auto"}, {"batched", "512"}};
  const ServedModel model = model_of(log);
  const CacheUse use = use_of(log, model);
  const uint64_t block = 8u * 16 * 8192;
  EXPECT_EQ(use.bytes(16, 1), block * (1 + 5 * 2));
  EXPECT_EQ(use.bytes(100000, 1), block * (6250 + 5 * ((1023 + 1024 + 15) / 16 + 1)));
  EXPECT_EQ(use.largest_context(block * 7000, 1, 1u << 20), 16u * (7000 - 5 * 129));
}

// A start of vLLM 0.26 was refused with 256 sequences: the pool had 184 blocks.
TEST(ServedCache, NoMoreSequencesThanBlocksOfStates) {
  Log log;
  log.text = {{"config", "qwen3.8-27b"}, {"engine", "vllm"}, {"type", "auto"}};
  const ServedModel model = model_of(log);
  EXPECT_EQ(use_of(log, model).sequence_limit(static_cast<uint64_t>(8.82 * k_gib)), 184u);
  log.text["config"] = "llama-3.1-8b";
  const ServedModel llama = model_of(log);
  EXPECT_EQ(use_of(log, llama).sequence_limit(static_cast<uint64_t>(8.82 * k_gib)), 0u);
}

// A page of attention grows until it holds a state, and states come in groups of as many layers.
TEST(ServedCache, PagesHoldStates) {
  Log log;
  log.text = {{"config", "qwen3.5-35b-a3b"}, {"engine", "vllm"}, {"type", "fp8"}};
  const ServedModel model = model_of(log);
  const CacheUse use = use_of(log, model);
  EXPECT_EQ(use.page_tokens(), 2096u);
  EXPECT_EQ(use.bytes(1, 1), 10u * 2096 * 1024 * (1 + 3 * 2));
}

// A start of SGLang with 9.48 GiB of both on each of two GPUs printed 186 states, at most 62 sequences.
TEST(ServedCache, StatesOfSglang) {
  Log log;
  log.text = {{"config", "qwen3.5-9b"}, {"engine", "sglang"}, {"type", "auto"}, {"tp", "2"}};
  const ServedModel model = model_of(log);
  EXPECT_EQ(use_of(log, model).most_sequences(static_cast<uint64_t>(9.48 * k_gib), 1), 62u);
}

TEST(ServedCache, PaddingOfLlamaCpp) {
  Log log;
  log.text = {{"config", "llama-3.1-8b"}, {"engine", "llama.cpp"}, {"type", "auto"}};
  const ServedModel model = model_of(log);
  EXPECT_EQ(use_of(log, model).bytes(1, 1), 256u * 131072);
  EXPECT_EQ(use_of(log, model).bytes(257, 2), 2u * 512 * 131072);
  log.text["tp"] = "3";  // the fullest of three has 11 of 32 layers
  EXPECT_EQ(use_of(log, model).bytes(256, 1), 256u * 131072 / 32 * 11);
}

}  // namespace served_cache_test
}  // namespace cufit::fit
