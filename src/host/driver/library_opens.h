// SPDX-License-Identifier: Apache-2.0
// Whether a library of the driver can be opened at all. Used by `cufit self`.
#pragma once

namespace cufit::host {

// By its soname, as a program would. Its constructors run, no call of the driver does.
bool library_opens(const char* name);

}  // namespace cufit::host
