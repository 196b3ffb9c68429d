// SPDX-License-Identifier: Apache-2.0
// What `cufit run --supervise` leaves behind when the program dies: a text for people and the same
// as JSON (schema cufit.run.report/1).
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"
#include "host/supervise.h"
#include "report/report.h"

namespace cufit::report {

struct DeathView {
  const host::Supervised& run;
  const explain::Explanation& explanation;
  const host::Facts& after;  // the machine right after the end
  const knowledge::Knowledge& knowledge;
  std::vector<std::string> command;
  std::string time;  // UTC, of the end
  std::string class_name, torch, env;
  // The environment lacks a module that its lock asks for: the command that makes it anew.
  std::string remake;
};

std::string death_text(const DeathView& view, const Style& style);  // death_text.cc
std::string death_json(const DeathView& view);                      // death_json.cc, English texts

// The output's last part without terminal sequences and without what a carriage return overwrote.
std::string plain_tail(std::string_view tail);
// What is known of the end beside the causes: an error of the program itself, who may have killed
// it, what the signal means, or that no cause is known. One line, and "next: ..." where there is a
// step; empty where the first cause says it all.
std::string death_reason(const DeathView& view, std::string_view lang);  // death_reason.cc
bool shows_causes(const DeathView& view);
// "killed by SIGKILL (exit code 137)", "exit code 1"
std::string end_text(const host::Supervised& run, std::string_view lang,
                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
