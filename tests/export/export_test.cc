// SPDX-License-Identifier: Apache-2.0
// What `cufit export` writes is read by those who know the formats: TOML and JSON by our readers,
// YAML by Python's, shell by bash and shellcheck, the Dockerfile by a small linter below. A lock
// whose free texts try to break out of their comments must give the same files but for comments.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "formats/toml_text.h"
#include "report/export.h"
#include "support/places.h"

namespace cufit {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool succeeds(const std::string& line) {
  const int status = std::system(line.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool there(const std::string& program) {
  return succeeds("command -v " + program + " >/dev/null 2>&1");
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/cufit-export-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// For a shell, in a build folder of any name.
std::string quoted_program() { return "'" + cufit::test::program() + "'"; }

const fs::path k_lock = fs::path(cufit::test::source_dir()) / "tests/export/lock";

Files exported(const std::string& format, const fs::path& lock, const std::string& more = "") {
  const Folder folder;
  const fs::path out = folder.path() / "out";
  fs::create_directory(out);
  const std::string line = quoted_program() + " export --lang en --to " + format + " --lock '" +
                           lock.string() + "' -o " + out.string() + "/ " + more + " >/dev/null";
  EXPECT_TRUE(succeeds(line)) << line;
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(out))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), out).string()] = read_text(entry.path());
  EXPECT_FALSE(files.empty()) << format;
  return files;
}

std::vector<std::string> all_formats() {
  std::vector<std::string> out;
  for (const std::string_view word : split(report::k_lock_formats, ' ')) out.emplace_back(word);
  return out;
}

// What is changed in it would be refused for its sum alone.
std::string lock_without_sum() {
  const std::string text = read_text(k_lock / "cufit.lock");
  return text.substr(0, text.find("\n[sum]"));
}

// The fixture with texts that end comments, strings and lines in one format or another.
void make_hostile_lock(const fs::path& folder) {
  fs::create_directory(folder);
  for (const auto& entry : fs::directory_iterator(k_lock))
    fs::copy(entry.path(), folder / entry.path().filename());
  std::string text = lock_without_sum();
  const std::string evil =
      R"(x\nRUN evil-marker\n\\\n, \u0085evil: 1 \u2028evil: 2 \u2029evil: 3 \r\nevil: 4 \" ' $(id) `id` *)"
      R"(/ --> \u001b[31m @name@ {file} %post)";
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("serves = [\"RTX 5090,580\"]", "serves = [\"" + evil + "\"]");
  replace("targets = [\"RTX 5090,580\"", "targets = [\"" + evil + "\"");
  replace("\"uvicorn[standard]\"]",
          "\"uvicorn[standard]\", \"" + evil + "\", \"numpy; " + evil + "\"]");
  std::ofstream(folder / "cufit.lock", std::ios::binary) << text;
}

// Without lines that are comments, whatever ends a line in the loosest reader of these formats.
std::string without_comments(std::string text) {
  for (const std::string_view end : {"\r", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    for (size_t at = text.find(end); at != std::string::npos; at = text.find(end, at))
      text.replace(at, end.size(), "\n");
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!starts_with(trim(line), "#")) out += std::string(line) + "\n";
  return out;
}

TEST(Export, HostileTextsOfALockStayInComments) {
  const Folder folder;
  const fs::path hostile = folder.path() / "lock";
  make_hostile_lock(hostile);
  for (const std::string& format : all_formats()) {
    const Files plain = exported(format, k_lock), got = exported(format, hostile);
    ASSERT_EQ(plain.size(), got.size()) << format;
    bool seen = false;
    for (const auto& [name, text] : plain) {
      ASSERT_TRUE(got.count(name)) << name;
      EXPECT_EQ(without_comments(text), without_comments(got.at(name))) << format << " " << name;
      EXPECT_EQ(got.at(name).find('\x1b'), std::string::npos) << name;
      seen = seen || got.at(name).find("evil-marker") != std::string::npos;
    }
    // The test would prove nothing where the text does not arrive.
    const bool has_comments = format != "devcontainer" && format != "compose" && format != "k8s";
    EXPECT_EQ(seen, has_comments) << format;
  }
}

TEST(Export, RefusesValuesThatAreNotWhatTheyShouldBe) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"python = \"3.12\"", "python = \"3.12; rm\""},
      {"torch = \"2.14.1\"", "torch = \"2.14.1 && x\""},
      {"tag = \"cu130\"", "tag = \"cu130\\n\""},
      {"platform = \"linux_x86_64\"", "platform = \"win_amd64\""},
      {"file = \"pylock.cu130.toml\"", "file = \"pylock.cu 130.toml\""},
  };
  for (const auto& [from, to] : changes) {
    const Folder folder;
    const fs::path lock = folder.path() / "lock";
    fs::create_directory(lock);
    for (const auto& entry : fs::directory_iterator(k_lock))
      fs::copy(entry.path(), lock / entry.path().filename());
    fs::copy(k_lock / "pylock.cu130.toml", lock / "pylock.cu 130.toml");
    std::string text = lock_without_sum();
    text.replace(text.find(from), from.size(), to);
    std::ofstream(lock / "cufit.lock", std::ios::binary) << text;
    const std::string line = quoted_program() + " export --lang en --to dockerfile --lock '" +
                             lock.string() + "' 2>&1 | grep -q 'cannot be\\|class'";
    EXPECT_TRUE(succeeds(line)) << to;
    EXPECT_FALSE(succeeds(quoted_program() + " export --to dockerfile --lock " + lock.string() +
                          " >/dev/null 2>&1"))
        << to;
  }
}

TEST(Export, TomlAndJsonParse) {
  for (const char* format : {"uv", "pixi"})
    for (const auto& [name, text] : exported(format, k_lock)) {
      const auto document = formats::parse_toml(text, name);
      EXPECT_TRUE(document) << (document ? "" : document.error().text());
    }
  for (const auto& [name, text] : exported("devcontainer", k_lock)) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << name;
    EXPECT_EQ(json.contains("hostRequirements"), name == ".devcontainer/devcontainer.json");
  }
}

TEST(Export, YamlParses) {
  if (!succeeds("python3 -c 'import yaml' 2>/dev/null")) GTEST_SKIP() << "no Python with yaml here";
  const Folder folder;
  for (const char* format : {"conda", "compose", "k8s"})
    for (const auto& [name, text] : exported(format, k_lock)) {
      std::ofstream(folder.path() / name, std::ios::binary) << text;
      EXPECT_TRUE(
          succeeds("python3 -c 'import sys, yaml; docs = list(yaml.safe_load_all(open(sys.argv[1]"
                   "))); assert docs and all(isinstance(d, dict) for d in docs)' " +
                   (folder.path() / name).string()))
          << name;
    }
  // Kubernetes: numbers in `values` are texts, limits are numbers; the claim is the one that is
  // named.
  EXPECT_TRUE(succeeds("python3 - " + folder.path().string() + R"py( <<'P'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1] + "/job.yaml"))["spec"]["template"]["spec"]
terms = job["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
assert terms and all(isinstance(v, str) for t in terms for e in t["matchExpressions"] for v in e["values"])
assert all(e["operator"] in ("Gt", "In") and (e["operator"] != "Gt" or len(e["values"]) == 1) for t in terms for e in t["matchExpressions"])
assert job["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
claim, dra = yaml.safe_load_all(open(sys.argv[1] + "/job-dra.yaml"))
pod = dra["spec"]["template"]["spec"]
assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == claim["metadata"]["name"]
assert pod["containers"][0]["resources"]["claims"][0]["name"] == pod["resourceClaims"][0]["name"]
cel = claim["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"]
assert cel.count("(") == cel.count(")") and not cel.rstrip().endswith("||")
services = yaml.safe_load(open(sys.argv[1] + "/compose.yaml"))["services"]
device = services["train"]["deploy"]["resources"]["reservations"]["devices"][0]
assert device["capabilities"] == ["gpu"] and device["count"] == "all"
assert services["train-cpu"]["profiles"] == ["cpu"] and "deploy" not in services["train-cpu"]
assert len({service["image"] for service in services.values()}) == 1
assert all(service["pull_policy"] == "build" for service in services.values())
P
)py"));
}

// Where those who publish the formats can be asked: Docker Compose, the schemas of Kubernetes.
TEST(Export, PassesTheCheckersThatAreInstalled) {
  const std::vector<std::vector<std::string>> checkers = {
      {"compose", "docker-compose", "docker-compose -f compose.yaml config -q"},
      {"k8s", "kubernetes-validate", "kubernetes-validate --strict job.yaml job-dra.yaml"},
  };
  size_t asked = 0;
  for (const std::vector<std::string>& one : checkers) {
    if (!there(one[1])) continue;
    const Folder folder;
    for (const auto& [name, text] : exported(one[0], k_lock))
      std::ofstream(folder.path() / name, std::ios::binary) << text;
    EXPECT_TRUE(succeeds("cd " + folder.path().string() + " && " + one[2] + " >/dev/null"))
        << one[2];
    ++asked;
  }
  if (asked == 0) GTEST_SKIP() << "neither docker-compose nor kubernetes-validate is here";
}

TEST(Export, ShellScriptsPassBashAndShellcheck) {
  const Folder folder;
  Files scripts = exported("slurm", k_lock);
  // The sections of an Apptainer definition are scripts too.
  const std::string definition = exported("apptainer", k_lock)["image.def"];
  std::string section;
  for (const std::string_view line : split(definition, '\n')) {
    if (starts_with(line, "%")) section = std::string(line.substr(1)) + ".sh";
    if (starts_with(line, "%")) scripts[section] = "#!/bin/sh\n";
    if (!section.empty() && !starts_with(line, "%")) scripts[section] += std::string(line) + "\n";
  }
  scripts.erase("files.sh");
  EXPECT_TRUE(contains(scripts["post.sh"], "cufit env create cu126"));
  EXPECT_EQ(scripts.size(), 6u);
  for (const auto& [name, text] : scripts) {
    const std::string path = (folder.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_TRUE(succeeds("bash -n " + path)) << name;
    if (there("shellcheck")) {
      EXPECT_TRUE(succeeds("shellcheck -e SC1091 " + path)) << name;
    }
  }
}

// What hadolint would look at first.
std::vector<std::string> dockerfile_faults(const std::string& text) {
  const std::set<std::string> k_known = {"ARG",  "FROM",    "ENV",        "RUN", "COPY",
                                         "USER", "WORKDIR", "ENTRYPOINT", "CMD"};
  std::vector<std::string> faults;
  std::map<std::string, int> count;
  std::string instruction, user;
  size_t stages = 0;
  const auto check = [&] {
    if (instruction.empty()) return;
    const std::string word = instruction.substr(0, instruction.find(' '));
    const std::string rest = instruction.substr(std::min(instruction.size(), word.size() + 1));
    if (k_known.count(word) == 0) faults.push_back("unknown instruction " + word);
    ++count[word];
    if (word == "FROM") ++stages;
    if (word == "USER") user = rest;
    if ((word == "CMD" || word == "ENTRYPOINT") &&
        nlohmann::json::parse(rest, nullptr, false).is_discarded())
      faults.push_back(word + " is not in exec form");
    for (const char* bad : {"upgrade", "nvidia-driver", "libcuda", "cuda-drivers", "sudo ",
                            ":latest", "--torch-backend=auto", "UV_TORCH_BACKEND=auto", "ADD "})
      if (contains(instruction, bad)) faults.push_back(std::string("holds ") + bad);
    // One that the first build finds: a release's tag or a digest, no place to fill in.
    if (word == "ARG" && starts_with(rest, "BASE=") &&
        (contains(rest, "FILL_IN") || !contains(rest.substr(5), ":")))
      faults.push_back("base image that cannot be pulled as it is");
    instruction.clear();
  };
  for (const std::string_view line : split(text, '\n')) {
    if (starts_with(trim(line), "#")) continue;
    const bool continues = ends_with(line, "\\");
    instruction += std::string(continues ? line.substr(0, line.size() - 1) : line);
    if (!continues) check();
  }
  if (!instruction.empty()) faults.push_back("the last line continues");
  if (count["CMD"] != 1 || count["ENTRYPOINT"] != 1) faults.push_back("not one CMD and ENTRYPOINT");
  if (stages != 2) faults.push_back("not two stages");
  if (user.empty() || starts_with(user, "0") || user == "root") faults.push_back("runs as root");
  return faults;
}

TEST(Export, DockerfilePassesTheLinter) {
  const std::string text = exported("dockerfile", k_lock)["Dockerfile"];
  EXPECT_EQ(dockerfile_faults(text), std::vector<std::string>{});
  EXPECT_FALSE(contains(text, "NVIDIA_REQUIRE_CUDA=\""));
  // The linter can fail.
  EXPECT_EQ(dockerfile_faults(text + "RUN apt-get upgrade\n"),
            std::vector<std::string>{"holds upgrade"});
  EXPECT_EQ(dockerfile_faults(text + "CMD python\n").size(), 2u);
}

TEST(Export, RequiresTheFamilyOfTheLowestClass) {
  const std::string both =
      exported("dockerfile", k_lock, "--class cu130 --class cu126")["Dockerfile"];
  EXPECT_TRUE(contains(both, "ENV NVIDIA_REQUIRE_CUDA=\"cuda>=12.0\"\n")) << both;
  const std::string newest = exported("dockerfile", k_lock, "--class cu130")["Dockerfile"];
  EXPECT_TRUE(contains(newest, "ENV NVIDIA_REQUIRE_CUDA=\"cuda>=13.0\"\n")) << newest;
}

TEST(Export, AnImageOfSomeClassesGetsALockOfThese) {
  Files files = exported("dockerfile", k_lock, "--class cu126");
  EXPECT_TRUE(contains(files["Dockerfile"], "COPY cufit.image.lock ./cufit.lock\n"));
  const auto lock = resolve::parse_lock(files["cufit.image.lock"], "cufit.image.lock");
  ASSERT_TRUE(lock);
  ASSERT_EQ(lock->classes.size(), 1u);
  EXPECT_EQ(lock->classes[0].name, "cu126");
}

// containers/image, which many releases of Apptainer ask registries with, refuses a tag and a
// digest.
TEST(Export, AnApptainerBaseIsNamedByDigestAlone) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  const auto from = [&](const std::string& name) {
    return exported("apptainer", k_lock, "--base " + name + digest)["image.def"];
  };
  const std::string port = from("registry.example:5000/team/python:3.12");
  EXPECT_TRUE(contains(port, "From: registry.example:5000/team/python" + digest + "\n")) << port;
  EXPECT_TRUE(contains(port, "digest of registry.example:5000/team/python:3.12:")) << port;
  for (const char* name : {"registry.example:5000/team/python", "python"}) {
    const std::string plain = from(name);
    EXPECT_TRUE(contains(plain, "From: " + std::string(name) + digest + "\n")) << plain;
    EXPECT_FALSE(contains(plain, "# By the digest")) << plain;
  }
}

TEST(Export, RefusesClassNamesThatPixiDoesNotTake) {
  for (const char* name : {"linux", "1080", "cu130_old", "cu130-"}) {
    const Folder folder;
    const fs::path lock = folder.path() / "lock";
    fs::create_directory(lock);
    for (const auto& entry : fs::directory_iterator(k_lock))
      fs::copy(entry.path(), lock / entry.path().filename());
    std::string text = lock_without_sum();
    const std::string was = "name = \"cu130\"";
    text.replace(text.find(was), was.size(), "name = \"" + std::string(name) + "\"");
    std::ofstream(lock / "cufit.lock", std::ios::binary) << text;
    const std::string line = quoted_program() + " export --lang en --lock " + lock.string() +
                             " -o " + folder.path().string() + "/out/ --to ";
    EXPECT_TRUE(succeeds(line + "pixi 2>&1 | grep -q 'name of a pixi platform'")) << name;
    EXPECT_TRUE(succeeds(line + "conda >/dev/null")) << name;
  }
}

}  // namespace
}  // namespace cufit
