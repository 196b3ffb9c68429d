// SPDX-License-Identifier: Apache-2.0
#include "commands/explain/explain.h"

#include <optional>

#include "base/format.h"
#include "commands/progress.h"
#include "explain/explain.h"
#include "commands/resolve/targets.h"
#include "host/probe.h"
#include "host/files/recording.h"
#include "host/files/text_stream.h"
#include "host/process/this_process.h"
#include "report/explain.h"

namespace cufit::commands {
namespace {

constexpr Option k_explain_options[] = {
    option<&ExplainRequest::files>("FILE"),
    option<&ExplainRequest::here>("--here"),
    option<&ExplainRequest::from>("--from", "RECORDING"),
    option<&ExplainRequest::json>("--json"),
    option<&ExplainRequest::verbose>("-v,--verbose"),
};

// This machine, and of its environments the one that the text names.
facts::Facts facts_here(const Context& context, const std::string& env) {
  host::ProbeOptions options;
  if (!env.empty() && context.machine.exists(env)) options.env_dirs = {env};
  facts::Facts facts = host::collect(context.machine, options);
  add_mirror(context, facts);
  return facts;
}

// The recorded machine whose facts stand beside the text, if one is named.
Result<std::optional<facts::Facts>> facts_beside(const Context& context,
                                                 const ExplainRequest& request) {
  if (request.here && request.from)
    return fail(Code::usage, "`--here` is this machine, `--from` another one: give one of them");
  if (request.from) {
    CUFIT_TRY(facts, host::load_facts(context.files, *request.from));
    return std::optional<facts::Facts>(std::move(facts));
  }
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

int run_explain(const Context& context, const ExplainRequest& request) {
  const Output& output = context.output;
  std::vector<std::string> paths = request.files;
  const bool waits = paths.empty() && host::is_terminal(host::Stream::in);
  if (paths.empty()) paths.push_back("-");
  const Result<std::optional<facts::Facts>> beside = facts_beside(context, request);
  if (!beside) return output.exit_code_for(beside.error());
  if (waits) output.print_beside(context.message("explain.paste") + "\n");
  explain::Explainer explainer(context.knowledge);
  if (auto read = read_texts(paths, explainer); !read) return output.exit_code_for(read.error());
  explain::Options options;
  if (paths.size() == 1 && paths[0] != "-") options.name = paths[0];
  options.beside = *beside ? &**beside : nullptr;
  if (request.here) options.here = [&](const std::string& env) { return facts_here(context, env); };
  const explain::Explanation explanation = explainer.finish(options);
  for (const std::string& unread : explanation.unread) output.print_error(unread);
  if (explanation.unread.size() == paths.size()) return k_failed;
  const int code = explanation.causes.empty() ? k_findings : k_ok;
  const report::ExplainView view{explanation, context.knowledge, true,
                                 request.here || request.from.has_value()};
  if (request.json) return output.print(report::explain_json(view), code);
  return output.print(report::explain_text(view, output.style(request.verbose)), code);
}

}  // namespace cufit::commands
