// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/resolve.h"
#include "report/error_translation.h"

namespace cufit::report {

std::string reason_text(const resolve::Reason& reason, std::string_view lang,
                        const knowledge::Knowledge& knowledge) {
  const std::string key = "resolve.reason." + reason.id;
  const std::string_view text = knowledge.message(key, lang);
  if (text.empty()) return reason.id;
  std::map<std::string, std::string> args = reason.args;
  if (const auto why = args.find("why"); why != args.end()) {
    const std::string_view word = knowledge.message("resolve.companion." + why->second, lang);
    if (!word.empty()) why->second = std::string(word);
  }
  return format_message(text, args);
}

std::vector<std::string> demand_texts(const std::vector<std::string>& demands,
                                      std::string_view lang,
                                      const knowledge::Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const std::string& demand : demands)
    out.push_back(reworded(demand, "resolve.demand.", lang, knowledge));
  return out;
}

std::string install_line(const resolve::Choice& choice, const resolve::Target& target,
                         const resolve::Request& request) {
  const resolve::Wheel& wheel = choice.wheel;
  std::string line;
  if (!choice.python.empty() && choice.python != target.preferred_python)
    line = "uv venv --python " + choice.python + " && ";
  line += "uv pip install ";
  if (!wheel.on_default_index) line += "--torch-backend " + wheel.tag + " ";
  line += "torch==" + wheel.torch;
  for (const resolve::Companion& companion : choice.companions) {
    const bool asked =
        std::any_of(request.requirements.begin(), request.requirements.end(),
                    [&](const formats::Requirement& one) { return one.name == companion.package; });
    if ((asked || companion.package == "torchvision") && !companion.version.empty())
      line += " " + companion.package + "==" + companion.version;
  }
  for (const formats::Requirement& one : request.requirements)
    if (one.name != "torch" && !resolve::is_judged(one)) line += " " + shell_word(one.text);
  return line;
}

}  // namespace cufit::report
