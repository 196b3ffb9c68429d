// SPDX-License-Identifier: Apache-2.0
// Schema cufit.mem.compare/1: both runs at their peaks of allocated bytes. Members may be added
// within the schema's version, none is renamed or removed.
#include "report/mem_compare.h"
#include "report/json/mem_recorded_json.h"

namespace cufit::report {
namespace {

int64_t grew(uint64_t a, uint64_t b) { return static_cast<int64_t>(b) - static_cast<int64_t>(a); }

Json run_json(const MemRun& run) {
  const analysis::Instant& peak = run.seen.peak;
  Json out;
  out["file"] = run.file;
  out["recorded"] = recorded_json(run.verified);
  out["peak"] = {{"event", peak.moment.event},
                 {"step", peak.step ? Json(*peak.step) : Json(nullptr)},
                 {"allocated_bytes", peak.moment.allocated_bytes},
                 {"reserved_bytes", peak.moment.reserved_bytes}};
  out["peak_reserved_bytes"] = run.seen.peak_reserved_bytes;
  out["oom"] = run.seen.oom.has_value();
  out["steps"] = {{"count", run.seen.steps.known() ? Json(run.seen.steps.finished) : Json(nullptr)},
                  {"known_by", to_string(run.seen.steps.known_by)},
                  {"trend", to_string(run.seen.history.trend)},
                  {"usual_peak_bytes", run.seen.history.usual_peak_bytes}};
  return out;
}

Json change_json(uint64_t a, uint64_t b) {
  return {{"a_bytes", a}, {"b_bytes", b}, {"grew_bytes", grew(a, b)}};
}

Json place_json(const MemCompareView& view, const analysis::PlaceChange& change) {
  const bool in_b = change.has_b;
  const analysis::Place& place = in_b ? change.in_b : change.in_a;
  const memory::Snapshot& snapshot = in_b ? view.b.snapshot : view.a.snapshot;
  Json out;
  out["recorded"] = place.frame != analysis::k_no_frame;
  out["frame"] = nullptr;
  if (place.frame < analysis::k_not_python) {
    const memory::Frame& frame = snapshot.stacks.frame(place.frame);
    out["frame"] = {{"file", snapshot.text(frame.filename)},
                    {"line", frame.line},
                    {"function", snapshot.text(frame.name)}};
  }
  out.update(change_json(change.a_bytes, change.b_bytes));
  return out;
}

}  // namespace

std::string mem_compare_json(const MemCompareView& view) {
  const analysis::Instant &a = view.a.seen.peak, &b = view.b.seen.peak;
  Json out;
  out["schema"] = "cufit.mem.compare/1";
  out["cufit"] = CUFIT_VERSION;
  out["a"] = run_json(view.a);
  out["b"] = run_json(view.b);
  Json difference;
  difference["peak_allocated"] = change_json(a.moment.allocated_bytes, b.moment.allocated_bytes);
  difference["peak_reserved"] =
      change_json(view.a.seen.peak_reserved_bytes, view.b.seen.peak_reserved_bytes);
  difference["by_category"] = Json::array();
  for (size_t i = 0; i < analysis::k_categories; ++i) {
    Json row = {{"category", to_string(static_cast<analysis::Category>(i))}};
    row.update(change_json(a.by_category[i], b.by_category[i]));
    difference["by_category"].push_back(std::move(row));
  }
  difference["by_frame"] = Json::array();
  for (const analysis::PlaceChange& change : view.places)
    difference["by_frame"].push_back(place_json(view, change));
  out["difference"] = std::move(difference);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
