// SPDX-License-Identifier: Apache-2.0
// The one look-up of a text of data/messages.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "knowledge/knowledge.h"

namespace cufit::report {

// `text` with each {name} replaced by its argument; "{{" and "}}" are braces. A name without an
// argument stays as it is.
// With lang "zh" the lists and brackets of English arguments get the signs of a Chinese sentence, but
// for what stands in `code` or “quotation marks”.
std::string format_message(std::string_view text, const std::map<std::string, std::string>& args,
                           std::string_view lang = "en");
// "a, b (c, d)" as "a、b（c，d）"; commands and quotations as they are.
std::string chinese_signs(std::string_view value);
// What a finding is about: "environment /home/u/venv", "GPU 0"; empty for the machine.
std::string subject_text(const std::string& subject, std::string_view lang,
                         const knowledge::Knowledge& knowledge);

// The text of `key` ("run.start.missing") in a language, with its arguments filled in. Empty where
// there is none.
std::string message(const knowledge::Knowledge& knowledge, std::string_view key,
                    std::string_view lang, const std::map<std::string, std::string>& args = {});

// A label of data/messages/report.toml ("verdict.works") in a language; the key itself when there
// is none.
std::string label(const knowledge::Knowledge& knowledge, std::string_view lang,
                  std::string_view key, const std::map<std::string, std::string>& args = {});

// label() for the many of one report.
class Labels {
 public:
  Labels(const knowledge::Knowledge& knowledge, std::string_view lang)
      : knowledge_(knowledge), lang_(lang) {}
  std::string operator()(std::string_view key,
                         const std::map<std::string, std::string>& args = {}) const {
    return label(knowledge_, lang_, key, args);
  }

 private:
  const knowledge::Knowledge& knowledge_;
  std::string_view lang_;
};

// "tables of 2026-11-28": how old the tables are that judged, for the end of a report.
std::string tables_line(std::string_view lang, const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
