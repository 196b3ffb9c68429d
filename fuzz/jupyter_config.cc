// SPDX-License-Identifier: Apache-2.0
// Any bytes as Jupyter's configuration in Python and JSON, and as a command line.
#include <cstdlib>

#include "formats/python/jupyter_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& list : {parse_jupyter_python(text), parse_jupyter_json(text),
                           parse_jupyter_options(read_shell_script(text))})
    for (const JupyterSetting& one : list)
      if (one.kind == JupyterValue::boolean && one.value != "true" && one.value != "false")
        std::abort();
  for (const JupyterSetting& one : parse_jupyter_python(text))
    if (one.object.empty() || one.name.empty() || one.line == 0) std::abort();
  return 0;
}
