// SPDX-License-Identifier: Apache-2.0
// What a doctor report says, in one language, before any layout: the text and the HTML page are
// painted from this, so that both say the same. Every string is safe to print
// (report/terminal/width.h, printable) but not escaped for HTML.
#pragma once

#include <string>
#include <vector>

#include "report/terminal/fact_lines.h"
#include "report/message.h"
#include "report/report.h"

namespace cufit::report {

using checks::LinkState;
using checks::Severity;

struct Row {
  LinkState state = LinkState::unknown;
  std::string name;                   // "kernel driver"
  std::string detail;                 // may be empty
  std::vector<std::string> evidence;  // "`/sys/module/nvidia/version`: 535.183.01"
};

// One environment on one GPU, or on several equal GPUs for which every link says the same.
struct ChainBlock {
  std::string gpus;                 // "GPU 0-7: NVIDIA H200 (9.0)"
  std::string env;                  // path
  std::string env_line;             // "/opt/venv (venv, Python 3.12.3, torch 2.11.0+cu130)"
  LinkState state = LinkState::ok;  // the worst of the links; unknown only where nothing is broken
  std::vector<Row> links;
};

// A text with its commands cut out: pieces in order. A command goes on a line of its own, without
// quotes and never wrapped, so that it can be copied.
struct Piece {
  bool command = false;
  std::string text;
};

struct FindingBlock {
  Severity severity = Severity::unknown;
  std::string id, action;
  std::string title, subject, why, unknown_because, follows, rule;
  std::vector<Piece> next;
  std::vector<std::string> evidence;
};

struct AbilityBlock {
  std::string gpu;
  std::vector<Row> rows;
};

struct Page {
  LinkState verdict = LinkState::unknown;
  std::string answer;               // "Yes" or "No"
  std::string sentence;             // "PyTorch will run on this machine's GPU"
  std::string counts;               // "1 error, 2 warnings"; empty = none
  std::string machine;              // "Debian GNU/Linux 12 (bookworm), x86_64, driver 535.183.01"
  std::vector<std::string> origin;  // where the facts come from, when not from this machine
  std::vector<ChainBlock> chains;
  std::vector<std::string> other_envs;  // one line for each environment that is in no chain
  // "Environments without torch", or "Environments" where one has it
  std::string other_envs_heading;
  std::vector<FindingBlock> findings;
  std::vector<AbilityBlock> abilities;
  std::vector<Row> host_limits;
  std::vector<Row> together;
  std::vector<std::string> problems;  // cufit's own
  std::vector<FactLine> facts;        // only when asked for
};

Page make_page(const DoctorView& view, std::string_view lang, bool with_facts);

// "`/sys/module/nvidia/version`: 535.183.01", "table `data/drivers.toml`: ..."
std::string evidence_text(const checks::Evidence& item, std::string_view lang,
                          const knowledge::Knowledge& knowledge);

// The next step of a finding, `text` in the language at hand: one that reads the same in every
// language is a command as a whole.
std::vector<Piece> next_pieces(const std::string& text, const std::string& en,
                               const std::string& zh);

// A command is a `back-quoted` span of several words that is no option ("--gpus all") and stands
// outside brackets.
std::vector<Piece> cut_commands(std::string_view text);

}  // namespace cufit::report
