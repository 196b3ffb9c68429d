// SPDX-License-Identifier: Apache-2.0
// Rendering. Structs in, text out; the only folder that writes results. Every renderer returns a
// string: the command writes it to stdout or to a file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "checks/finding.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"
#include "report/message.h"

namespace cufit::report {

struct Style {
  std::string lang = "en";  // "en" or "zh"
  bool colour = false;      // a second signal only: every state is also a word or a mark
  int width = 100;          // columns; wide characters count two
  bool verbose = false;     // -v: all facts with sources, all evidence, links that are ok in full
};

struct DoctorView {
  const facts::Facts& facts;
  const checks::Report& report;
  const knowledge::Knowledge& knowledge;
};

std::string doctor_text(const DoctorView& view, const Style& style);  // terminal/doctor_text.cc
std::string doctor_json(
    const DoctorView& view);  // json/doctor_json.cc, schema cufit.doctor/1, English texts
std::string doctor_html(const DoctorView& view,
                        const Style& style);  // html/doctor_page.cc, one self-contained page

// Finding's text for a part ("title", "why", "next", "rule") in data/findings: of a finding whose
// check set the variant "a.b" the first that is there of `part.a.b`, `part.b` (not of "text.b"), `part.a`, `part`.
std::string finding_text(const checks::Finding& finding, std::string_view part,
                         std::string_view lang, const knowledge::Knowledge& knowledge);

// Of a link that a finding decided also {title}: that finding's headline.
std::map<std::string, std::string> link_args(const checks::Link& link, std::string_view lang,
                                             const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
