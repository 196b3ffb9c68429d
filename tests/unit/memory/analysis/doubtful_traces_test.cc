// SPDX-License-Identifier: Apache-2.0
// What must not be said of traces that prove less than they seem to: cut at the front, with numbers
// that contradict each other, of a card whose size nobody recorded. Made from the real ones.
#include <gtest/gtest.h>

#include "memory/analysis/cause_rules.h"
#include "memory/analysis/diagnosis.h"
#include "traces.h"

namespace cufit::analysis {
namespace doubtful_traces_test {

const Diagnosis& diagnosis(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Diagnosis>> kept;
  std::unique_ptr<Diagnosis>& one = kept[name];
  if (!one) {
    const TestTrace& trace = real_trace(name);
    one =
        std::make_unique<Diagnosis>(diagnose(trace.snapshot, trace.verified, std::nullopt).value());
  }
  return *one;
}

Diagnosis diagnosed(memory::Snapshot snapshot, std::optional<uint64_t> limit = {}) {
  const TestTrace trace = test_trace(std::move(snapshot));
  return diagnose(trace.snapshot, trace.verified, limit).value();
}

memory::TraceEvent& oom_of(memory::Snapshot& snapshot) {
  size_t at = 0;
  for (size_t i = 0; i < snapshot.events.size(); ++i)
    if (snapshot.events[i].action == memory::Action::oom) at = i;
  return snapshot.events[at];
}

// As a ring buffer that kept only the last part.
memory::Snapshot without_beginning(const char* name, size_t percent) {
  memory::Snapshot snapshot = read_trace(name);
  memory::Trace& trace = snapshot.traces[0];
  const size_t lost = trace.count * percent / 100;
  trace.first += lost;
  trace.count -= lost;
  return snapshot;
}

const Cause* find_cause(const Diagnosis& one, const char* id) {
  for (const Cause& cause : one.causes)
    if (cause.id == id) return &cause;
  return nullptr;
}

// A workspace of 32 MiB is no proof of an 80 GB card: newer cards have it, and so has every card
// with CUBLAS_WORKSPACE_CONFIG=:4096:8.
TEST(Diagnosis, AWorkspaceDoesNotProveAnotherProcess) {
  for (const char* name : {"oom/graph_retained", "oom/tensors_kept", "oom/oversized_input"}) {
    memory::Snapshot snapshot = read_trace(name);
    oom_of(snapshot).address = 1u << 20;  // the card is full
    const Diagnosis one = diagnosed(std::move(snapshot));
    ASSERT_FALSE(one.causes.empty()) << name;
    EXPECT_EQ(one.causes[0].id, std::string(name).substr(4)) << name;
    if (const Cause* other = find_cause(one, "other_process")) {
      EXPECT_EQ(other->confidence, Confidence::possible) << name;
    }
  }
}

// What the card gave earlier in the same trace and does not give now, another program has.
TEST(Diagnosis, TheCardGaveMoreBefore) {
  const TestTrace& trace = real_trace("oom/oversized_input");
  const Diagnosis& seen = diagnosis("oom/oversized_input");
  OomCase facts{trace.snapshot,
                trace.verified,
                seen.lifetimes,
                seen.steps,
                seen.categories,
                seen.history,
                seen.oom->request,
                memory::k_no_stack,
                uint64_t{1} << 20,
                seen.oom->instant.moment,
                seen.oom->instant.by_category,
                seen.oom->limits,
                {}};
  EXPECT_FALSE(other_process(facts));
  // The process gave back a half, and the card has none of it.
  facts.at.reserved_bytes /= 2;
  const std::optional<Cause> other = other_process(facts);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->confidence, Confidence::likely);
}

// The model would have served this request; the recording says that it failed, and that counts.
TEST(Diagnosis, ARecordedOutOfMemoryIsReported) {
  memory::Snapshot snapshot = read_trace("oom-varlen");
  oom_of(snapshot).size = 2u << 20;
  const Diagnosis one = diagnosed(std::move(snapshot));
  ASSERT_TRUE(one.oom);
  EXPECT_TRUE(one.oom->served_by_model);
  EXPECT_EQ(one.oom->request.rounded, 2u << 20);
  EXPECT_EQ(one.oom->instant.moment.event, 4428u);
  EXPECT_GE(one.oom->limits.at_most, one.oom->limits.at_least);
  for (const Cause& cause : one.causes) EXPECT_NE(cause.confidence, Confidence::certain);
}

// Nothing but what the last part shows is certain, and nothing is called the first.
TEST(Diagnosis, ATraceThatBeganLateProvesLess) {
  for (const char* name : k_causes)
    for (const size_t percent : {50, 75, 90}) {
      const Diagnosis one = diagnosed(without_beginning(name, percent));
      for (const Cause& cause : one.causes) {
        const bool measured = cause.id == "gpu_quota_limit" || cause.id == "graph_retained" ||
                              cause.id == "tensors_kept";
        EXPECT_TRUE(measured || cause.confidence != Confidence::certain)
            << name << " " << percent << " " << cause.id;
        // Only a function's name says that something evaluates.
        if (cause.id == "eval_without_no_grad" && cause.evidence.size() < 2)
          ADD_FAILURE() << name << " " << percent;
      }
    }
  const Diagnosis stale = diagnosed(without_beginning("oom/stale_reference", 90));
  for (const Cause& cause : stale.causes)
    for (const EvidenceItem& item : cause.evidence) EXPECT_NE(item.id, "first_optimizer_step");
  const Diagnosis graph = diagnosed(without_beginning("oom/graph_retained", 90));
  if (const Cause* cause = find_cause(graph, "fragmentation")) {
    EXPECT_EQ(cause->confidence, Confidence::possible);
  }
}

// One rise of what steps begin with is no proof of growth, but more than none.
TEST(Diagnosis, OneRiseMayBeGrowth) {
  const Diagnosis one = diagnosed(without_beginning("failures/graph", 50));
  ASSERT_FALSE(one.causes.empty());
  EXPECT_EQ(one.causes[0].id, "graph_retained");
  EXPECT_EQ(one.causes[0].confidence, Confidence::possible);
}

// Two models came later, one after three steps and one after six.
TEST(Diagnosis, NamesEachModelThatCameLater) {
  const Cause& cause = diagnosis("oom/stale_reference").causes[0];
  ASSERT_EQ(cause.evidence.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<Number>& numbers = cause.evidence[i].numbers;
    EXPECT_NEAR(static_cast<double>(numbers[0].value) / (1 << 20), 210.3, 0.1);
    EXPECT_EQ(numbers[1].value, 3 * (i + 1));
    EXPECT_NEAR(static_cast<double>(numbers[2].value) / (1 << 20), 630.8, 0.1);
  }
  EXPECT_EQ(diagnosis("oom/stale_reference").history.trend, Trend::jumping);
}

TEST(Diagnosis, InferenceHasNoSteps) {
  EXPECT_FALSE(diagnosis("unseen-generate").steps.known());
  EXPECT_TRUE(diagnosis("failures/evalgrad").evaluates);
}

// More in use than reserved: no difference of the two is a number.
TEST(Diagnosis, ATraceThatContradictsItself) {
  memory::Snapshot snapshot = read_trace("failures/first");
  for (size_t i = 0; i < snapshot.events.size(); ++i)
    if (snapshot.events[i].action == memory::Action::alloc) snapshot.events[i].size <<= 8;
  const Diagnosis one = diagnosed(std::move(snapshot));
  EXPECT_FALSE(one.peak.moment.fits());
  EXPECT_EQ(one.peak.moment.cached_bytes(), 0u);
}

TEST(Diagnosis, WithoutParametersNoWeightsAreTooLarge) {
  memory::Snapshot snapshot = read_trace("oom/weights_exceed_capacity");
  const memory::Trace whole = snapshot.traces[0];
  size_t at = 0;
  while (snapshot.events[whole.first + at].action != memory::Action::oom) ++at;
  snapshot.traces[0].first = whole.first + at;
  snapshot.traces[0].count = 1;
  snapshot.segments.clear();
  EXPECT_EQ(find_cause(diagnosed(std::move(snapshot)), "weights_exceed_capacity"), nullptr);
}

// A limit that is named for a run that lived is replayed.
TEST(Diagnosis, ALimitForARunThatLived) {
  const Diagnosis none = diagnosed(read_trace("varlen"));
  EXPECT_FALSE(none.limits);
  const uint64_t peak = none.peak_reserved_bytes;
  const Diagnosis wide = diagnosed(read_trace("varlen"), 2 * peak);
  EXPECT_EQ(wide.advice[0].survives, std::optional<bool>(true));
  const Diagnosis narrow = diagnosed(read_trace("varlen"), peak / 2);
  ASSERT_TRUE(narrow.limits);
  EXPECT_EQ(narrow.advice[0].survives, std::optional<bool>(false));
  EXPECT_GT(*narrow.advice[0].smallest_limit_bytes, peak / 2);
}

// The last block that is freed before anything else happens becomes a request that failed.
bool refuse_a_passing_block(memory::Snapshot& snapshot, uint64_t least_bytes) {
  using memory::Action;
  memory::TraceEvent *alloc = nullptr, *freed = nullptr, *completed = nullptr;
  for (size_t i = 0; i + 3 < snapshot.events.size(); ++i) {
    memory::TraceEvent& event = snapshot.events[i];
    if (event.action != Action::alloc || event.size < least_bytes) continue;
    if (snapshot.events[i + 1].action != Action::free_requested ||
        snapshot.events[i + 1].address != event.address ||
        snapshot.events[i + 2].action != Action::free_completed ||
        snapshot.events[i + 3].action != Action::alloc)  // asks again at once
      continue;
    alloc = &event;
    freed = &snapshot.events[i + 1];
    completed = &snapshot.events[i + 2];
  }
  if (alloc == nullptr) return false;
  alloc->action = Action::oom;
  alloc->size = uint64_t{1} << 40;
  alloc->address = uint64_t{1} << 30;
  freed->action = completed->action = Action::other;
  return true;
}

// cuDNN asks for a workspace, is refused, and goes on without.
TEST(Diagnosis, AFailureThatALibraryCaught) {
  memory::Snapshot snapshot = read_trace("failures/conv");
  ASSERT_TRUE(refuse_a_passing_block(snapshot, 100u << 20));
  const Diagnosis one = diagnosed(std::move(snapshot));
  ASSERT_TRUE(one.oom);
  EXPECT_EQ(one.ooms, 1u);
  EXPECT_TRUE(one.oom->caught);
  EXPECT_GT(one.oom->requests_later, 0u);
}

// The end of the run is explained, not an attempt before it.
TEST(Diagnosis, TheEndCountsNotWhatWasCaught) {
  int tried = 0;
  std::vector<const char*> names(std::begin(k_causes), std::end(k_causes));
  names.insert(names.end(), std::begin(k_failures), std::end(k_failures));
  for (const char* name : names) {
    const Diagnosis& plain = diagnosis(name);
    memory::Snapshot snapshot = read_trace(name);
    if (!plain.oom || !refuse_a_passing_block(snapshot, 0)) continue;
    ++tried;
    const Diagnosis one = diagnosed(std::move(snapshot));
    ASSERT_TRUE(one.oom) << name;
    EXPECT_EQ(one.ooms, 2u) << name;
    EXPECT_FALSE(one.oom->caught) << name;
    EXPECT_EQ(one.oom->request.event, plain.oom->request.event) << name;
    EXPECT_EQ(one.oom->request.tried, plain.oom->request.tried) << name;
    EXPECT_EQ(one.oom->requests_later, 0u) << name;
  }
  EXPECT_GT(tried, 0);
}

}  // namespace doubtful_traces_test
}  // namespace cufit::analysis
