// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace card {
namespace {

File* open_file() {
  const char* path = std::getenv("CUFIT_CARD");
  int flags = MAP_PRIVATE | MAP_ANONYMOUS, descriptor = -1;
  if (path) {
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, sizeof(File)) != 0) _exit(98);
    flags = MAP_SHARED;
  }
  void* at = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (at == MAP_FAILED) _exit(98);
  if (descriptor >= 0) close(descriptor);
  return static_cast<File*>(at);
}

// The card's books are kept right by a lock with its owner's pid: tests kill at any moment.
struct Locked {
  Locked() {
    uint64_t own = static_cast<uint64_t>(getpid()), seen = 0;
    while (!__atomic_compare_exchange_n(&file().lock, &seen, own, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
      bool dead = seen != 0 && kill(static_cast<pid_t>(seen), 0) != 0 && errno == ESRCH;
      if (dead && __atomic_compare_exchange_n(&file().lock, &seen, own, false, __ATOMIC_SEQ_CST,
                                              __ATOMIC_SEQ_CST))
        return;
      seen = 0;
      usleep(20);
    }
  }
  ~Locked() { __atomic_store_n(&file().lock, uint64_t{0}, __ATOMIC_SEQ_CST); }
};

bool lives(uint32_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  char text[512] = "";
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  ssize_t got = read(descriptor, text, sizeof text - 1);
  close(descriptor);
  const char* state = got > 0 ? std::strrchr(text, ')') : nullptr;
  return state && state[2] != 'Z' && state[2] != 'X';
}

bool is_uncounted(int index) {
  static const bool first =
      !standin::machine().gpus.empty() && standin::machine().gpus[0]->number("uncounted");
  return first && index == 0;
}

uint64_t sum(int index) {
  uint64_t all = 0;
  if (is_uncounted(index)) return 0;
  for (Process& process : file().processes) {
    if (process.pid != 0 && !lives(process.pid)) process = Process{};
    all += process.used[index];
  }
  return all;
}

Process& own() {
  uint32_t pid = static_cast<uint32_t>(getpid());
  Process* free = nullptr;
  for (Process& process : file().processes) {
    if (process.pid == pid) return process;
    if (process.pid == 0 && !free) free = &process;
  }
  if (!free) _exit(97);
  *free = Process{pid, 0, {}};
  return *free;
}

// Of an uncounted card, whose processes do not fork: found once, then without the lock.
uint64_t& own_uncounted(int index) {
  static Process* found = [] {
    Locked locked;
    return &own();
  }();
  return found->used[index];
}

std::vector<int> visible_now() {
  std::vector<int> out;
  size_t count = standin::machine().gpus.size();
  const char* names = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!names) {
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<int>(i));
    return out;
  }
  std::string rest = names;
  while (!rest.empty()) {
    std::string name = rest.substr(0, rest.find(','));
    rest = rest.size() > name.size() ? rest.substr(name.size() + 1) : "";
    for (size_t i = 0; i < count; ++i) {
      if (name == std::to_string(i) || name == standin::machine().gpus[i]->text("uuid"))
        out.push_back(static_cast<int>(i));
    }
  }
  return out;
}

const std::vector<int>& visible() {
  static const std::vector<int>* list = new std::vector<int>(visible_now());
  return *list;
}

}  // namespace

File& file() {
  static File* opened = open_file();
  return *opened;
}

int visible_count() { return static_cast<int>(visible().size()); }
int physical(int ordinal) { return visible()[static_cast<size_t>(ordinal)]; }
standin::Gpu& gpu(int ordinal) {
  return *standin::machine().gpus[static_cast<size_t>(physical(ordinal))];
}
uint64_t memory(int index) {
  return standin::machine().gpus[static_cast<size_t>(index)]->number("memory");
}

bool take(int index, uint64_t bytes) {
  if (is_uncounted(index)) {
    own_uncounted(index) += bytes;
    return true;
  }
  Locked locked;
  uint64_t all = sum(index);
  if (all + bytes > memory(index)) return false;
  own().used[index] += bytes;
  ++file().grants[index];
  if (all + bytes > file().peak[index]) file().peak[index] = all + bytes;
  return true;
}

void give(int index, uint64_t bytes) {
  if (is_uncounted(index)) {
    own_uncounted(index) -= bytes;
    return;
  }
  Locked locked;
  own().used[index] -= bytes;
}

uint64_t used_by_all(int index) {
  Locked locked;
  return sum(index);
}

}  // namespace card
