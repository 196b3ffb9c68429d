// SPDX-License-Identifier: Apache-2.0
#include "report/fit_cached.h"

#include <ctime>

#include "base/format.h"
#include "report/json/json_value.h"
#include "report/message.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

std::string made_text(int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts) == 0)
    return "?";
  return text;
}

}  // namespace

std::string fit_cached_text(const FitCachedView& view, const Style& style) {
  const Labels say(view.knowledge, style.lang);
  const Json* upper = view.answer.member("peak_reserved_upper_bytes");
  const Json* batch = view.answer.member("batch");
  const bool known = batch != nullptr && batch->is_number_unsigned();
  std::string out = say(known ? "fit.cached.head" : "fit.cached.head_no_batch",
                        {{"program", printable(view.answer.text_at("program"))},
                         {"upper", gib(upper == nullptr ? 0 : upper->natural())},
                         {"batch", known ? std::to_string(batch->natural()) : ""},
                         {"made", made_text(view.made)}}) +
                    "\n";
  for (const CachedCard& card : view.cards)
    out += "  " +
           say(card.fits() ? "fit.cached.fits" : "fit.cached.too_small",
               {{"card", printable(card.name)},
                {"needs", gib(card.needs)},
                {"usable", gib(card.usable)},
                {"missing", gib(card.fits() ? 0 : card.needs - card.usable)}}) +
           "\n";
  const Json* warnings = view.answer.member("warnings");
  if (warnings != nullptr && warnings->is_array() && warnings->size() > 0)
    out += "  " + say("fit.cached.rests", {{"count", std::to_string(warnings->size())}}) + "\n";
  return out;
}

std::string fit_cached_json(const FitCachedView& view) {
  Json out = view.answer;
  Json cards = Json::array();
  for (const CachedCard& card : view.cards)
    cards.push_back({{"name", card.name},
                     {"needs_bytes", card.needs},
                     {"usable_bytes", card.usable},
                     {"fits", card.fits()}});
  Json cached;
  cached["made"] = view.made;
  cached["files"] = view.files;
  cached["gpus"] = std::move(cards);
  out["cached"] = std::move(cached);
  return out.dump(2) + "\n";
}

std::string fit_not_cached_json(const std::string& program, const std::string& why) {
  Json error;
  error["kind"] = "not_cached";
  error["detail"] = why;
  error["source"] = nullptr;
  error["exit_code"] = 0;
  error["batch"] = nullptr;
  error["learned"] = {{"torch", nullptr},
                      {"found_batch", nullptr},
                      {"steps", 0},
                      {"storages", 0},
                      {"peak_allocated_bytes", 0}};
  Json out;
  out["schema"] = "cufit.fit/1";
  out["cufit"] = CUFIT_VERSION;
  out["program"] = program;
  out["error"] = std::move(error);
  out["warnings"] = Json::array();
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
