// SPDX-License-Identifier: Apache-2.0
// What `cufit run --supervise` leaves behind when the program dies: a text for people and the same
// as JSON (schema cufit.run.report/1).
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"
#include "facts/supervised_run.h"
#include "formats/system/gpu_ring.h"
#include "report/report.h"

namespace cufit::report {

struct CrashReportView {
  const facts::Supervised& run;
  const explain::Explanation& explanation;
  const facts::Facts& after;  // the machine right after the end
  const knowledge::Knowledge& knowledge;
  std::vector<std::string> command;
  std::string time;  // UTC, of the end
  std::string class_name, torch, env;
  // The environment lacks a module that its lock asks for: the command that makes it anew.
  std::string remake;
  std::vector<formats::GpuRing> rings = {};  // under --vram: what its processes recorded
  std::vector<std::string> ring_paths = {};  // of rings, one each; empty = not in files
};

std::string crash_report_text(const CrashReportView& view,
                              const Style& style);           // crash_report_text.cc
std::string crash_report_json(const CrashReportView& view);  // crash_report_json.cc, English texts

// The output's last part without terminal sequences and without what a carriage return overwrote.
std::string plain_tail(std::string_view tail);
// What is known of the end beside the causes: an error of the program itself, who may have killed
// it, what the signal means, or that no cause is known. One line, and "next: ..." where there is a
// step; empty where the first cause says it all.
std::string crash_report_reason(const CrashReportView& view,
                                std::string_view lang);  // crash_report_reason.cc
// What the limit of GPU memory refused, a line for each process; empty = nothing.
std::string crash_report_quota(const CrashReportView& view,
                               std::string_view lang);  // crash_report_quota.cc
bool shows_causes(const CrashReportView& view);
// "killed by SIGKILL (exit code 137)", "exit code 1"
std::string end_text(const facts::Supervised& run, std::string_view lang,
                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
