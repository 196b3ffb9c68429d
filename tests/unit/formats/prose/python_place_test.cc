// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/python_place.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace python_place_test {

std::string interpreter(std::string_view text) {
  const std::vector<TextLine> lines = plain_text_lines(text);
  const std::optional<PythonPlace> place = last_python_place(lines);
  return place ? place->interpreter : "";
}

TEST(PythonPlace, IsTheEnvironmentOfATraceback) {
  struct Case {
    const char *line, *want;
  };
  const Case cases[] = {
      {"  File \"/home/me/my venv/lib/python3.11/site-packages/torch/__init__.py\", line 1",
       "/home/me/my venv/bin/python"},
      {"ImportError: /data/envs/ai/lib/python3.10/site-packages/x.so: undefined symbol",
       "/data/envs/ai/bin/python"},
      {"warn at /app/venv/lib64/python3.12/site-packages/torch/cuda/__init__.py:61",
       "/app/venv/bin/python"},
      {R"(  File "C:\Users\me\kohya_ss\venv\lib\site-packages\torch\__init__.py")",
       R"(C:\Users\me\kohya_ss\venv\Scripts\python.exe)"},
      {R"(  File "D:\miniconda\envs\voice\Lib\site-packages\torch\__init__.py")",
       R"(D:\miniconda\envs\voice\python.exe)"},
      {R"(  File "D:\ui\python_embeded\Lib\site-packages\torch\cuda\__init__.py")",
       R"(D:\ui\python_embeded\python.exe)"},
      {R"(File "C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\site-packages\a.py")",
       R"(C:\Users\me\AppData\Local\Programs\Python\Python311\python.exe)"},
      {R"(D:\ComfyUI>.\python_embeded\python.exe -s ComfyUI\main.py)",
       R"(.\python_embeded\python.exe)"},
      {"python_embeded\\python.exe -m pip list", ".\\python_embeded\\python.exe"},
      {"/home/me/my proj/.venv/bin/python3: No module named pip",
       "/home/me/my proj/.venv/bin/python3"},
      {"12:00 stderr: /srv/v/bin/python3.11: No module named pip", "/srv/v/bin/python3.11"},
      // Reached by name, abbreviated, or no environment at all.
      {"/usr/bin/python3: No module named pip", ""},
      {"/usr/local/bin/python: No module named pip", ""},
      {"/home/me/v/bin/python-x: No module named pip", ""},
      {"ModuleNotFoundError: No module named 'pip'", ""},
      {"/usr/local/lib/python3.10/dist-packages/torch/cuda/__init__.py:124:", ""},
      {"/usr/lib/python3/dist-packages/x.py", ""},
      {"/opt/conda/lib/python3.10/site-packages/torch/a.py", ""},
      {"/home/me/.local/lib/python3.10/site-packages/torch/a.py", ""},
      {".../.venv/lib/python3.8/site-packages/x.so: undefined symbol", ""},
      {"\"lib/python3.9/site-packages/torch/nn/modules/linear.py\"", ""},
      {R"(lora-scripts\venv\lib\site-packages\torch\cuda\__init__.py:230)", ""},
      {"put it into site-packages", ""},
  };
  for (const Case& one : cases) EXPECT_EQ(interpreter(one.line), one.want) << one.line;
}

TEST(PythonPlace, OfACommandIsThePathAlone) {
  EXPECT_EQ(
      interpreter("/usr/bin/c++ -MMD -I/e/lib/python3.11/site-packages/torch/include -c x.cc"), "");
  EXPECT_EQ(interpreter("/e/bin/python /e/lib/python3.11/site-packages/torch/run.py"),
            "/e/bin/python");
  EXPECT_EQ(
      interpreter("/my env/lib/python3.11/site-packages/torch/cuda/__init__.py:61: UserWarning"),
      "/my env/bin/python");
}

TEST(PythonPlace, IsNotThatOfABuild) {
  const char* const k_builds[] = {
      "/tmp/pip-build-env-1x/overlay/lib/python3.11/site-packages/setuptools/dist.py",
      "/home/me/.cache/uv/builds-v0/.tmpAbC/lib/python3.12/site-packages/setuptools/dist.py"};
  for (const char* build : k_builds) {
    const std::string above = "File \"/e/lib/python3.12/site-packages/pip/_internal/cli.py\"\n";
    EXPECT_EQ(interpreter(above + "File \"" + build + "\""), "/e/bin/python") << build;
  }
}

TEST(PythonPlace, OfSeveralTheLast) {
  const std::vector<TextLine> lines = plain_text_lines(
      "File \"/a/lib/python3.9/site-packages/x.py\"\n"
      "File \"/b/lib/python3.12/site-packages/y.py\"\nImportError: no");
  const std::optional<PythonPlace> place = last_python_place(lines);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->prefix, "/b");
  EXPECT_EQ(place->minor, "3.12");
  EXPECT_EQ(place->line, 2u);
}

}  // namespace python_place_test
}  // namespace cufit::formats
