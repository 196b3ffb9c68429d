// SPDX-License-Identifier: Apache-2.0
// What `cufit resolve` says. Reasons are also what lock, run and preflight show.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "resolve/resolve.h"

namespace cufit::report {

struct ResolveView {
  const std::vector<resolve::Answer>& answers;
  const resolve::Request& request;
  const knowledge::Knowledge& knowledge;
};

std::string resolve_text(const ResolveView& view, const Style& style);
std::string resolve_json(const ResolveView& view);  // schema cufit.resolve/1, English texts

// One sentence without a full stop.
std::string reason_text(const resolve::Reason& reason, std::string_view lang,
                        const knowledge::Knowledge& knowledge);
// "uv pip install --torch-backend cu126 torch==2.14.1 torchvision==0.29.1": uv knows where
// PyTorch's own index is.
std::string install_line(const resolve::Choice& choice);

}  // namespace cufit::report
