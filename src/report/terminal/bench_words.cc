// SPDX-License-Identifier: Apache-2.0
// Sentences of `cufit bench` that the text and the page share.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/bench.h"
#include "report/message.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;
using resolve::Difference;

// Reached under load, it is how a GPU is meant to run.
constexpr std::string_view k_usual_reasons[] = {"sw_power_cap"};

std::string percent(double ratio) { return format("{:.1f}", std::abs(ratio - 1) * 100); }

// Of a faster one, so above 1.
std::map<std::string, std::string> percents(const resolve::Interval& ratio) {
  return {{"percent", percent(ratio.middle)},
          {"low", percent(ratio.low)},
          {"high", percent(ratio.high)}};
}

std::string throttle_names(const BenchView& view, const std::string& lang) {
  std::vector<std::string> ids, names;
  for (const BenchCase& one : view.result.cases)
    for (const BenchRun& run : one.runs)
      ids.insert(ids.end(), run.throttle.begin(), run.throttle.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const std::string& id : ids)
    if (std::find(std::begin(k_usual_reasons), std::end(k_usual_reasons), id) ==
        std::end(k_usual_reasons))
      names.push_back(label(view.knowledge, lang, "top.throttle." + id));
  return join(names, label(view.knowledge, lang, "list"));
}

}  // namespace

std::string four_digits(double value) {
  if (value >= 1000) return thousands(static_cast<uint64_t>(std::llround(std::min(value, 1e18))));
  return value >= 100  ? format("{:.1f}", value)
         : value >= 10 ? format("{:.2f}", value)
         : value >= 1  ? format("{:.3f}", value)
                       : format("{:.4g}", value);
}

std::string side_name(const BenchCase& one, const BenchRun& run, const BenchView& view) {
  const std::string name = printable(view.result.environments[run.environment].name);
  for (const BenchRun& other : one.runs)
    if (other.precision != run.precision) return name + ", " + run.precision;
  return name;
}

std::string bench_device(const BenchView& view, const std::string& lang) {
  for (const resolve::BenchEnvironment& env : view.result.environments)
    if (env.hello.gpu)
      return label(view.knowledge, lang,
                   view.result.driver.empty() ? "bench.gpu_bare" : "bench.gpu",
                   {{"name", printable(env.hello.gpu->name)},
                    {"capability", printable(env.hello.gpu->capability)},
                    {"driver", printable(view.result.driver)}});
  return view.result.device == "cpu"
             ? label(view.knowledge, lang, "bench.cpu")
             : label(view.knowledge, lang, "bench.no_gpu", {{"number", view.result.device}});
}

std::string bench_heading(const BenchCase& one, const BenchView& view, const std::string& lang) {
  for (const BenchRun& run : one.runs) {
    if (run.loaded.batch == 0) continue;
    const bool same =
        side_name(one, run, view) == printable(view.result.environments[run.environment].name);
    return label(view.knowledge, lang,
                 same && !run.precision.empty() ? "bench.case_precision" : "bench.case",
                 {{"workload", printable(one.workload)},
                  {"precision", run.precision},
                  {"batch", thousands(run.loaded.batch)},
                  {"shape", printable(run.loaded.shape)}});
  }
  return printable(one.workload);
}

std::string bench_trouble(const formats::BenchRefusal& trouble, const BenchView& view,
                          const std::string& lang) {
  return label(view.knowledge, lang, "bench.trouble." + trouble.kind,
               {{"why", printable(trouble.why)}, {"device", view.result.device}});
}

std::string bench_verdict(const BenchCase& one, const BenchView& view, const std::string& lang) {
  const std::vector<size_t> fastest = resolve::fastest_of(one);
  if (fastest.empty()) return {};
  const auto measured = std::count_if(one.runs.begin(), one.runs.end(),
                                      [](const BenchRun& run) { return run.rate.has_value(); });
  if (measured < 2) return {};
  std::map<std::string, std::string> args{{"fast", side_name(one, one.runs[fastest[0]], view)}};
  if (fastest.size() > 1) {
    std::vector<std::string> names;
    for (const size_t i : fastest) names.push_back(side_name(one, one.runs[i], view));
    args["names"] = join(names, label(view.knowledge, lang, "list"));
    if (names.size() == static_cast<size_t>(measured)) {
      const auto two = resolve::comparison_of(one, fastest[1], fastest[0]);
      if (measured > 2 || !two) return label(view.knowledge, lang, "bench.none_of_all", args);
      args["ratio"] = format("{:.3f}", two->ratio.middle);
      args["low"] = format("{:.3f}", two->ratio.low);
      args["high"] = format("{:.3f}", two->ratio.high);
      args["slow"] = side_name(one, one.runs[fastest[1]], view);
      return label(view.knowledge, lang, "bench.none", args);
    }
    return label(view.knowledge, lang, "bench.fast_together", args);
  }
  // The nearest of those that it beats; of others it is not known by how much.
  std::optional<resolve::BenchComparison> nearest;
  for (size_t i = 0; i < one.runs.size(); ++i) {
    const auto two = resolve::comparison_of(one, i, fastest[0]);
    if (two && two->difference == Difference::faster &&
        (!nearest || two->ratio.middle < nearest->ratio.middle))
      nearest = two;
  }
  if (!nearest) return {};
  args.merge(percents(nearest->ratio));
  args["slow"] = side_name(one, one.runs[nearest->base], view);
  return label(view.knowledge, lang, measured > 2 ? "bench.faster_than_next" : "bench.faster",
               args);
}

std::vector<std::string> bench_marks(const BenchView& view, const std::string& lang) {
  std::vector<std::string> out;
  const auto say = [&](const char* key, const std::map<std::string, std::string>& args) {
    out.push_back(label(view.knowledge, lang, key, args));
  };
  for (const resolve::BenchNeighbour& other : view.result.neighbours)
    say("bench.mark.neighbour",
        {{"pid", std::to_string(other.pid)},
         {"command", other.command.empty() ? "?" : printable(other.command)},
         {"memory", other.memory_bytes ? gib(*other.memory_bytes) : "?"}});
  if (const std::string names = throttle_names(view, lang); !names.empty())
    say("bench.mark.throttle", {{"reasons", names}});
  for (const BenchCase& one : view.result.cases)
    for (const BenchRun& run : one.runs)
      if (run.rate && !run.steady)
        say("bench.mark.unsteady",
            {{"name", side_name(one, run, view)}, {"workload", printable(one.workload)}});
  if (!view.result.no_nvml.empty())
    say("bench.mark.no_nvml", {{"why", printable(view.result.no_nvml)}});
  return out;
}

}  // namespace cufit::report
