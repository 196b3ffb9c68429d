// SPDX-License-Identifier: Apache-2.0
#include "report/page/mem_view.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/format.h"
#include "report/page/mem_view_columns.h"
#include "report/page/page_files.h"
#include "report/terminal/width.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

// In the order in which they need each other.
constexpr const char* k_scripts[] = {
    "columns.js", "words.js",    "rows.js",     "levels.js",   "axis.js",   "canvas.js",
    "areas.js",   "timeline.js", "overview.js", "segments.js", "stacks.js", "panel.js",
    "state.js",   "pointer.js",  "keys.js",     "main.js",
};

constexpr std::string_view k_texts = "view.";
constexpr std::string_view k_reasons = "report.mem.";
constexpr std::string_view k_not_modelled =
    "report.mem.not_modelled.";  // and an id of memory/replay/replay_limitations.h

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// JSON that no HTML parser takes for the end of its script: "<" stands only inside of strings.
std::string script_json(const Json& json) {
  std::string out;
  for (const char c : json.dump()) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

Json texts_json(const knowledge::Knowledge& knowledge) {
  Json en = Json::object(), zh = Json::object();
  for (const knowledge::TextPair& text : knowledge.messages) {
    std::string_view key = text.key;
    if (starts_with(key, k_texts)) {
      key.remove_prefix(k_texts.size());
    } else if (starts_with(key, k_not_modelled)) {
      key.remove_prefix(k_reasons.size());
    } else {
      continue;
    }
    en[std::string(key)] = std::string(text.en);
    zh[std::string(key)] = std::string(text.zh);
  }
  return {{"en", std::move(en)}, {"zh", std::move(zh)}};
}

Json space_json(const analysis::FreeSpace& space) {
  return {{"bytes", space.bytes}, {"largest", space.largest}, {"pieces", space.pieces}};
}

Json ooms_json(const std::vector<analysis::OomMoment>& ooms) {
  Json out = Json::array();
  for (const analysis::OomMoment& oom : ooms) {
    Json row = {{"event", oom.event},
                {"rounded_bytes", oom.rounded_bytes},
                {"segment_bytes", oom.segment_bytes},
                {"allocated", oom.allocated},
                {"pending", oom.pending},
                {"reserved", oom.reserved},
                {"free", space_json(oom.free)},
                {"usable", space_json(oom.usable)}};
    row["device_free"] = oom.device_free ? Json(*oom.device_free) : Json(nullptr);
    out.push_back(std::move(row));
  }
  return out;
}

Json what_ifs_json(const std::vector<analysis::WhatIf>& what_ifs) {
  Json out = Json::array();
  for (const analysis::WhatIf& what_if : what_ifs) {
    Json row = {{"settings", printable(what_if.settings)},
                {"as_recorded", what_if.as_recorded},
                {"peak_reserved_bytes", what_if.result.stats.reserved_bytes.peak},
                {"not_modelled", what_if.result.replay_limitations}};
    row["within_limit"] =
        what_if.within_limit ? Json(analysis::to_string(*what_if.within_limit)) : Json(nullptr);
    out.push_back(std::move(row));
  }
  return out;
}

Json meta_json(const MemView& page, const std::string& lang, const MemViewColumns& columns) {
  const analysis::View& view = page.view;
  Json meta;
  meta["version"] = CUFIT_VERSION;
  meta["lang"] = lang == "zh" ? "zh" : "en";
  meta["file"] = printable(page.file);
  meta["device"] = view.device;
  meta["devices"] = page.snapshot.traces.size();
  meta["events"] = view.events;
  meta["settings"] = printable(view.settings);
  meta["sizes_are_exact"] = view.lifetimes.sizes_are_exact;
  meta["first_step"] = view.steps.first;
  meta["finished_steps"] = view.steps.finished;
  meta["fan_out"] = analysis::k_fan_out;
  meta["bucket_events"] = view.by_kind.levels.front().bucket_events;
  meta["level_sizes"] = Json::array();
  for (const analysis::Level& level : view.by_kind.levels)
    meta["level_sizes"].push_back(level.max.size());
  meta["kinds"] = view.kinds.keys;
  meta["stack_groups"] = columns.stack_groups;
  meta["initial_rows"] = view.lifetimes.initial;
  meta["initial_segments"] = columns.initial_segments;
  meta["streams"] = columns.streams;
  meta["ooms"] = ooms_json(view.ooms);
  meta["what_ifs"] = what_ifs_json(view.what_ifs);
  meta["chunks"] = {{"overview", columns.overview.directory()},
                    {"detail", columns.detail.directory()},
                    {"stacks", columns.stacks.directory()}};
  meta["texts"] = texts_json(page.knowledge);
  return meta;
}

// Replaces each {{name}} once; what is put in is not searched again.
std::string fill_page(std::string_view page,
                      const std::map<std::string, std::string, std::less<>>& parts) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const size_t open = page.find("{{", at);
    const size_t close = open == std::string_view::npos ? open : page.find("}}", open);
    if (close == std::string_view::npos) {
      out += page.substr(at);
      break;
    }
    out += page.substr(at, open - at);
    const auto part = parts.find(page.substr(open + 2, close - open - 2));
    if (part != parts.end()) out += part->second;
    at = close + 2;
  }
  return out;
}

}  // namespace

std::string mem_view_html(const MemView& page, const std::string& lang) {
  const MemViewColumns columns = mem_view_columns(page.view, page.snapshot);
  std::string script;
  for (const char* name : k_scripts) script += page_file(name);
  std::map<std::string, std::string, std::less<>> parts;
  parts["lang"] = lang == "zh" ? "zh-CN" : "en";
  parts["title"] = escape(printable(page.file) + " - cufit mem view");
  parts["noscript"] = escape(page.knowledge.message("view.noscript", lang));
  parts["style"] = page_file("mem_view.css");
  parts["script"] = std::move(script);
  parts["meta"] = script_json(meta_json(page, lang, columns));
  parts["overview"] = columns.overview.packed();
  parts["detail"] = columns.detail.packed();
  parts["stacks"] = columns.stacks.packed();
  return fill_page(page_file("mem_view.html"), parts);
}

}  // namespace cufit::report
