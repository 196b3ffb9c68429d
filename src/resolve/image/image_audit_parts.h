// SPDX-License-Identifier: Apache-2.0
// The parts of an audit of an image; each fills its members of ImageAudit, in this order.
#pragma once

#include <string>

#include "resolve/image/image_audit.h"

namespace cufit::resolve {

struct AuditInput {
  const facts::OpenedImage& image;
  const facts::ImageTree& tree;
  const facts::Facts& facts;
  const knowledge::Knowledge& knowledge;
};

// libraries, driver, copies, hidden and the sums of files; image_libraries.cc
void audit_libraries(const AuditInput& input, ImageAudit& out);
// torches, for the targets that are there; image_torch.cc
void audit_torches(const AuditInput& input, ImageAudit& out);
// defects, of what the others found; image_defects.cc
void audit_defects(const AuditInput& input, ImageAudit& out);

// Of the image's configuration; empty = not set.
std::string image_variable(const AuditInput& input, std::string_view name);
// NVIDIA_DRIVER_CAPABILITIES without "compute": no CUDA in the container.
bool leaves_out_compute(const AuditInput& input);
// "bin/python -> /usr/bin/python3" of an environment whose Python is not in the image; else empty.
std::string dangling_python(const AuditInput& input, const facts::PythonEnv& env);

}  // namespace cufit::resolve
