// SPDX-License-Identifier: Apache-2.0
// What `cufit fit` makes of its options, on a machine that is a folder.
#include <gtest/gtest.h>

#include "base/format.h"
#include "commands/fit/fit.h"
#include "commands/fit/fit_gpus.h"
#include "commands/fit/fit_tracing.h"
#include "support/fake_root.h"
#include "support/trace_writer.h"

namespace cufit::commands {
namespace fit_request_test {

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

template <class T>
std::string usage_error(const Result<T>& got) {
  if (got) return "";
  EXPECT_EQ(got.error().code, Code::usage) << got.error().text();
  return got.error().text();
}

TEST(FitGpus, AreNamesSizesAndAll) {
  const Result<std::vector<fit::Card>> cards =
      asked_cards({"RTX 4090", "24", "all", "16GiB", "RTX 3090"}, tables());
  ASSERT_TRUE(cards) << cards.error().text();
  std::vector<std::string> asked;
  for (const fit::Card& card : *cards)
    if (card.asked) asked.push_back(card.name);
  const auto name = [](const char* typed) { return std::string(tables().find_gpu(typed)->name); };
  EXPECT_EQ(asked.size(), 4u);
  EXPECT_EQ((*cards)[0].name, name("RTX 4090"));
  EXPECT_EQ((*cards)[1].name, "24 GiB");
  EXPECT_EQ((*cards)[1].total, uint64_t{24} << 30);
  EXPECT_GT(cards->size(), 20u);
  EXPECT_TRUE(contains(join(asked, ","), "16GiB"));
  EXPECT_TRUE(contains(join(asked, ","), name("RTX 3090")));  // one of `all`, now asked for
}

// Some boards alone are sold with so much: "Jetson Orin Nano 4GB".
TEST(FitGpus, WithAUnitAreSizes) {
  for (const auto& [typed, gib] : {std::pair("4GiB", 4), std::pair("4 GB", 4), std::pair("24G", 24),
                                   std::pair("141 GiB", 141), std::pair("8gb", 8)}) {
    const Result<std::vector<fit::Card>> cards = asked_cards({typed}, tables());
    ASSERT_TRUE(cards) << cards.error().text();
    ASSERT_EQ(cards->size(), 1u) << typed;
    EXPECT_EQ((*cards)[0].name, typed);
    EXPECT_EQ((*cards)[0].total, uint64_t(gib) << 30) << typed;
  }
}

TEST(FitGpus, RefuseWhatTheTableDoesNotKnow) {
  EXPECT_TRUE(contains(usage_error(asked_cards({"RTX 3091"}, tables())), "nearest: "));
  EXPECT_TRUE(contains(usage_error(asked_cards({"3091"}, tables())), "no card has so many GiB"));
  EXPECT_NE(usage_error(asked_cards({"24 bananas"}, tables())), "");
  EXPECT_TRUE(asked_cards({"1024"}, tables()));  // 1 TiB
}

TEST(FitRecordings, BesideAProgramAreOne) {
  const Result<RecordingAt> one = recording_beside_program({{"a.pickle"}, {"16"}});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->path, "a.pickle");
  EXPECT_EQ(one->batch, 16u);
  for (const FitRecordingsRequest& wrong :
       {FitRecordingsRequest{{"a"}, {}}, FitRecordingsRequest{{"a", "b"}, {"1", "2"}},
        FitRecordingsRequest{{"a"}, {"0"}}, FitRecordingsRequest{{"a"}, {"1048577"}},
        FitRecordingsRequest{{"a"}, {"x"}}})
    EXPECT_NE(usage_error(recording_beside_program(wrong)), "");
}

struct Planned {
  test::FakeRoot root;
  FitProgramRequest program;
  FitModelRequest model;
  TracedGpu gpu{ComputeCapability{8, 6}, "NVIDIA X,8.6,8", "[[86,{}]]"};

  Planned() { program.command = {"python", "my train.py", "--name", "--title=a b"}; }
  Result<TracingPlan> plan() const { return tracing_plan(root.host(), program, model, gpu); }
};

TEST(TracingPlan, HasTheUsualLimits) {
  const Result<TracingPlan> plan = Planned().plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->run.steps, 3u);
  EXPECT_FALSE(plan->run.most_steps);
  EXPECT_EQ(plan->run.seconds, 0u);
  EXPECT_EQ(plan->run.idle_seconds, 600u);
  EXPECT_EQ(plan->run.gpu, "NVIDIA X,8.6,8");
  EXPECT_EQ(plan->run.variant, "");
  EXPECT_EQ(plan->program, "python 'my train.py' --name '--title=a b'");
}

TEST(TracingPlan, TakesNumbersInTheirRange) {
  Planned planned;
  const auto refuses = [&](std::optional<std::string> FitProgramRequest::*option,
                           std::initializer_list<const char*> values) {
    for (const char* value : values) {
      planned.program.*option = value;
      EXPECT_NE(usage_error(planned.plan()), "") << value;
    }
    planned.program.*option = std::nullopt;
  };
  refuses(&FitProgramRequest::steps, {"1", "101", "", "x"});
  refuses(&FitProgramRequest::timeout, {"604801", "-1", "x"});
  refuses(&FitProgramRequest::seq, {"0", "x", "16777217"});
  refuses(&FitProgramRequest::batch_arg, {"", "--batch"});
  refuses(&FitProgramRequest::seq_arg, {"--length {}"});  // it does not say how long
  refuses(&FitProgramRequest::function, {"no_colon"});
  planned.program.steps = "100";
  planned.program.timeout = "0";
  const Result<TracingPlan> plan = planned.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->run.most_steps, 100u);
  EXPECT_EQ(plan->run.seconds, 0u);
}

TEST(TracingPlan, WritesTheLengthOfASequenceIntoTheCommand) {
  Planned planned;
  planned.program.seq = "512";
  EXPECT_EQ(planned.plan()->run.seq, 512u);
  planned.program.seq_arg = "--length {}";
  const Result<TracingPlan> plan = planned.plan();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->run.seq);
  EXPECT_EQ(plan->command.back(), "512");
}

TEST(TracingPlan, OfAFunctionNeedsNoCommand) {
  Planned planned;
  planned.program.command.clear();
  planned.program.function = "train:make_step";
  const Result<TracingPlan> plan = planned.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->command, std::vector<std::string>{"python3"});
  EXPECT_EQ(plan->program, "python3 train:make_step");
  planned.program.batch_arg = "--b {}";
  EXPECT_NE(usage_error(planned.plan()), "");
}

TEST(FitModel, IsToldFromAProgram) {
  test::FakeRoot root;
  root.folder("/model");
  const auto error = [&](std::vector<std::string> command, const FitModelRequest& model = {}) {
    return usage_error(without_model(root.host(), command, model));
  };
  EXPECT_EQ(error({"python", "train.py"}), "");
  EXPECT_TRUE(contains(error({"/model"}), "is a model"));
  EXPECT_TRUE(contains(error({"x.safetensors"}), "is a model"));
  FitModelRequest dtype;
  dtype.dtype = "bf16";
  EXPECT_TRUE(contains(error({"python", "train.py"}, dtype), "`--dtype` goes with a model"));
}

// The whole command over event files of a folder.
struct FitRun {
  test::FakeRoot root;
  std::string out, error;
  int code = 0;

  FitRun& events(const char* path, uint64_t batch) {
    test::TraceWriter trace(batch);
    trace.fact("torch", "2.9.0");
    const uint32_t site = trace.site("mm", formats::TracePhase::forward, "", "train.py:1");
    for (int step = 0; step < 3; ++step) {
      trace.mark(formats::TraceMark::step_begins);
      trace.free(trace.alloc(batch << 28, site));
      trace.mark(formats::TraceMark::step_ends);
    }
    trace.end();
    root.file(path, trace.bytes());
    return *this;
  }
  FitRun& run(std::vector<const char*> words) {
    words.insert(words.begin(), {"cufit", "fit"});
    const host::RealHost machine = root.host();
    out.clear(), error.clear();
    const Surroundings around{machine,
                              machine,
                              tables(),
                              [] { return std::time_t{0}; },
                              {[this](std::string_view text) { return out += text, true; },
                               [this](std::string_view text) { error += text; }}};
    code = commands::run(around, static_cast<int>(words.size()), words.data());
    return *this;
  }
};

TEST(FitRun, AnswersForFilesOfAnyMachine) {
  FitRun fit;
  fit.events("/4.events", 4).events("/8.events", 8);
  EXPECT_EQ(fit.run({"--events", "/4.events", "--events", "/8.events", "--gpu", "24"}).code, k_ok)
      << fit.error;
  EXPECT_TRUE(contains(fit.out, "24 GiB")) << fit.out;
  EXPECT_EQ(fit.error, "");
  EXPECT_EQ(fit.run({"--events", "/4.events", "/8.events", "--gpu", "24", "--batch", "1024"}).code,
            k_findings);
}

TEST(FitRun, SaysWhatItCouldNotAnswer) {
  FitRun fit;
  fit.events("/4.events", 4);
  EXPECT_EQ(fit.run({"--events", "/4.events", "--batch", "8"}).code, k_failed);
  EXPECT_TRUE(contains(fit.error, "8")) << fit.error;
  EXPECT_EQ(fit.run({"--events", "/none.events"}).code, k_failed);
  EXPECT_EQ(fit.run({"--events", "/4.events", "--batch", "0"}).code, k_usage);
  EXPECT_EQ(fit.run({"--events", "/4.events", "--steps", "3"}).code, k_usage);
  EXPECT_EQ(fit.run({"--plan", "--from", "/x", "--batch-was", "8"}).code, k_usage);
  EXPECT_EQ(fit.run({"--batch-was", "8"}).code, k_usage);
}

TEST(FitRun, OfACutOffFileFails) {
  FitRun fit;
  fit.events("/4.events", 4);
  fit.root.file("/cut.events", test::TraceWriter(4).bytes());
  EXPECT_EQ(fit.run({"--events", "/cut.events", "--json"}).code, k_failed);
  EXPECT_TRUE(contains(fit.out, "\"kind\": \"file_cut_off\"")) << fit.out;
  EXPECT_NE(fit.error, "");
}

}  // namespace fit_request_test
}  // namespace cufit::commands
