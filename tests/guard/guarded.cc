// SPDX-License-Identifier: Apache-2.0
#include "guarded.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/card.h"
#include "support/places.h"

namespace cufit::test {
namespace {

const char* const k_uuid = "GPU-00000000-1111-2222-3333-444444444440";

card::File card_file(const std::string& path) {
  card::File file{};
  std::string bytes = read_bytes(path);
  std::memcpy(static_cast<void*>(&file), bytes.data(), std::min(bytes.size(), sizeof file));
  return file;
}

bool lives(uint32_t pid) {
  std::string stat = read_bytes("/proc/" + std::to_string(pid) + "/stat");
  size_t end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] != 'Z';
}

}  // namespace

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  chmod(path.c_str(), 0600);
}

void Guarded::SetUp() {
  char name[] = "/tmp/cufit-guard-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  folder_ = name;
  std::filesystem::create_directory(path("rings"));
  guard = copy_of(binary_dir() + "/libcufit-guard.so");
  describe("");
  limit(1024);
}

std::string Guarded::copy_of(const std::string& library) const {
  std::string name = library.substr(library.rfind('/') + 1);
  std::filesystem::copy_file(library, path(name),
                             std::filesystem::copy_options::overwrite_existing);
  return path(name);
}

void Guarded::TearDown() {
  for (const int each : outputs_) close(each);
  std::filesystem::remove_all(folder_);
}

void Guarded::describe(const std::string& machine, const std::string& card) {
  machine_ = machine + "\n[gpu]\nname = Card\nuuid = " + k_uuid +
             "\npci = 0000:65:00.0\nmemory = 4294967296\ncontext = 314572800\n" + card + "\n";
  write_bytes(path("machine"), machine_);
}

void Guarded::add_card(const std::string& text) {
  machine_ +=
      "[gpu]\nname = Card\nuuid = GPU-00000000-1111-2222-3333-444444444441\n"
      "pci = 0000:66:00.0\nmemory = 4294967296\ncontext = 314572800\n" +
      text + "\n";
  write_bytes(path("machine"), machine_);
}

void Guarded::limit(uint64_t mib, uint64_t context_mib) {
  domain = formats::QuotaDomain{};
  formats::QuotaDevice device;
  device.uuid = k_uuid, device.pci = "0000:65:00.0";
  device.limit_bytes = mib * k_mib, device.context_bytes = context_mib * k_mib;
  domain.devices.push_back(device);
  write_domain();
}

void Guarded::write_domain() {
  auto bytes = formats::make_quota_domain(domain);
  ASSERT_TRUE(bytes) << bytes.error().text();
  write_bytes(path("domain"), *bytes);
}

pid_t Guarded::start_until(const std::string& text, const std::string& script) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = start(script, "dlsym", "guard_actor", ends[1]);
  close(ends[1]);
  outputs_.push_back(ends[0]);
  std::string seen;
  char piece[256];
  while (seen.find(text) == std::string::npos) {
    const ssize_t got = read(ends[0], piece, sizeof piece);
    if (got <= 0) {
      ADD_FAILURE() << "no `" << text << "` in " << seen;
      break;
    }
    seen.append(piece, static_cast<size_t>(got));
  }
  return child;
}

pid_t Guarded::start(const std::string& script, const std::string& route,
                     const std::string& program, int out, int err) {
  std::string cards = binary_dir() + "/guard_card";
  std::vector<std::string> values = environment;
  values.push_back("LD_LIBRARY_PATH=" + cards);
  values.push_back("CUFIT_STANDIN=" + path("machine"));
  values.push_back("CUFIT_CARD=" + path("card"));
  values.push_back("CUFIT_DOMAIN=" + path("domain"));
  values.push_back("CUFIT_RING=" + path("rings"));
  if (guarded) values.push_back("LD_PRELOAD=" + guard);
  std::vector<char*> pointers;
  for (std::string& value : values) pointers.push_back(value.data());
  pointers.push_back(nullptr);
  std::string file = program.find('/') == std::string::npos ? cards + "/" + program : program;
  pid_t child = fork();
  if (child != 0) return child;
  if (out >= 0) dup2(out, 1);
  if (err >= 0) dup2(err, 2);
  execle(file.c_str(), file.c_str(), route.c_str(), script.c_str(), nullptr, pointers.data());
  _exit(97);
}

Ran Guarded::run(const std::string& script, const std::string& route, const std::string& program) {
  int out = open(path("out").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int err = open(path("err").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  Ran ran;
  pid_t child = start(script, route, program, out, err);
  waitpid(child, &ran.status, 0);
  close(out), close(err);
  ran.out = read_bytes(path("out")), ran.err = read_bytes(path("err"));
  return ran;
}

Ran Guarded::cufit(const std::string& script) {
  const bool was = guarded;
  guarded = false;
  std::vector<std::string> kept = environment;
  environment.push_back("CUFIT=" + program_on_machine());
  environment.push_back("DIR=" + folder_);
  environment.push_back("PATH=/usr/bin:/bin");
  environment.push_back("LANG=C");
  environment.push_back("CUFIT_RUN_DIR=" + path("run"));
  Ran ran = run("unset CUFIT_DOMAIN CUFIT_RING\n" + script, "-c", "/bin/sh");
  environment = std::move(kept);
  guarded = was;
  return ran;
}

formats::QuotaDomain Guarded::domain_now() const {
  auto read = formats::parse_quota_domain(read_bytes(path("domain")));
  EXPECT_TRUE(read) << read.error().text();
  return read ? *read : formats::QuotaDomain{};
}

uint64_t Guarded::used_mib() const { return domain_now().devices.at(0).used_bytes / k_mib; }

uint64_t Guarded::card_used(int index) const {
  uint64_t sum = 0;
  for (const card::Process& process : card_file(path("card")).processes) {
    if (process.pid != 0 && lives(process.pid)) sum += process.used[index];
  }
  return sum;
}

uint64_t Guarded::card_peak(int index) const { return card_file(path("card")).peak[index]; }

std::vector<formats::GpuRing> Guarded::rings() const {
  std::vector<formats::GpuRing> out;
  for (const auto& entry : std::filesystem::directory_iterator(path("rings"))) {
    auto ring = formats::parse_gpu_ring(read_bytes(entry.path().string()));
    EXPECT_TRUE(ring) << ring.error().text();
    if (ring) out.push_back(*ring);
  }
  return out;
}

}  // namespace cufit::test
