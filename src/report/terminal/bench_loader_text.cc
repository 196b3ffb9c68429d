// SPDX-License-Identifier: Apache-2.0
// What `cufit bench loader` found, on a terminal: the verdict, both times, each number of workers, what the host has, a step.
#include <cmath>
#include <map>

#include "base/format.h"
#include "report/bench_loader.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using Verdict = resolve::LoaderAdvice::Verdict;

std::string milliseconds(double seconds) {
  const double value = seconds * 1000;
  return value >= 100  ? format("{:.0f} ms", value)
         : value >= 10 ? format("{:.1f} ms", value)
                       : format("{:.2f} ms", value);
}

class BenchLoaderPainter : private TerminalWriter {
 public:
  BenchLoaderPainter(const BenchLoaderView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    verdict();
    as_it_is();
    counts();
    end();
    host();
    out_ += "\n";
    step();
    return finish();
  }

 private:
  void verdict() {
    static constexpr const char* k_keys[] = {"not_told", "fed",  "unsteady",
                                             "restarts", "more", "host_bound"};
    const resolve::LoaderAdvice& advice = view_.advice;
    const bool fed = advice.verdict == Verdict::fed;
    flow(say(format("loader.verdict.{}", k_keys[static_cast<int>(advice.verdict)]),
             {{"loader", milliseconds(advice.loader_seconds)},
              {"step", milliseconds(advice.step_seconds)},
              {"best", milliseconds(advice.best_seconds)},
              {"start", milliseconds(advice.start_seconds)},
              {"batches", thousands(view_.answer.batches.value_or(0))},
              {"waited", format("{:.0f}", advice.waited * 100)},
              {"workers", std::to_string(advice.workers.value_or(view_.answer.num_workers))}}),
         "", "  ", fed ? "1;32" : "1;33");
  }

  std::string word(bool value) const { return value ? "True" : "False"; }

  void as_it_is() {
    const formats::LoaderAnswer& answer = view_.answer;
    flow(say("loader.as_it_is",
             {{"place", answer.place.empty() ? say("loader.no_place") : printable(answer.place)},
              {"dataset", printable(answer.dataset)},
              {"batch", answer.batch_size ? thousands(*answer.batch_size) : "?"},
              {"bytes", gib(answer.batch_bytes)},
              {"workers", std::to_string(answer.num_workers)},
              {"pin", word(answer.pin_memory)},
              {"persistent", word(answer.persistent_workers)},
              {"prefetch",
               answer.prefetch_factor ? std::to_string(*answer.prefetch_factor) : "None"}}),
         "  ", "    ");
    const double loop = answer.wait_seconds + answer.work_seconds;
    if (answer.watched_batches > 0 && loop > 0)
      flow(say("loader.watched", {{"batches", thousands(answer.watched_batches)},
                                  {"waited", format("{:.0f}", view_.advice.waited * 100)}}),
           "  ", "    ");
    if (answer.step_seconds)
      flow(say("loader.step",
               {{"step", milliseconds(*answer.step_seconds)}, {"steps", thousands(answer.steps)}}),
           "  ", "    ");
    if (answer.optimizer_steps == 0) mark("loader.no_optimizer");
    if (!answer.other_loaders.empty())
      mark("loader.others", {{"places", printable(join(answer.other_loaders, ", "))}});
  }

  void mark(const std::string& key, const std::map<std::string, std::string>& args = {}) {
    flow(say(key, args), "  ! ", "    ", "33");
  }

  // Why some of the lines above are missing.
  void end() {
    if (!view_.end) return;
    const std::optional<uint64_t>& trying = view_.answer.trying;
    mark(std::string("loader.") + (view_.end->timed_out ? "timed_out" : "ended") +
             (trying ? "_trying" : ""),
         {{"code", std::to_string(view_.end->code)},
          {"workers", std::to_string(trying.value_or(0))}});
  }

  void counts() {
    if (view_.answer.alone.empty()) return;
    heading(say("loader.alone"));
    for (const formats::LoaderAlone& one : view_.answer.alone) {
      std::string line = "  " + right(std::to_string(one.workers), 4) + "  ";
      if (one.seconds)
        line += right(milliseconds(*one.seconds), 10) + "  " +
                right(format("{:.1f}", 1 / std::max(*one.seconds, 1e-9)), 8) + " " +
                say("loader.batches_a_second");
      else
        line += say("loader.too_few");
      if (one.first_seconds)
        line += "  " + say("loader.first", {{"seconds", milliseconds(*one.first_seconds)}});
      if (one.workers == view_.answer.num_workers) line += "  " + say("loader.own");
      out_ += line + "\n";
      if (!one.error.empty()) flow(printable(one.error), "        ", "        ", "31");
    }
  }

  void host() {
    const resolve::LoaderHost& host = view_.host;
    out_ += "\n";
    flow(say(host.cpu_limit ? "loader.host_limit" : "loader.host",
             {{"cpus", host.cpus ? thousands(*host.cpus) : "?"},
              {"limit", format("{:g}", host.cpu_limit.value_or(0))},
              {"shm", host.shm_bytes ? gib(*host.shm_bytes) : "?"}}),
         "  ", "    ");
    if (view_.answer.processes > 1)
      mark("loader.processes", {{"count", std::to_string(view_.answer.processes)}});
    if (view_.advice.may_repeat_samples) mark("loader.iterable");
    if (view_.advice.shm_is_small)
      mark("loader.small_shm",
           {{"need", gib(view_.advice.shm_bytes)}, {"shm", gib(host.shm_bytes.value_or(0))}});
  }

  void step() {
    const std::string words = resolve::loader_arguments(view_.advice);
    const std::string place =
        view_.answer.place.empty() ? say("loader.no_place") : printable(view_.answer.place);
    const Verdict verdict = view_.advice.verdict;
    if (!words.empty())
      next({{false, say(verdict == Verdict::host_bound ? "loader.set_host_bound"
                        : verdict == Verdict::restarts ? "loader.set_restarts"
                                                       : "loader.set",
                        {{"place", place}})},
            {true, words}});
    else if (verdict == Verdict::not_told)
      next({{false, say(view_.end ? "loader.run_it" : why_not_timed())}});
    else if (verdict == Verdict::fed)
      next({{false, say("loader.keep")}});
    else
      next({{false, say(verdict == Verdict::unsteady ? "loader.bursts" : "loader.cheaper")}});
  }

  // More time helps only where too few batches came.
  const char* why_not_timed() const {
    for (const formats::LoaderAlone& one : view_.answer.alone) {
      if (one.workers != view_.answer.num_workers || one.seconds) continue;
      if (!one.error.empty()) return "loader.alone_failed";
      if (one.batches == 0) return "loader.once";
    }
    return "loader.longer";
  }

  const BenchLoaderView& view_;
};

}  // namespace

std::string bench_loader_text(const BenchLoaderView& view, const Style& style) {
  return BenchLoaderPainter(view, style).paint();
}

}  // namespace cufit::report
