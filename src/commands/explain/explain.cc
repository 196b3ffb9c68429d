// SPDX-License-Identifier: Apache-2.0
#include "commands/explain/explain.h"

#include <cstdio>
#include <optional>

#include "base/format.h"
#include "commands/progress.h"
#include "commands/settings.h"
#include "explain/explain.h"
#include "host/probe.h"
#include "host/files/recording.h"
#include "host/files/text_stream.h"
#include "host/process/this_process.h"
#include "report/explain.h"

namespace cufit::commands {
namespace {

constexpr Option k_explain_options[] = {
    {"FILE", "", "", true, ""},
    {"--here", "", "", false, ""},
    {"--from", "RECORDING", "", false, ""},
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

// The machine whose facts stand beside the text: this one, a recorded one, or none.
Result<std::optional<facts::Facts>> facts_beside(const Arguments& arguments) {
  const bool here = arguments.has("here");
  if (here && arguments.has("from"))
    return fail(Code::usage, "`--here` is this machine, `--from` another one: give one of them");
  const host::RealHost machine;
  if (arguments.has("from")) {
    CUFIT_TRY(facts, host::load_facts(machine, arguments.get("from")));
    return std::optional<facts::Facts>(std::move(facts));
  }
  if (here) return std::optional<facts::Facts>(host::collect(machine, {}));
  return std::optional<facts::Facts>();
}

Result<void> read_texts(const std::vector<std::string>& paths, explain::Explainer& explainer) {
  for (const std::string& path : paths) {
    const std::string name = path == "-" ? "stdin" : path;
    Progress progress(name);
    explainer.begin(name);
    auto read = host::read_stream(path, [&](std::string_view piece, uint64_t done, uint64_t total) {
      explainer.add(piece);
      progress.show(done, total);
    });
    if (!read) return read;
  }
  return {};
}

}  // namespace

std::span<const Option> explain_options() { return k_explain_options; }

int run_explain(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  std::vector<std::string> paths = arguments.all("FILE");
  const bool waits = paths.empty() && host::is_terminal(host::Stream::in);
  if (paths.empty()) paths.push_back("-");
  const Result<std::optional<facts::Facts>> beside = facts_beside(arguments);
  if (!beside) return exit_code_for(beside.error());
  if (waits) {
    const std::string_view text = knowledge.message("explain.paste", language(arguments));
    std::fprintf(stderr, "%s\n", std::string(text).c_str());
  }
  explain::Explainer explainer(knowledge);
  if (auto read = read_texts(paths, explainer); !read) return exit_code_for(read.error());
  explain::Options options;
  if (paths.size() == 1 && paths[0] != "-") options.name = paths[0];
  options.beside = *beside ? &**beside : nullptr;
  const explain::Explanation explanation = explainer.finish(options);
  const int code = explanation.causes.empty() ? k_findings : k_ok;
  const report::ExplainView view{explanation, knowledge};
  if (arguments.has("json")) return print(report::explain_json(view), code);
  return print(report::explain_text(view, style_for(arguments)), code);
}

}  // namespace cufit::commands
