// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit image audit` and its two views.
#pragma once

#include <string>

#include "report/report.h"
#include "resolve/image/image_audit.h"

namespace cufit::report {

struct ImageView {
  const facts::OpenedImage& image;
  const facts::Facts& facts;
  const resolve::ImageAudit& audit;
  const knowledge::Knowledge& knowledge;
};

std::string image_text(const ImageView& view, const Style& style);  // image_text.cc
std::string image_json(const ImageView& view);  // image_json.cc, schema cufit.image.audit/1

// What made a layer, without the secrets that it was given ("RUN |1 HF_TOKEN=***").
std::string shown_step(const std::string& made_by);

}  // namespace cufit::report
