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

}  // namespace cufit::report
