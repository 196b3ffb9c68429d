// SPDX-License-Identifier: Apache-2.0
// The Grafana board of data/dashboard.toml: JSON that Grafana 9 and newer takes as a provisioned
// file. The data source is a variable, so no id of an installation is in it.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "report/export/monitoring.h"
#include "report/report.h"

namespace cufit::report {
namespace {

constexpr uint32_t k_grid_width = 24;
constexpr int k_schema_version = 39;  // of Grafana 10.4; later ones migrate it when they load it

Json data_source() { return {{"type", "prometheus"}, {"uid", "${datasource}"}}; }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string board_expr(std::string_view expr) {
  constexpr std::string_view k_host = "instance=~\"$instance\"";
  return replaced(replaced(std::string(expr), "@gpu@", format("{},gpu=~\"$gpu\"", k_host)),
                  "@host@", k_host);
}

std::string title_of(const MonitoringView& view, std::string_view title, std::string_view zh) {
  return std::string(view.lang == "zh" ? zh : title);
}

// Query A, B, ... of a panel. Tables and single figures ask for now, lines for the range.
Json targets_of(const MonitoringView& view, const knowledge::BoardPanel& panel) {
  Json out = Json::array();
  char ref = 'A';
  const bool range = panel.kind == "lines" || panel.kind == "steps";
  for (const knowledge::BoardQuery& query : view.knowledge.board_queries) {
    if (query.panel != panel.id) continue;
    Json target;
    target["refId"] = std::string(1, ref++);
    target["datasource"] = data_source();
    target["expr"] = board_expr(query.expr);
    target["instant"] = !range;
    target["range"] = range;
    target["format"] = panel.kind == "table" ? "table" : "time_series";
    target["legendFormat"] = std::string(query.legend);
    out.push_back(std::move(target));
  }
  return out;
}

Json custom_lines(bool steps) {
  Json out;
  out["drawStyle"] = "line";
  out["lineInterpolation"] = steps ? "stepAfter" : "linear";
  out["lineWidth"] = 1;
  out["fillOpacity"] = steps ? 20 : 5;
  out["showPoints"] = "never";
  out["spanNulls"] = false;  // a gap is a gap
  return out;
}

// A column of this table: the name that Grafana gives it, or empty.
std::string_view column_field(const knowledge::BoardColumn& column,
                              const knowledge::BoardPanel& panel) {
  const size_t colon = column.field.find(':');
  if (colon == column.field.npos) return column.field;
  return column.field.substr(0, colon) == panel.id ? column.field.substr(colon + 1)
                                                   : std::string_view();
}

// One table of all queries: joined by their labels, columns chosen, ordered and named.
void set_columns(const MonitoringView& view, const knowledge::BoardPanel& panel, Json& out) {
  Json names = Json::array(), order = Json::object(), rename = Json::object();
  Json overrides = Json::array();
  int place = 0;
  for (const knowledge::BoardColumn& column : view.knowledge.board_columns) {
    const std::string field(column_field(column, panel));
    if (field.empty()) continue;
    const std::string title = title_of(view, column.title, column.zh);
    names.push_back(field);
    order[field] = place++;
    rename[field] = title;
    if (column.unit.empty()) continue;
    overrides.push_back(
        {{"matcher", {{"id", "byName"}, {"options", title}}},
         {"properties", Json::array({{{"id", "unit"}, {"value", std::string(column.unit)}}})}});
  }
  Json merge, filter, organize;
  merge["id"] = "merge";
  merge["options"] = Json::object();
  filter["id"] = "filterFieldsByName";
  filter["options"]["include"]["names"] = std::move(names);
  organize["id"] = "organize";
  organize["options"]["indexByName"] = std::move(order);
  organize["options"]["renameByName"] = std::move(rename);
  out["transformations"] = Json::array();
  for (Json* one : {&merge, &filter, &organize}) out["transformations"].push_back(std::move(*one));
  out["fieldConfig"]["overrides"] = std::move(overrides);
}

Json panel_options(const knowledge::BoardPanel& panel) {
  Json out;
  if (panel.kind == "stat") {
    out["reduceOptions"]["calcs"] = Json::array({"lastNotNull"});
    out["reduceOptions"]["fields"] = "";
    out["reduceOptions"]["values"] = false;
    out["graphMode"] = "none";
  } else if (panel.kind == "table") {
    out["showHeader"] = true;
  } else {
    out["legend"] = {{"displayMode", "list"}, {"placement", "bottom"}, {"showLegend", true}};
    out["tooltip"] = {{"mode", "multi"}, {"sort", "desc"}};
  }
  return out;
}

Json panel_json(const MonitoringView& view, const knowledge::BoardPanel& panel, int id) {
  Json out;
  out["id"] = id;
  out["title"] = title_of(view, panel.title, panel.zh);
  if (panel.kind == "row") {
    out["type"] = "row";
    out["collapsed"] = false;
    out["panels"] = Json::array();
    return out;
  }
  const bool lines = panel.kind == "lines" || panel.kind == "steps";
  out["type"] = lines ? "timeseries" : std::string(panel.kind);
  out["datasource"] = data_source();
  out["targets"] = targets_of(view, panel);
  Json& defaults = out["fieldConfig"]["defaults"];
  if (!panel.unit.empty()) defaults["unit"] = std::string(panel.unit);
  if (panel.unit == "percentunit") defaults["max"] = 1;
  if (lines) defaults["custom"] = custom_lines(panel.kind == "steps");
  out["fieldConfig"]["overrides"] = Json::array();
  if (panel.kind == "table") set_columns(view, panel, out);
  out["options"] = panel_options(panel);
  return out;
}

// Left to right, top to bottom; a heading takes a line of its own.
Json panels_of(const MonitoringView& view) {
  Json out = Json::array();
  uint32_t x = 0, y = 0, tallest = 0;
  int id = 1;
  for (const knowledge::BoardPanel& panel : view.knowledge.board_panels) {
    const bool row = panel.kind == "row";
    const uint32_t width = row ? k_grid_width : panel.width, height = row ? 1 : panel.height;
    if (x + width > k_grid_width) {
      x = 0;
      y += tallest;
      tallest = 0;
    }
    Json made = panel_json(view, panel, id++);
    made["gridPos"] = {{"x", x}, {"y", y}, {"w", width}, {"h", height}};
    out.push_back(std::move(made));
    x += width;
    tallest = std::max(tallest, height);
  }
  return out;
}

// A choice that Prometheus fills from a label, several at a time.
Json label_variable(const char* name, const std::string& label, const char* query) {
  Json out;
  out["name"] = name;
  out["label"] = label;
  out["type"] = "query";
  out["datasource"] = data_source();
  out["query"] = {{"query", query}, {"refId", name}};
  out["refresh"] = 2;  // when the time range changes
  out["sort"] = 3;     // by number
  out["multi"] = true;
  out["includeAll"] = true;
  out["allValue"] = ".*";  // what has no label of that name is shown as well
  out["current"] = {{"text", Json::array({"All"})}, {"value", Json::array({"$__all"})}};
  return out;
}

Json variables_of(const MonitoringView& view) {
  const auto text = [&](const char* key) { return message(view.knowledge, key, view.lang); };
  Json source;
  source["name"] = "datasource";
  source["label"] = text("export.monitoring.datasource");
  source["type"] = "datasource";
  source["query"] = "prometheus";
  source["refresh"] = 1;
  source["current"] = Json::object();
  Json out = Json::array();
  out.push_back(std::move(source));
  out.push_back(label_variable("instance", text("export.monitoring.machine"),
                               "label_values(cufit_gpus, instance)"));
  out.push_back(
      label_variable("gpu", "GPU", "label_values(cufit_gpu_info{instance=~\"$instance\"}, gpu)"));
  return out;
}

}  // namespace

std::string grafana_board(const MonitoringView& view) {
  Json out;
  out["uid"] = "cufit";
  out["title"] = message(view.knowledge, "export.monitoring.board", view.lang);
  out["description"] = format("cufit {}", CUFIT_VERSION);
  out["tags"] = Json::array({"cufit", "gpu"});
  out["schemaVersion"] = k_schema_version;
  out["version"] = 1;
  out["editable"] = true;
  out["refresh"] = "30s";
  out["timezone"] = "browser";
  out["time"] = {{"from", "now-3h"}, {"to", "now"}};
  out["templating"]["list"] = variables_of(view);
  out["annotations"]["list"] = Json::array();
  out["panels"] = panels_of(view);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
