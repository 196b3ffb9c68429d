// SPDX-License-Identifier: Apache-2.0
// doctor's report on a terminal. Order: the answer, the chain that shows where it holds or breaks,
// what is wrong and the one command for it, then what else is worth knowing. Links that are ok
// share one line.
#include "report/report.h"

#include <algorithm>

#include "base/format.h"
#include "report/terminal/state_symbols.h"
#include "report/doctor_content.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

class Painter : private TerminalWriter {
 public:
  Painter(const Page& page, const DoctorView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), page_(page) {
    for (const char* key : {"ok", "limited", "broken", "unknown"}) {
      state_columns_ = std::max(state_columns_, columns(say(std::string("state.") + key)));
    }
  }

  std::string paint() {
    answer();
    chains();
    for (const FindingBlock& finding : page_.findings) this->finding(finding);
    abilities();
    host_limits();
    together();
    problems();
    if (style_.verbose) facts(page_.facts);
    out_ += '\n';
    if (style_.verbose) {
      tables();
    } else {
      flow(say(page_.findings.empty() ? "hint.healthy" : "hint.findings"), "", "", "2");
    }
    return finish();
  }

 private:
  void answer() {
    LinkState state = page_.verdict;
    std::string mark_text = std::string(mark(state)) + " ";
    std::string text = page_.answer + say("colon") + page_.sentence;
    std::string code = std::string("1;") + colour_of(state);
    flow_at(text, coloured(mark_text, code), 2, "  ", code.c_str());
    std::string second = page_.counts;
    if (!page_.machine.empty()) second += (second.empty() ? "" : say("semicolon")) + page_.machine;
    if (!second.empty()) flow(second, "  ", "  ", "2");
    for (const std::string& line : page_.origin) flow(line, "  ", "  ");
  }

  // "  ✗ broken   kernel driver     detail"
  void row(const Row& row, int name_columns, const std::string& word) {
    std::string indent = "  ";
    std::string left = std::string(mark(row.state)) + " " + pad(word, state_columns_) + "  ";
    std::string name = row.detail.empty() ? row.name : pad(row.name, name_columns) + "  ";
    int left_columns = 2 + columns(left);
    out_ += indent + coloured(left, colour_of(row.state));
    if (left_columns + name_columns + 2 + 30 > width_ &&
        !row.detail.empty()) {  // narrow: detail on its own lines
      out_ += row.name + "\n";
      flow(row.detail, "      ", "      ");
    } else if (row.detail.empty()) {
      bool first = true;
      for (const std::string& line : wrap(row.name, width_ - left_columns)) {
        out_ += (first ? "" : blanks(left_columns)) + line + "\n";
        first = false;
      }
    } else {
      std::string rest = blanks(left_columns + columns(name));
      bool first = true;
      for (const std::string& line : wrap(row.detail, width_ - columns(rest))) {
        out_ += (first ? name : rest) + line + "\n";
        first = false;
      }
    }
    if (style_.verbose) {
      for (const std::string& item : row.evidence) flow(item, "      ", "        ", "2");
    }
  }

  // Neighbouring links that are ok become one row of names; nothing is hidden with -v.
  std::vector<Row> collapsed(const std::vector<Row>& rows) const {
    if (style_.verbose) return rows;
    std::vector<Row> out;
    std::string last;
    for (const Row& row : rows) {
      if (row.state == LinkState::ok && !out.empty() && out.back().state == LinkState::ok) {
        if (row.name != last)
          out.back().name += say("list") + row.name;  // one PCIe link per GPU: named once
      } else {
        out.push_back(row);
        if (row.state == LinkState::ok) out.back().detail.clear();
      }
      last = row.name;
    }
    return out;
  }

  void rows(const std::vector<Row>& rows) {
    int name_columns = 0;
    for (const Row& row : rows)
      if (!row.detail.empty()) name_columns = std::max(name_columns, columns(row.name));
    for (const Row& row : rows)
      this->row(row, name_columns, say(std::string("state.") + to_string(row.state)));
  }

  void chains() {
    std::string last_gpus;
    for (const ChainBlock& block : page_.chains) {
      if (block.gpus != last_gpus) heading(block.gpus);
      last_gpus = block.gpus;
      if (!block.env_line.empty()) flow(block.env_line, "  ", "    ");
      rows(collapsed(block.links));
    }
    if (page_.other_envs.empty()) return;
    heading(page_.other_envs_heading);
    for (const std::string& line : page_.other_envs) flow(line, "  ", "    ");
  }

  void abilities() {
    if (page_.abilities.empty()) return;
    heading(say("heading.abilities"));
    for (const AbilityBlock& block : page_.abilities) {
      if (style_.verbose) {
        if (!block.gpu.empty()) flow(block.gpu, "  ", "    ");
        int name_columns = 0;
        for (const Row& row : block.rows) name_columns = std::max(name_columns, columns(row.name));
        for (const Row& row : block.rows) {
          this->row(row, name_columns, say(std::string("ability_state.") + to_string(row.state)));
        }
        continue;
      }
      if (page_.abilities.size() > 1 && !block.gpu.empty()) flow(block.gpu, "  ", "    ");
      abilities_line(block);
    }
  }
  // "✓ yes: fp32, bf16   ✗ no: fp4", on one line if it fits.
  void abilities_line(const AbilityBlock& block) {
    int used = 0;
    for (LinkState state :
         {LinkState::ok, LinkState::limited, LinkState::broken, LinkState::unknown}) {
      std::vector<std::string> names;
      for (const Row& row : block.rows)
        if (row.state == state) names.push_back(row.name);
      if (names.empty()) continue;
      std::string left = std::string(mark(state)) + " " +
                         say(std::string("ability_state.") + to_string(state)) + say("colon");
      std::string text = join(names, say("list"));
      bool fits = used + 3 + columns(left + text) <= width_;
      if (used > 0 && !fits) out_ += "\n";
      if (used > 0 && fits) {
        out_ += "   " + coloured(left, colour_of(state)) + text;
        used += 3 + columns(left + text);
        continue;
      }
      std::vector<std::string> lines = wrap(text, std::max(width_ - 2 - columns(left), 16));
      out_ +=
          "  " + coloured(left, colour_of(state)) + join(lines, "\n" + blanks(2 + columns(left)));
      used = 2 + columns(left) + columns(lines.back());
    }
    out_ += "\n";
  }

  void host_limits() {
    if (page_.host_limits.empty()) return;
    heading(say("heading.host_limits"));
    rows(collapsed(page_.host_limits));
  }

  void together() {
    if (page_.together.empty()) return;
    heading(say("heading.together"));
    rows(page_.together);
  }

  void problems() {
    if (page_.problems.empty()) return;
    heading(say("heading.problems"));
    size_t shown =
        style_.verbose ? page_.problems.size() : std::min<size_t>(page_.problems.size(), 3);
    for (size_t i = 0; i < shown; ++i) flow(page_.problems[i], "  - ", "    ");
    if (shown < page_.problems.size()) {
      flow(say("part.more", {{"count", std::to_string(page_.problems.size() - shown)}}), "  - ",
           "    ", "2");
    }
  }

  const Page& page_;
  int state_columns_ = 0;
};

}  // namespace

std::string doctor_text(const DoctorView& view, const Style& style) {
  Page page = make_page(view, style.lang, style.verbose);
  return Painter(page, view, style).paint();
}

}  // namespace cufit::report
