// SPDX-License-Identifier: Apache-2.0
#include "report/diff_lock.h"

#include "base/format.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

class LockDiffPainter : private TerminalWriter {
 public:
  LockDiffPainter(const LockDiffView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    const resolve::LockDifference& difference = view_.difference;
    flow(words(difference.differs ? "head" : "same"), "", "", "1");
    flow("A  `" + printable(view_.a.path) + "`", "  ", "     ");
    flow("B  `" + printable(view_.b.path) + "`", "  ", "     ");
    if (!difference.fields.empty()) {
      heading(words("whole"));
      for (const resolve::FieldChange& field : difference.fields) row(name(field.field), field);
    }
    for (const resolve::ClassChange& change : difference.classes) class_change(change);
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say("diff.lock." + key, args);
  }
  std::string name(const std::string& field) const { return words("field." + field); }

  void row(const std::string& what, const resolve::FieldChange& change,
           const std::string& indent = "  ") {
    const std::string none = say("diff.not_there");
    const std::string a = change.a.empty() ? none : printable(change.a);
    const std::string b = change.b.empty() ? none : printable(change.b);
    const std::string line = what + say("colon") + a + " -> " + b;
    if (columns(line) + columns(indent) <= width_) {
      out_ += indent + line + "\n";
      return;
    }
    flow(what + say("colon"), indent, indent + "  ");
    flow(a, indent + "  A  ", indent + "     ");
    flow(b, indent + "  B  ", indent + "     ");
  }

  void class_change(const resolve::ClassChange& change) {
    const resolve::LockClass& one = change.b != nullptr ? *change.b : *change.a;
    const char* key = change.a == nullptr ? "only_b" : change.b == nullptr ? "only_a" : "changed";
    heading(view_.pylocks ? words("contents") : words(key, {{"name", printable(change.name)}}));
    if (change.a == nullptr || change.b == nullptr) {
      flow(words("brief", {{"torch", printable(one.wheel.torch)},
                           {"tag", printable(one.wheel.tag)},
                           {"python", printable(one.python)},
                           {"count", std::to_string(one.packages)}}),
           "  ", "  ");
      if (!one.serves.empty())
        flow(words("field.serves") + say("colon") + printable(join(one.serves, "; ")), "  ",
             "    ");
      return;
    }
    for (const resolve::FieldChange& field : change.fields) {
      if (field.field == "sha256" && !style_.verbose) continue;
      row(name(field.field), field);
    }
    if (!change.packages.empty() && !view_.pylocks)
      out_ += "  " + coloured(words("packages_differ"), "1") + "\n";
    for (const resolve::PackageChange& package : change.packages)
      row(printable(package.name), {package.name, package.a, package.b},
          view_.pylocks ? "  " : "    ");
    const bool contents = !change.fields.empty() && change.fields.back().field == "sha256";
    if (contents && !change.packages_known) flow(words("packages_unknown"), "  ", "  ", "2");
    if (contents && change.packages_known && change.packages.empty())
      flow(words("packages_same"), "  ", "  ", "2");
  }

  const LockDiffView& view_;
};

Json fields_json(const std::vector<resolve::FieldChange>& fields) {
  Json out = Json::array();
  for (const resolve::FieldChange& field : fields)
    out.push_back({{"field", field.field}, {"a", or_null(field.a)}, {"b", or_null(field.b)}});
  return out;
}

}  // namespace

std::string lock_diff_text(const LockDiffView& view, const Style& style) {
  return LockDiffPainter(view, style).paint();
}

std::string lock_diff_json(const LockDiffView& view) {
  Json out;
  out["schema"] = "cufit.diff/1";
  out["cufit"] = CUFIT_VERSION;
  const char* kind = view.pylocks ? "pylock" : "lock";
  out["compared"] = std::string(kind) + "s";
  out["a"] = {{"name", view.a.path}, {"kind", kind}};
  out["b"] = {{"name", view.b.path}, {"kind", kind}};
  out["differs"] = view.difference.differs;
  out["fields"] = fields_json(view.difference.fields);
  out["classes"] = Json::array();
  for (const resolve::ClassChange& change : view.difference.classes) {
    Json one;
    one["name"] = change.name;
    one["in"] = change.a == nullptr ? "b" : change.b == nullptr ? "a" : "both";
    one["fields"] = fields_json(change.fields);
    one["packages_compared"] = change.packages_known;
    one["packages"] = Json::array();
    for (const resolve::PackageChange& package : change.packages)
      one["packages"].push_back(
          {{"name", package.name}, {"a", or_null(package.a)}, {"b", or_null(package.b)}});
    out["classes"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
