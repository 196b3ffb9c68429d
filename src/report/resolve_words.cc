// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "report/resolve.h"

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
  return fill(text, args);
}

std::string install_line(const resolve::Choice& choice) {
  const resolve::Wheel& wheel = choice.wheel;
  std::string line = "uv pip install ";
  if (!wheel.on_default_index) line += "--torch-backend " + wheel.tag + " ";
  line += "torch==" + wheel.torch;
  for (const resolve::Companion& companion : choice.companions)
    if (companion.package == "torchvision" && !companion.version.empty())
      line += " torchvision==" + companion.version;
  return line;
}

}  // namespace cufit::report
