// SPDX-License-Identifier: Apache-2.0
#include "formats/python/jupyter_config.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace jupyter_config_test {

std::string all(const std::vector<JupyterSetting>& settings) {
  std::string out;
  for (const JupyterSetting& one : settings)
    out += std::to_string(one.line) + " " + one.object + "." + one.name +
           (one.kind == JupyterValue::text      ? "='" + one.value + "'"
            : one.kind == JupyterValue::boolean ? "=" + one.value
                                                : " other " + one.value) +
           "\n";
  return out;
}

TEST(JupyterConfig, LiteralsOfPython) {
  EXPECT_EQ(all(parse_jupyter_python("c = get_config()\n c.ServerApp.token = ''  # open\n"
                                     "c.NotebookApp.password = u'sha1:x'\n"
                                     "c.ServerApp.allow_root=True\n# c.ServerApp.ip = '*'\n"
                                     "c.ServerApp.port = 8888\nc.IdentityProvider.token = token\n"
                                     "c.ServerApp.x = 'a' + b\nc.JupyterHub.y.z = 1\n")),
            "2 ServerApp.token=''\n3 NotebookApp.password='sha1:x'\n4 ServerApp.allow_root=true\n"
            "6 ServerApp.port other 8888\n7 IdentityProvider.token other token\n"
            "8 ServerApp.x other 'a' + b\n");
}

TEST(JupyterConfig, Json) {
  EXPECT_EQ(all(parse_jupyter_json(
                R"({"ServerApp": {"allow_root": true, "port": 1, "token": ""}, "x": 1})")),
            "0 ServerApp.allow_root=true\n0 ServerApp.port other 1\n0 ServerApp.token=''\n");
  EXPECT_EQ(all(parse_jupyter_json("[1]")), "");
  EXPECT_EQ(all(parse_jupyter_json("{")), "");
}

TEST(JupyterConfig, OptionsOfACommand) {
  EXPECT_EQ(all(parse_jupyter_options("jupyter lab --ip=0.0.0.0 --port 8888 --allow-root "
                                      "--NotebookApp.token='' --no-browser")),
            "1 ServerApp.ip='0.0.0.0'\n1 ServerApp.port='8888'\n1 ServerApp.allow_root=true\n"
            "1 NotebookApp.token=''\n");
  EXPECT_EQ(all(parse_jupyter_options("# don't\nexec jupyter lab \\\n  --ServerApp.token=\"$T\" &\n"
                                      "bash -c \"jupyter lab --LabApp.token=''\"\n")),
            "3 ServerApp.token other $T\n4 LabApp.token=''\n");
}

}  // namespace jupyter_config_test
}  // namespace cufit::formats
