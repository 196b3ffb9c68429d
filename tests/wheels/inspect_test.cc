// SPDX-License-Identifier: Apache-2.0
// Real wheels: `cufit inspect` against NVIDIA's own cuobjdump, entry for entry.
//
// What must agree: for every ELF file with fatbin sections, the entries of each kind in number,
// order and architecture as `cuobjdump -all --list-elf` and `--list-ptx` list them
// ("Name.7.sm_90a.cubin"). cuobjdump 13.5 writes the suffix of architecture-specific code ("a") and
// leaves the family's ("f") out, so the "f" is not compared; it names no PTX ISA. Where cuobjdump
// itself gives up ("fatal: Invalid ELF" on bitsandbytes 0.50.2's CUDA 12.1 library, which cuobjdump
// 12.8 reads), what it listed until then must be how our list begins.
// Wheels: $CUFIT_WHEELS, else <build>/wheels (tools/fetch-wheels fills it).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "formats/archive/zip.h"
#include "formats/binary/elf_image.h"
#include "formats/binary/fatbin.h"
#include "host/files/host.h"
#include "support/places.h"

namespace cufit {
namespace {

namespace fs = std::filesystem;

fs::path wheel_folder() {
  const char* given = std::getenv("CUFIT_WHEELS");
  return given && *given ? fs::path(given) : fs::path(cufit::test::binary_dir()) / "wheels";
}

fs::path find_wheel(const std::string& prefix) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(wheel_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (starts_with(name, prefix) && ends_with(name, ".whl")) return entry.path();
  }
  return {};
}

struct Output {
  std::string text;
  int status = -1;
};

Output run(const std::string& command) {
  Output out;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 1 << 16> buffer;
  while (size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    out.text.append(buffer.data(), got);
  int status = pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

// Members of a wheel unpacked for cuobjdump, which reads files only; removed at the end.
class Unpacked {
 public:
  explicit Unpacked(const fs::path& wheel) {
    host::RealHost host;
    Result<std::unique_ptr<ByteSource>> source = host.open(wheel.string());
    EXPECT_TRUE(source) << wheel;
    if (!source) return;
    Result<formats::ZipFile> zip = formats::ZipFile::open(std::move(*source));
    EXPECT_TRUE(zip) << (zip ? "" : zip.error().text());
    if (zip) zip_ = std::make_unique<formats::ZipFile>(std::move(*zip));
    folder_ = fs::path(cufit::test::binary_dir()) / "wheels.unpacked" / wheel.filename();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Unpacked() { fs::remove_all(folder_); }

  std::vector<std::string> names(const std::string& part) const {
    std::vector<std::string> out;
    for (const formats::ZipMember& member : zip_ ? zip_->members() : k_none)
      if (contains(member.name, part)) out.push_back(member.name);
    return out;
  }
  fs::path unpack(const std::string& name) const {
    for (const formats::ZipMember& member : zip_ ? zip_->members() : k_none) {
      if (member.name != name) continue;
      Result<std::string> bytes = zip_->read(member);
      EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().text());
      fs::path to = folder_ / fs::path(name).filename();
      std::ofstream(to, std::ios::binary) << bytes.value_or("");
      fs::permissions(to, fs::perms::owner_all);
      return to;
    }
    return {};
  }

 private:
  static inline const std::vector<formats::ZipMember> k_none;
  std::unique_ptr<formats::ZipFile> zip_;
  fs::path folder_;
};

// "sm_90a" of "ELF file    7: libx.7.sm_90a.cubin"
std::vector<std::string> architectures(const std::string& text) {
  std::vector<std::string> out;
  for (std::string_view line : split_lines(text)) {
    size_t at = line.rfind(".sm_");
    if (at == std::string_view::npos) continue;
    out.emplace_back(line.substr(at + 1, line.find('.', at + 1) - at - 1));
  }
  return out;
}

void expect_listed(const std::vector<std::string>& ours, const Output& theirs) {
  std::vector<std::string> listed = architectures(theirs.text);
  if (contains(theirs.text, "cuobjdump fatal")) {
    ASSERT_LE(listed.size(), ours.size());
    EXPECT_TRUE(std::equal(listed.begin(), listed.end(), ours.begin()));
    return;
  }
  EXPECT_EQ(ours, listed);
}

// Our entries of both sections in file order, in cuobjdump's notation.
struct Ours {
  std::vector<std::string> cubins, ptx;
};

Ours our_entries(const fs::path& path) {
  Ours out;
  host::RealHost host;
  Result<std::unique_ptr<ByteSource>> source = host.open(path.string());
  if (!source) return out;
  std::vector<formats::Damage> damage;
  Result<formats::ElfImage> image = formats::ElfImage::open(**source, damage);
  if (!image) return out;
  // cuobjdump lists executable code first.
  for (const char* section_name : {".nv_fatbin", "__nv_relfatbin"}) {
    for (const formats::Section& section : image->sections) {
      if (section.name != section_name) continue;
      formats::walk_fatbin(
          **source, section.offset, section.size,
          [&](const formats::FatbinEntry& entry) {
            std::string arch = entry.arch();
            if (ends_with(arch, "f")) arch.pop_back();
            if (entry.code_kind() == formats::CodeKind::cubin) out.cubins.push_back("sm_" + arch);
            if (entry.code_kind() == formats::CodeKind::ptx) out.ptx.push_back("sm_" + arch);
          },
          damage);
    }
  }
  EXPECT_TRUE(damage.empty()) << path << ": " << damage[0].what;
  return out;
}

// The JSON of the whole program must count what cuobjdump lists.
void expect_json_counts(const fs::path& path, const Ours& expected) {
  Output output = run(format("'{}' inspect --json '{}'", cufit::test::program(), path.string()));
  ASSERT_EQ(output.status, 0) << path;
  nlohmann::json json = nlohmann::json::parse(output.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json.at("schema"), "cufit.inspect/1");
  ASSERT_EQ(json.at("files").size(), 1u) << path;
  std::map<std::string, size_t> counted, listed;
  for (const nlohmann::json& code : json["files"][0]["device_code"]) {
    std::string arch = code.at("arch");
    if (ends_with(arch, "f")) arch.pop_back();
    if (code["kind"] == "cubin" || code["kind"] == "ptx")
      counted[code["kind"].get<std::string>() + " sm_" + arch] += code.at("count").get<size_t>();
  }
  for (const std::string& arch : expected.cubins) ++listed["cubin " + arch];
  for (const std::string& arch : expected.ptx) ++listed["ptx " + arch];
  EXPECT_EQ(counted, listed) << path;
}

struct WheelCase {
  const char* prefix;
  std::vector<std::string> members;  // parts of member names
};

class RealWheels : public testing::TestWithParam<WheelCase> {};

TEST_P(RealWheels, AgreeWithCuobjdump) {
  const fs::path tool_wheel = find_wheel("nvidia_cuda_cuobjdump-"),
                 wheel = find_wheel(GetParam().prefix);
  if (tool_wheel.empty() || wheel.empty()) {
    GTEST_SKIP() << "no " << GetParam().prefix << "*.whl and nvidia_cuda_cuobjdump-*.whl in "
                 << wheel_folder()
                 << "; `tools/fetch-wheels DIR` gets them, CUFIT_WHEELS=DIR names their folder";
  }
  Unpacked tools(tool_wheel), contents(wheel);
  const std::vector<std::string> tool_names = tools.names("bin/cuobjdump");
  ASSERT_FALSE(tool_names.empty());
  const fs::path cuobjdump = tools.unpack(tool_names.front());
  for (const std::string& part : GetParam().members) {
    const std::vector<std::string> names = contents.names(part);
    ASSERT_FALSE(names.empty()) << part;
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const fs::path file = contents.unpack(name);
      Ours ours = our_entries(file);
      Output elf = run(format("'{}' -all --list-elf '{}' 2>&1", cuobjdump.string(), file.string()));
      Output ptx = run(format("'{}' -all --list-ptx '{}' 2>&1", cuobjdump.string(), file.string()));
      EXPECT_FALSE(ours.cubins.empty());
      expect_listed(ours.cubins, elf);
      expect_listed(ours.ptx, ptx);
      expect_json_counts(file, ours);
      fs::remove(file);
    }
  }
}

const WheelCase k_wheels[] = {
    {"torch-2.11.0-",
     {"lib/libtorch_cuda.so", "lib/libtorch_cuda_linalg.so", "lib/libtorch_nvshmem.so"}},
    {"torch-2.7.1-", {"lib/libtorch_cuda.so", "lib/libtorch_cuda_linalg.so"}},
    {"torchvision-0.26.0-", {"torchvision/_C.so", "libnvjpeg"}},
    {"bitsandbytes-0.50.2-", {"libbitsandbytes_cuda"}},
    {"nvidia_nccl_cu13-", {"libnccl.so"}},
    {"nvidia_cublas-13", {"libcublas.so", "libcublasLt.so"}},
    {"nvidia_cudnn_cu13-", {"libcudnn_engines_precompiled.so", "libcudnn_ops.so"}},
};
INSTANTIATE_TEST_SUITE_P(Wheels, RealWheels, testing::ValuesIn(k_wheels), [](const auto& wheel) {
  std::string name = wheel.param.prefix;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
});

// Reading a wheel without unpacking it finds what reading its unpacked files finds.
TEST(RealWheel, IsReadWithoutUnpacking) {
  const fs::path wheel = find_wheel("torchvision-0.26.0-");
  if (wheel.empty()) GTEST_SKIP() << "no torchvision-0.26.0-*.whl in " << wheel_folder();
  Output output = run(format("'{}' inspect --json '{}'", cufit::test::program(), wheel.string()));
  ASSERT_EQ(output.status, 0);
  nlohmann::json json = nlohmann::json::parse(output.text, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  Unpacked contents(wheel);
  size_t compared = 0;
  for (nlohmann::json file : json["files"]) {
    std::string path = file["path"], name = path.substr(path.find('!') + 1);
    fs::path single = contents.unpack(name);
    Output other = run(format("'{}' inspect --json '{}'", cufit::test::program(), single.string()));
    nlohmann::json expected = nlohmann::json::parse(other.text, nullptr, false);
    ASSERT_FALSE(expected.is_discarded());
    expected["files"][0]["path"] = path;
    EXPECT_EQ(file, expected["files"][0]);
    ++compared;
  }
  EXPECT_EQ(compared, 4u);
  EXPECT_TRUE(json["errors"].empty());
}

}  // namespace
}  // namespace cufit
