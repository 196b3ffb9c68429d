// SPDX-License-Identifier: Apache-2.0
#include "report/fit_plans.h"

#include <algorithm>

#include "base/format.h"
#include "report/terminal/fit_words.h"
#include "report/terminal/fit_plan_lines.h"
#include "report/terminal/mem_words.h"
#include "report/error_translation.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_size = 12, k_time = 8;

const fit::PlanOnCard* on_card(const fit::Plans& plans, size_t plan, size_t card) {
  for (const fit::PlanOnCard& row : plans.on_cards)
    if (row.plan == plan && row.card == card) return &row;
  return nullptr;
}

int64_t headroom(const fit::PlansAnswer& plans, const fit::TrainingPlan& plan, size_t card) {
  return static_cast<int64_t>(plans.usable[card]) - static_cast<int64_t>(plan.peak_reserved_upper) -
         static_cast<int64_t>(plans.programs[plan.program].more_outside);
}

// As links are named: powers of ten.
std::string gigabytes(double bytes_per_second) {
  const double rate = bytes_per_second / 1e9;
  return rate < 10 ? format("{:.1f}", rate) : thousands(static_cast<uint64_t>(rate + 0.5));
}

std::string signed_size(int64_t bytes) {
  return bytes < 0 ? "-" + gib(static_cast<uint64_t>(-bytes)) : gib(static_cast<uint64_t>(bytes));
}

class PlansPainter : private TerminalWriter {
 public:
  PlansPainter(const FitView& view, const Style& style)
      : TerminalWriter(view.knowledge, style),
        view_(view),
        plans_(*view.answer.plans),
        shown_(plans_.plans.shown()) {}

  std::string paint() {
    const uint64_t samples = plans_.plans.samples;
    heading(say(counted("fit.heading.plans", samples), {{"samples", thousands(samples)}}));
    table();
    cheapest();
    lines();
    flow(say(plans_.speed_known ? "fit.plan.time" : "fit.plan.time_other",
             {{"card", plans_.speed_card}}),
         "  ", "  ", "2");
    if (plans_.world > 1) links();
    return std::move(out_);
  }

 private:
  // What the ranks do, and whose rates were taken.
  void links() {
    flow(say(plans_.measured ? "fit.plan.links"
             : plans_.nvlink ? "fit.plan.links_nvlink"
                             : "fit.plan.links_pcie",
             {{"world", thousands(plans_.world)},
              {"rate", thousands(plans_.network_gbits)},
              {"batches", thousands(plans_.plans.samples * plans_.world)}}),
         "  ", "  ", "2");
    const std::string rate = gigabytes(plans_.node_rate);
    if (!plans_.measured) {
      flow(say("fit.plan.rates_table", {{"rate", rate}}), "  ", "  ", "2");
      return;
    }
    const fit::MeasuredLinks& measured = *plans_.measured;
    flow(say(measured.gpu.empty() ? "fit.plan.rates_measured" : "fit.plan.rates_measured_on",
             {{"rate", rate},
              {"gpus", thousands(measured.gpus)},
              {"gpu", printable(measured.gpu)},
              {"path", printable(measured.file)}}),
         "  ", "  ", "2");
  }

  const fit::TrainingPlan& plan(size_t number) const { return plans_.plans.plans[number]; }

  // "tp:2" in words.
  std::string switch_name(const std::string& change) const {
    if (change == "fsdp:no-reshard") return say("fit.plan.switch.fsdp_kept");
    const size_t colon = change.find(':');
    if (colon == std::string::npos) return say("fit.plan.switch." + change);
    return say("fit.plan.switch." + change.substr(0, colon),
               {{"degree", printable(change.substr(colon + 1))}});
  }

  std::string name_of(const fit::TrainingPlan& plan) const {
    std::string text;
    const auto add = [&](const std::string& change) {
      text += (text.empty() ? "" : " + ") + switch_name(change);
    };
    for (const std::string& change : plans_.programs[plan.program].switches) add(change);
    if (plan.expandable_segments) add("expandable_segments");
    if (!text.empty()) return text;
    return say(plan.changes == 0 ? "fit.plan.as_it_is" : "fit.plan.otherwise_as_it_is");
  }

  void table() {
    const bool card = !plans_.cards.empty();
    std::string head = "     " + right(say("fit.plan.column.time"), k_time) +
                       right(say("fit.column.upper"), k_size);
    if (card) head += right(say("fit.plan.column.headroom"), k_size);
    if (plans_.world > 1) head += right(say("fit.plan.column.sent"), k_size);
    head += right(say("fit.plan.column.batch"), k_size) + "  " + say("fit.plan.column.plan");
    out_ += coloured(head, "1") + "\n";
    for (size_t i = 0; i < shown_.size(); ++i) {
      const fit::TrainingPlan& row = plan(shown_[i]);
      std::string text = right(std::to_string(i + 1), 4) + " ";
      text += right(row.relative_time > 0 ? format("x {:.2f}", row.relative_time) : "-", k_time);
      text += right(gib(row.peak_reserved_upper), k_size);
      const fit::PlanOnCard* on = card ? on_card(plans_.plans, shown_[i], 0) : nullptr;
      if (card) text += right(signed_size(headroom(plans_, row, 0)), k_size);
      if (plans_.world > 1) text += right(gib(static_cast<uint64_t>(row.sent)), k_size);
      text += right(row.accumulation == 1
                        ? thousands(row.micro_batch)
                        : format("{} x {}", thousands(row.micro_batch), row.accumulation),
                    k_size);
      out_ += coloured(text, on == nullptr ? ""
                             : on->fits    ? "32"
                                           : "31") +
              "  " + name_of(row) + "\n";
    }
    if (card) flow(say("fit.plan.headroom", {{"card", plans_.cards[0]}}), "  ", "  ", "2");
  }

  void cheapest() {
    for (size_t card = 0; card < plans_.cards.size(); ++card) {
      const size_t number = number_of_plan(view_, plans_.cards[card]);
      flow(say(number == 0 ? "fit.plan.none_fits" : "fit.plan.cheapest",
               {{"card", plans_.cards[card]}, {"number", std::to_string(number)}}),
           "  ", "  ");
    }
  }

  // Each change once, with the plans that take it.
  void lines() {
    struct Change {
      PlanLines what;
      std::string numbers;
    };
    std::vector<Change> changes;
    for (size_t i = 0; i < shown_.size(); ++i)
      for (PlanLines& what : plan_lines(plans_, plan(shown_[i]), view_.answer.settings)) {
        const auto same = std::find_if(changes.begin(), changes.end(), [&](const Change& other) {
          return other.what.name == what.name && other.what.lines == what.lines;
        });
        const std::string number = std::to_string(i + 1);
        if (same == changes.end())
          changes.push_back({std::move(what), number});
        else
          same->numbers += say("list") + number;
      }
    for (const Change& change : changes) {
      std::string name = switch_name(change.what.name);
      if (!change.what.at.empty()) name += say("fit.at", {{"source", change.what.at}});
      flow(say("fit.plan.switch_on", {{"what", name}, {"numbers", change.numbers}}), "  ", "  ");
      for (const std::string& line : change.what.lines)
        out_ += "      " +
                coloured(reworded(line, "report.fit.plan.line.", style_.lang, knowledge_), "1") +
                "\n";
    }
  }

  const FitView& view_;
  const fit::PlansAnswer& plans_;
  const std::vector<size_t> shown_;
};

Json lines_json(const fit::PlansAnswer& plans, const fit::TrainingPlan& plan,
                const std::string& settings) {
  Json out = Json::array();
  for (const PlanLines& change : plan_lines(plans, plan, settings))
    out.push_back({{"switch", change.name},
                   {"at", change.at.empty() ? Json(nullptr) : Json(change.at)},
                   {"lines", change.lines}});
  return out;
}

Json cards_json(const fit::PlansAnswer& plans, size_t number) {
  Json out = Json::array();
  for (size_t card = 0; card < plans.cards.size(); ++card) {
    const fit::PlanOnCard* on = on_card(plans.plans, number, card);
    if (on == nullptr) continue;
    out.push_back({{"name", plans.cards[card]},
                   {"fits", on->fits},
                   {"headroom_bytes", headroom(plans, plans.plans.plans[number], card)},
                   {"retries", on->retries},
                   {"cheapest", plans.plans.cheapest[card] == std::optional(number)}});
  }
  return out;
}

}  // namespace

std::string fit_plans_text(const FitView& view, const Style& style) {
  if (!view.answer.plans || view.answer.plans->plans.plans.empty()) return {};
  return PlansPainter(view, style).paint();
}

size_t number_of_plan(const FitView& view, const std::string& card) {
  if (!view.answer.plans) return 0;
  const std::vector<size_t> shown = view.answer.plans->plans.shown();
  for (size_t i = 0; i < view.answer.plans->plans.cheapest.size(); ++i) {
    if (view.answer.plans->cards[i] != card || !view.answer.plans->plans.cheapest[i]) continue;
    return static_cast<size_t>(
               std::find(shown.begin(), shown.end(), *view.answer.plans->plans.cheapest[i]) -
               shown.begin()) +
           1;
  }
  return 0;
}

Json fit_plans_json(const FitView& view) {
  Json out = Json::array();
  if (!view.answer.plans) return out;
  const fit::PlansAnswer& plans = *view.answer.plans;
  for (const size_t number : plans.plans.shown()) {
    const fit::TrainingPlan& plan = plans.plans.plans[number];
    Json row;
    row["switches"] = plans.programs[plan.program].switches;
    row["micro_batch"] = plan.micro_batch;
    row["accumulation"] = plan.accumulation;
    row["expandable_segments"] = plan.expandable_segments;
    row["peak_allocated_bytes"] = plan.peak_allocated;
    row["peak_reserved_bytes"] = plan.peak_reserved;
    row["peak_reserved_upper_bytes"] = plan.peak_reserved_upper;
    row["headroom_bytes"] = plans.cards.empty() ? Json(nullptr) : Json(headroom(plans, plan, 0));
    row["relative_time"] = plan.relative_time > 0 ? Json(plan.relative_time) : Json(nullptr);
    row["time_card"] = plans.speed_card;
    if (plans.world > 1) {
      row["sent_bytes"] = static_cast<uint64_t>(plan.sent);
      row["link_bytes_per_second"] = static_cast<uint64_t>(plans.node_rate);
      row["link_rate_measured"] = plans.measured.has_value();
    }
    row["as_it_is"] = number == plans.plans.as_it_is;
    row["pareto"] = plan.frontier;
    row["gpus"] = cards_json(plans, number);
    row["changes"] = lines_json(plans, plan, view.answer.settings);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace cufit::report
