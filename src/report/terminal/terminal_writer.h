// SPDX-License-Identifier: Apache-2.0
// A report on a terminal while it is being written: wrapped paragraphs, labels, copyable commands.
// doctor's and explain's texts are painted on one, so that both look alike.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/doctor_content.h"

namespace cufit::report {

const char* colour_of(LinkState state);

class TerminalWriter {
 public:
  TerminalWriter(const knowledge::Knowledge& knowledge, const Style& style);

  // A label of data/messages/report.toml.
  std::string say(const std::string& key,
                  const std::map<std::string, std::string>& args = {}) const;
  // "1" bold, "2" dim, "31" red.
  std::string coloured(const std::string& text, const std::string& code) const;
  // Wraps `text` between `first` (before the first line; may hold colour codes) and as many blanks
  // as `first_columns`.
  void flow(const std::string& text, const std::string& first, const std::string& rest,
            const char* code = "");
  void flow_at(const std::string& text, const std::string& first, int first_columns,
               const std::string& rest, const char* code = "");
  static std::string blanks(int count);
  void heading(const std::string& text);
  // A bold label and its text, the lines after the first indented.
  void labelled(const std::string& name, const std::string& text);
  void part(const char* key, const std::string& text);  // with the label "part.<key>"
  // The next step; its commands on lines of their own, never wrapped: they are there to be copied.
  void next(const std::vector<Piece>& pieces);
  // Title, what it was seen by, and the next step.
  void finding(const FindingBlock& finding);
  void facts(const std::vector<FactLine>& facts);
  void tables();         // how old the tables are that judged
  std::string finish();  // the whole text, ending with one line break

 protected:
  const knowledge::Knowledge& knowledge_;
  const Style& style_;
  int width_;
  std::string out_;
};

}  // namespace cufit::report
