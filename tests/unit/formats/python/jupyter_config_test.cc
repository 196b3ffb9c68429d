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
  const auto options = [](std::string_view text) {
    return all(parse_jupyter_options(read_shell_script(text)));
  };
  EXPECT_EQ(options("jupyter lab --ip=0.0.0.0 --port 8888 --allow-root "
                    "--NotebookApp.token='' --no-browser"),
            "1 ServerApp.ip='0.0.0.0'\n1 ServerApp.port='8888'\n1 ServerApp.allow_root=true\n"
            "1 NotebookApp.token=''\n");
  EXPECT_EQ(options("# don't\nexec jupyter lab \\\n  --ServerApp.token=\"$T\" &\n"
                    "bash -c \"jupyter lab --LabApp.token=''\"\n"),
            "3 ServerApp.token other $T\n4 LabApp.token=''\n");
  // Other programs have ports and tokens of their own, and what is a comment is none.
  EXPECT_EQ(options("jupyter lab --ip=0.0.0.0 &\ntensorboard --port 6006\n"
                    "# jupyter lab --ServerApp.token=''\necho jupyter lab --port=1\n"),
            "1 ServerApp.ip='0.0.0.0'\n");
  EXPECT_EQ(options("A=\"--port=9 --allow-root\"\nB=(--ip=*)\njupyter-lab $A --ServerApp.token ''"),
            "1 ServerApp.port='9'\n1 ServerApp.allow_root=true\n2 ServerApp.ip='*'\n"
            "3 ServerApp.token=''\n");
}

TEST(JupyterConfig, WhatStartsAServer) {
  const auto starts = [](std::string_view text) {
    return starts_jupyter(read_shell_script(text).at(0));
  };
  for (const char* text : {"jupyter lab", "exec /opt/bin/jupyter-lab", "python -m notebook",
                           "tini -- jupyter --debug server", "su app -c 'jupyter notebook'"})
    EXPECT_TRUE(starts(text)) << text;
  for (const char* text : {"pip install jupyter notebook", "jupyter --version", "echo jupyter lab",
                           "jupyter kernelspec list", "chown app /home/app/.jupyter"})
    EXPECT_FALSE(starts(text)) << text;
}

}  // namespace jupyter_config_test
}  // namespace cufit::formats
