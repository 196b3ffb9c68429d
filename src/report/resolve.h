// SPDX-License-Identifier: Apache-2.0
// What `cufit resolve` says. Reasons are also what lock, run and preflight show.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "resolve/wheel/resolve.h"
#include "resolve/wheel/variant_choice.h"

namespace cufit::report {

struct ResolveView {
  const std::vector<resolve::Answer>& answers;
  const resolve::Request& request;
  const knowledge::Knowledge& knowledge;
  // Per answer: what keeps torch from running there at all, as doctor names it; empty = nothing
  // known.
  std::vector<std::string> obstacles = {};
  std::vector<std::string> ignored = {};  // requirements that cufit does not judge
  std::string ignored_near = {};          // what one of them may have meant
  bool no_uv = false;                     // uv is not on this machine
  // Per answer, where the target is a machine and not a description: what is known of it, so that
  // the step is for its environment; null = nothing is.
  std::vector<const facts::Facts*> machines = {};
  // What the index has of wheel variants of one torch, and per answer what an installer makes of
  // them. Empty: it has none, or none was asked.
  std::string variants_torch = {}, variants_url = {};
  std::vector<resolve::VariantChoice> variants = {};
  // A file of `cufit bench` that ranks nothing here, and the GPU it was made on; empty: there is none.
  struct UnusedMeasured {
    std::string file, gpu;
  } unused_measured = {};
  std::string doubtful_measured =
      {};  // one that ranks, and whose figures are to be taken with care
};

// How a choice that was measured faster is said; of the first measurement.
std::string measured_text(const resolve::MeasuredFaster& one, std::string_view lang,
                          const knowledge::Knowledge& knowledge);

std::string resolve_text(const ResolveView& view, const Style& style);
std::string resolve_json(const ResolveView& view);  // schema cufit.resolve/1, English texts

// One sentence without a full stop.
std::string reason_text(const resolve::Reason& reason, std::string_view lang,
                        const knowledge::Knowledge& knowledge);
// What was asked for and cannot be met together (Answer::conflict), in the user's language.
std::vector<std::string> demand_texts(const std::vector<std::string>& demands,
                                      std::string_view lang, const knowledge::Knowledge& knowledge);
// The package that was asked for and has to be built where torch is already; null: none.
const resolve::Companion* built_here(const resolve::Choice& choice,
                                     const resolve::Request& request);
// "uv pip install --torch-backend cu126 torch==2.14.1 torchvision==0.29.1": uv knows where
// PyTorch's own index is. Names what was asked for, makes an environment first where the Python is
// another one, leaves torch open downwards beside packages that may pin it, and builds last what
// needs torch for that. Where `machine` is given and has an environment of that Python, the command
// of whoever owns it instead (checks/install/installer.h), so that doctor and resolve say the same.
std::string install_line(const resolve::Choice& choice, const resolve::Target& target,
                         const resolve::Request& request, const knowledge::Knowledge& knowledge,
                         const facts::Facts* machine);

}  // namespace cufit::report
