// SPDX-License-Identifier: Apache-2.0
#include "formats/python/python_metadata.h"

#include <gtest/gtest.h>

#include "formats/python/conda_meta.h"
#include "formats/python/marker.h"
#include "formats/python/version_py.h"

namespace cufit::formats {
namespace python_metadata_test {

TEST(PythonMetadata, ReadsHeadersUpToTheBody) {
  PythonMetadata data = parse_python_metadata(
      "Metadata-Version: 2.1\r\nname: Nvidia_Cuda.Runtime\r\nVersion: 13.0.96\r\nSummary: a\r\n  "
      "Name: not this\r\n"
      "Requires-Dist: filelock\r\nRequires-Dist: x>=1;\r\n  extra == \"a\"\r\n\r\nVersion: "
      "body\r\nName: body\r\n");
  EXPECT_EQ(data.name, "Nvidia_Cuda.Runtime");
  EXPECT_EQ(data.version, "13.0.96");
  EXPECT_EQ(data.requires_dist, (std::vector<std::string>{"filelock", "x>=1; extra == \"a\""}));
  EXPECT_EQ(parse_python_metadata("").name, "");
  EXPECT_EQ(parse_python_metadata("no colon\n: no key\nName: x").name, "x");
  EXPECT_EQ(header_values("Tag: a\nTag: b\n", "tag"), (std::vector<std::string>{"a", "b"}));
}

TEST(PythonMetadata, NormalisesNames) {
  for (auto [name, normal] :
       {std::pair{"Flash_Attn", "flash-attn"}, {"a.-_b", "a-b"}, {"ruamel.yaml", "ruamel-yaml"}})
    EXPECT_EQ(normalize_name(name), normal);
}

TEST(PythonMetadata, ReadsFolderNames) {
  struct Row {
    const char *folder, *name, *version;
  };
  for (Row row :
       {Row{"torch-2.11.0.dist-info", "torch", "2.11.0"},
        Row{"torch-2.1.0+cu121.dist-info", "torch", "2.1.0+cu121"},
        Row{"flash_attn-2.8.3-py3.12.egg-info", "flash_attn", "2.8.3"},
        Row{"a-b-1.0.dist-info", "a-b", "1.0"}, Row{"~orch-2.1.0.dist-info", "~orch", "2.1.0"},
        Row{"mine.egg-info", "mine", ""}}) {
    auto folder = parse_metadata_folder(row.folder);
    ASSERT_TRUE(folder) << row.folder;
    EXPECT_EQ(folder->name, row.name);
    EXPECT_EQ(folder->version, row.version);
  }
  EXPECT_FALSE(parse_metadata_folder("torch"));
  EXPECT_FALSE(parse_metadata_folder(".dist-info"));
}

TEST(PythonMetadata, ReadsRecord) {
  RecordSummary record = parse_record(
      "torch/__init__.py,sha256=x,1\ntorch/nn/__init__.py,,\r\ntorch/lib/libc10.so,sha256=y,2\n"
      "\"odd, "
      "\"\"name\"\"/x.so\",,\n\"open.so,,\n../../../bin/x,,\n\nnvidia/cu13/lib/"
      "libcudart.so.13,,\na.so.txt,,\n");
  EXPECT_EQ(record.packages, (std::vector<std::string>{"torch/__init__.py"}));
  EXPECT_EQ(record.shared_objects,
            (std::vector<std::string>{"torch/lib/libc10.so", "odd, \"name\"/x.so",
                                      "nvidia/cu13/lib/libcudart.so.13"}));
  EXPECT_EQ(record.files, 8u);
  EXPECT_EQ(record.bad_lines, (std::vector<uint64_t>{5}));
}

TEST(PythonMetadata, KnowsFileNames) {
  EXPECT_TRUE(is_shared_object_name("a/libcudart.so.12"));
  EXPECT_TRUE(is_shared_object_name("libx.so.1.2.3"));
  EXPECT_FALSE(is_shared_object_name("a.so/readme"));
  EXPECT_FALSE(is_shared_object_name("libx.so.py"));
  EXPECT_EQ(python_tag_of("torch/_C.cpython-312-x86_64-linux-gnu.so"), "cpython-312");
  EXPECT_EQ(python_tag_of("x/_C.abi3.so"), "abi3");
  EXPECT_EQ(python_tag_of("x.pypy310-pp73-x86_64-linux-gnu.so"), "pypy310");
  EXPECT_EQ(python_tag_of("libc10.so"), "");
}

TEST(PythonMetadata, ReadsPyvenvAndPth) {
  auto config = parse_pyvenv_cfg("home = /usr/bin\nUV = 0.5\nbroken\nversion_info=3.12.3\n");
  ASSERT_EQ(config.size(), 3u);
  EXPECT_EQ(config[1].first, "uv");
  EXPECT_EQ(config[2].second, "3.12.3");
  PthFile pth = parse_pth("# c\nimport sys; sys.path\n/opt/x\r\nimportant\n\n");
  EXPECT_EQ(pth.imports, 1u);
  EXPECT_EQ(pth.folders, (std::vector<std::string>{"/opt/x", "important"}));
}

TEST(Marker, KeepsWhatApplies) {
  MarkerEnvironment here{"3.12", "x86_64"};
  struct Row {
    const char *line, *kept;  // null = does not apply
  };
  for (Row row :
       {Row{"filelock", "filelock"},
        Row{"nvidia-cudnn-cu13==9.19.0.56; platform_system == \"Linux\"",
            "nvidia-cudnn-cu13==9.19.0.56"},
        Row{"x; extra == 'dev'", nullptr}, Row{"x ; python_version < \"3.10\"", nullptr},
        Row{"x; python_version >= '3.9' and (sys_platform == 'win32' or os_name == 'posix')", "x"},
        Row{"x; platform_machine == 'x86_64' and extra == 'y'", nullptr},
        Row{"x; platform_machine != 'x86_64'", nullptr}, Row{"x; 'linux' in sys_platform", "x"},
        Row{"x; sys_platform not in 'win32 linux'", nullptr}, Row{"x; something_new == '1'", "x"},
        Row{"x; ((((", "x"}, Row{"x; extra == 'a' or something_new == '1'", "x"},
        Row{"x @ file:///a;b ; extra == 'c'", nullptr}}) {
    auto kept = requirement_that_applies(row.line, here);
    EXPECT_EQ(kept.has_value(), row.kept != nullptr) << row.line;
    EXPECT_EQ(kept.value_or(""), row.kept ? row.kept : "");
  }
  EXPECT_TRUE(requirement_that_applies("x; python_version < '3'", {"", "x86_64"}))
      << "unknown Python";
}

// Versions as PEP 440 orders them, from either side; a full version where it is known; the extra that
// somebody asks for, however it is spelt.
TEST(Marker, KnowsFullVersionsAndExtras) {
  struct Row {
    const char* line;
    bool applies;
  };
  MarkerEnvironment here{"3.12", "x86_64", "3.12.3", "opt-einsum"};
  for (Row row :
       {Row{"x; python_full_version >= '3.12.3'", true},
        Row{"x; python_full_version > '3.12.3'", false}, Row{"x; python_version ~= '3.8'", true},
        Row{"x; python_version ~= '4.0'", false}, Row{"x; python_version == '3.*'", true},
        Row{"x; python_version == '3.1.*'", false}, Row{"x; '3.10' <= python_version", true},
        Row{"x; '3.13' < python_version", false}, Row{"x; extra == 'opt_einsum'", true},
        Row{"x; 'Opt.Einsum' == extra", true}, Row{"x; extra == 'optree'", false},
        Row{"x; extra != 'opt-einsum'", false}})
    EXPECT_EQ(requirement_that_applies(row.line, here).has_value(), row.applies) << row.line;
}

// What is nested deeper than any real marker is not known, and what is not known applies.
TEST(Marker, NestingHasABound) {
  const auto nested = [](size_t depth) {
    return "x; " + std::string(depth, '(') + "python_version < '3'" + std::string(depth, ')');
  };
  const MarkerEnvironment here{"3.12", "x86_64"};
  EXPECT_FALSE(requirement_that_applies(nested(20), here));
  EXPECT_TRUE(requirement_that_applies(nested(40), here));
  EXPECT_TRUE(requirement_that_applies(nested(1'000'000), here));
}

// Each operator on both sides of its bound and on the bound itself.
TEST(Marker, ComparesVersionsAtTheirBounds) {
  const struct {
    const char* operation;
    bool below, equal, above;  // whether it holds for Python 3.10, 3.11, 3.12
  } rows[] = {{"<", true, false, false},  {"<=", true, true, false},  {">", false, false, true},
              {">=", false, true, true},  {"==", false, true, false}, {"!=", true, false, true},
              {"===", false, true, false}};
  for (const auto& row : rows) {
    const std::string line = std::string("x; python_version ") + row.operation + " \"3.11\"";
    const auto applies = [&](const char* python) {
      return requirement_that_applies(line, {python, "x86_64"}).has_value();
    };
    EXPECT_EQ(applies("3.10"), row.below) << line;
    EXPECT_EQ(applies("3.11"), row.equal) << line;
    EXPECT_EQ(applies("3.12"), row.above) << line;
  }
}

TEST(VersionPy, ReadsAllEras) {
  TorchVersionFile old =
      parse_torch_version("__version__ = '0.4.1'\ndebug = False\ncuda = '9.0.176'\n");
  EXPECT_EQ(*old.version.text, "0.4.1");
  EXPECT_EQ(*old.cuda.text, "9.0.176");
  EXPECT_FALSE(old.hip.present);
  TorchVersionFile now = parse_torch_version(
      "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = "
      "'2.11.0+cu130'\ndebug = True # x\n"
      "cuda: Optional[str] = '13.0'\ngit_version = '70d9'\nhip: Optional[str] = None\n");
  EXPECT_EQ(*now.cuda.text, "13.0");
  EXPECT_TRUE(now.hip.present);
  EXPECT_FALSE(now.hip.text);
  EXPECT_EQ(now.debug, true);
  TorchVersionFile cpu = parse_torch_version("__version__ = '2.5.1+cpu'\r\ncuda = None\r\n");
  EXPECT_TRUE(cpu.cuda.present);
  EXPECT_FALSE(cpu.cuda.text);
  TorchVersionFile none =
      parse_torch_version("cuda = get()\n  cuda = '1'\n# cuda = '2'\ncuda = '3");
  EXPECT_FALSE(none.cuda.present);
}

TEST(CondaMeta, NamesAndRecords) {
  auto name = parse_conda_file_name("cuda-version-12.6-h7480c83_3.json");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->name, "cuda-version");
  EXPECT_EQ(name->version, "12.6");
  EXPECT_EQ(name->build, "h7480c83_3");
  EXPECT_FALSE(parse_conda_file_name("history"));
  EXPECT_FALSE(parse_conda_file_name("a-b.json"));
  auto record = parse_conda_record(
      R"({"build":"cuda126_py312","name":"pytorch","version":"2.5.1","channel":"conda-forge","depends":["libtorch 2.5.1"],
      "files":["lib/libtorch.so","lib/python3.12/site-packages/torch/__init__.py","x.txt"],"link":{"name":"inner"}})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->name, "pytorch");
  EXPECT_EQ(record->shared_objects, (std::vector<std::string>{"lib/libtorch.so"}));
  EXPECT_EQ(record->packages.size(), 1u);
  auto bad = parse_conda_record(R"({"name": "a", "files": [)");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().what.find("byte"), std::string::npos);
  EXPECT_FALSE(parse_conda_record("[]"));
  EXPECT_FALSE(parse_conda_record(std::string(100000, '[')));
}

}  // namespace python_metadata_test
}  // namespace cufit::formats
