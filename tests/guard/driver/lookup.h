// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace model {

// The driver looks its own function up by dlsym, as real ones do: is it what it should be?
bool finds_itself();

}  // namespace model
