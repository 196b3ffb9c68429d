// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace actor {
namespace {

constexpr uint64_t k_mib = 1024 * 1024;

uint64_t size_of(const std::string& text) {
  uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
  char unit = text.empty() ? ' ' : text.back();
  return number * (unit == 'G' ? 1024 * k_mib : unit == 'M' ? k_mib : unit == 'K' ? 1024 : 1);
}

struct Actor {
  Calls& calls;
  std::map<std::string, uint64_t> values{};  // addresses, handles
  std::map<std::string, uint64_t> sizes{};
  std::map<int, Handle> contexts{};
  std::string note{};  // printed behind the code

  Handle handle(const std::string& name) { return reinterpret_cast<Handle>(values[name]); }
  // By reference: the call that fills it in is another argument.
  int keep(const std::string& name, int code, const uint64_t& value) {
    if (code == 0) values[name] = value;
    return code;
  }
  int keep(const std::string& name, int code, const Handle& value) {
    return keep(name, code, reinterpret_cast<uint64_t>(value));
  }
  void tell(uint64_t free_bytes, uint64_t total) {
    note =
        " free " + std::to_string(free_bytes / k_mib) + " total " + std::to_string(total / k_mib);
  }
};

using Words = std::vector<std::string>;
using Command = std::function<int(Actor&, const Words&)>;

std::string library_of(void* address) {
  Dl_info info{};
  dladdr(address, &info);
  std::string name = info.dli_fname ? info.dli_fname : "?";
  return name.substr(name.rfind('/') + 1);
}

int context(Actor& a, const Words& w) {
  int ordinal = std::atoi(w[1].c_str());
  Handle made = nullptr;
  int code = a.calls.cuDevicePrimaryCtxRetain(&made, ordinal);
  if (code == 0) a.contexts[ordinal] = made, a.calls.cuCtxSetCurrent(made);
  return code;
}

int create(Actor& a, const std::string& name, int type, int id, uint64_t size) {
  Properties wanted{};
  wanted.type = 1, wanted.location = {type, id};
  uint64_t made = 0;
  a.sizes[name] = size;
  return a.keep(name, a.calls.cuMemCreate(&made, size, &wanted, 0), made);
}

int nvml(Actor& a, const Words& w, bool second) {
  Handle device = nullptr;
  if (a.calls.nvmlInit() != 0 ||
      a.calls.nvmlHandle(static_cast<unsigned>(std::atoi(w[1].c_str())), &device) != 0)
    return 99;
  uint64_t out[5] = {};
  int code = second ? a.calls.nvmlMemory2(device, out) : a.calls.nvmlMemory(device, out);
  uint64_t total = second ? out[1] : out[0], free_bytes = second ? out[3] : out[1];
  uint64_t used = second ? out[4] + out[2] : out[2];
  a.tell(free_bytes, total);
  a.note += " used " + std::to_string(used / k_mib);
  return code;
}

int forked(Actor& a, const std::string& line) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    std::string rest = line.size() > 5 ? line.substr(5) : "";
    for (char& c : rest) c = c == ';' ? '\n' : c;
    std::istringstream script(rest);
    int code = run(a.calls, script);
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int threads(Actor& a, const Words& w) {
  int count = std::atoi(w[1].c_str()), rounds = std::atoi(w[2].c_str());
  uint64_t size = size_of(w[3]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back([&] {
      a.calls.cuCtxSetCurrent(a.contexts.begin()->second);
      for (int round = 0; round < rounds; ++round) {
        uint64_t at = 0;
        int code = a.calls.cuMemAlloc(&at, size + static_cast<uint64_t>(round) * 512);
        if (code != 0 && code != 2) ++wrong;
        if (code == 0 && a.calls.cuMemFree(at) != 0) ++wrong;
      }
    });
  }
  for (std::thread& one : all) one.join();
  return wrong;
}

// Asked for by another thread, which nobody waits for.
int behind(Actor& a, const Words& w) {
  std::thread([&calls = a.calls, context = a.contexts.begin()->second, size = size_of(w[1])] {
    uint64_t at = 0;
    calls.cuCtxSetCurrent(context);
    calls.cuMemAlloc(&at, size);
  }).detach();
  return 0;
}

int hold(Actor& a, const Words& w) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(w[2].c_str()));
  uint64_t size = size_of(w[1]);
  std::vector<uint64_t> held;
  while (std::chrono::steady_clock::now() < end) {
    uint64_t at = 0;
    int code = a.calls.cuMemAlloc(&at, size);
    if (code == 0) held.push_back(at);
    if (code != 0 && code != 2) return code;
    bool back = code == 2 || held.size() > 6;
    if (back && !held.empty()) a.calls.cuMemFree(held.back()), held.pop_back();
  }
  return 0;
}

int many(Actor& a, const Words& w) {
  int granted = 0, code = 0;
  for (int i = 0; i < std::atoi(w[1].c_str()); ++i) {
    uint64_t at = 0;
    code = a.calls.cuMemAlloc(&at, size_of(w[2]));
    if (code != 0) break;
    ++granted;
  }
  a.note = " granted " + std::to_string(granted);
  return code;
}

int graph(Actor& a, const Words& w) {
  Handle made = nullptr, node = nullptr;
  AllocationNode wanted{};
  wanted.pool.type = 1, wanted.pool.location = {1, std::atoi(w[2].c_str())};
  wanted.bytes = size_of(w[3]);
  a.calls.cuGraphCreate(&made, 0);
  return a.keep(w[1], a.calls.cuGraphAddMemAllocNode(&node, made, nullptr, 0, &wanted), made);
}

const std::map<std::string, Command>& commands() {
  static const auto* table = new std::map<std::string, Command>{
      {"init", [](Actor& a, const Words&) { return a.calls.cuInit(0); }},
      {"count",
       [](Actor& a, const Words&) {
         int n = 0;
         int code = a.calls.cuDeviceGetCount(&n);
         a.note = " " + std::to_string(n);
         return code;
       }},
      {"total",
       [](Actor& a, const Words& w) {
         size_t n = 0;
         int code = a.calls.cuDeviceTotalMem(&n, std::atoi(w[1].c_str()));
         a.note = " " + std::to_string(n / k_mib);
         return code;
       }},
      {"context", context},
      {"current",
       [](Actor& a, const Words& w) {
         return a.calls.cuCtxSetCurrent(a.contexts[std::atoi(w[1].c_str())]);
       }},
      {"release",
       [](Actor& a, const Words& w) {
         return a.calls.cuDevicePrimaryCtxRelease(std::atoi(w[1].c_str()));
       }},
      {"reset",
       [](Actor& a, const Words& w) {
         return a.calls.cuDevicePrimaryCtxReset(std::atoi(w[1].c_str()));
       }},
      {"create",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         return a.keep(w[2], a.calls.cuCtxCreate(&h, nullptr, 0, std::atoi(w[1].c_str())), h);
       }},
      {"destroy", [](Actor& a, const Words& w) { return a.calls.cuCtxDestroy(a.handle(w[1])); }},
      {"kernels",
       [](Actor&, const Words& w) {
         void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
         auto take = reinterpret_cast<int (*)(uint64_t)>(dlsym(driver, "cardKernels"));
         return take ? take(size_of(w[1])) : -1;
       }},
      {"alloc",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         return a.keep(w[1], a.calls.cuMemAlloc(&at, size_of(w[2])), at);
       }},
      {"many", many},
      {"pitch",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         size_t p = 0;
         return a.keep(w[1], a.calls.cuMemAllocPitch(&at, &p, size_of(w[2]), size_of(w[3]), 4), at);
       }},
      {"managed",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         return a.keep(w[1], a.calls.cuMemAllocManaged(&at, size_of(w[2]), 1), at);
       }},
      {"free", [](Actor& a, const Words& w) { return a.calls.cuMemFree(a.values[w[1]]); }},
      {"array",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         ArrayShape s{size_of(w[2]), size_of(w[3]), 0, 0x20, 1, 0};
         return a.keep(w[1], a.calls.cuArray3DCreate(&h, &s), h);
       }},
      {"unarray", [](Actor& a, const Words& w) { return a.calls.cuArrayDestroy(a.handle(w[1])); }},
      {"vmm",
       [](Actor& a, const Words& w) {
         return create(a, w[1], 1, std::atoi(w[2].c_str()), size_of(w[3]));
       }},
      {"host",
       [](Actor& a, const Words& w) {
         return create(a, w[1], std::atoi(w[2].c_str()), 0, size_of(w[3]));
       }},
      {"import",
       [](Actor& a, const Words& w) {
         uint64_t h = 0;
         return a.keep(w[1], a.calls.cuMemImportFromShareableHandle(&h, nullptr, 1), h);
       }},
      {"map",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         a.sizes[w[1]] = size_of(w[3]);
         a.calls.cuMemAddressReserve(&at, size_of(w[3]), 0, 0, 0);
         return a.keep(w[1], a.calls.cuMemMap(at, size_of(w[3]), 0, a.values[w[2]], 0), at);
       }},
      {"unmap",
       [](Actor& a, const Words& w) { return a.calls.cuMemUnmap(a.values[w[1]], a.sizes[w[1]]); }},
      {"close", [](Actor& a, const Words& w) { return a.calls.cuMemRelease(a.values[w[1]]); }},
      {"retain",
       [](Actor& a, const Words& w) {
         uint64_t h = 0;
         return a.keep(w[1], a.calls.cuMemRetainAllocationHandle(&h, a.handle(w[2])), h);
       }},
      {"stream",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         return a.keep(w[1], a.calls.cuStreamCreate(&h, 0), h);
       }},
      {"async",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         return a.keep(
             w[1],
             a.calls.cuMemAllocAsync(&at, size_of(w[2]), w.size() > 3 ? a.handle(w[3]) : nullptr),
             at);
       }},
      {"back",
       [](Actor& a, const Words& w) {
         return a.calls.cuMemFreeAsync(a.values[w[1]], w.size() > 2 ? a.handle(w[2]) : nullptr);
       }},
      {"sync", [](Actor& a, const Words&) { return a.calls.cuCtxSynchronize(); }},
      {"pool",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         PoolProperties p{};
         p.type = 1, p.location = {1, std::atoi(w[2].c_str())};
         return a.keep(w[1], a.calls.cuMemPoolCreate(&h, &p), h);
       }},
      {"from",
       [](Actor& a, const Words& w) {
         uint64_t at = 0;
         return a.keep(w[1],
                       a.calls.cuMemAllocFromPoolAsync(&at, size_of(w[2]), a.handle(w[3]), nullptr),
                       at);
       }},
      {"unpool", [](Actor& a, const Words& w) { return a.calls.cuMemPoolDestroy(a.handle(w[1])); }},
      {"keep",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         uint64_t n = size_of(w[2]);
         a.calls.cuDeviceGetDefaultMemPool(&h, std::atoi(w[1].c_str()));
         return a.calls.cuMemPoolSetAttribute(h, 4, &n);
       }},
      {"trim",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         a.calls.cuDeviceGetDefaultMemPool(&h, std::atoi(w[1].c_str()));
         return a.calls.cuMemPoolTrimTo(h, 0);
       }},
      {"capture",
       [](Actor& a, const Words& w) { return a.calls.cuStreamBeginCapture(a.handle(w[1]), 0); }},
      {"captured",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         return a.calls.cuStreamEndCapture(a.handle(w[1]), &h);
       }},
      {"graph", graph},
      {"ready",
       [](Actor& a, const Words& w) {
         Handle h = nullptr;
         return a.keep(w[1], a.calls.cuGraphInstantiate(&h, a.handle(w[1]), 0), h);
       }},
      {"launch",
       [](Actor& a, const Words& w) { return a.calls.cuGraphLaunch(a.handle(w[1]), nullptr); }},
      {"info",
       [](Actor& a, const Words&) {
         size_t f = 0, t = 0;
         int code = a.calls.cuMemGetInfo(&f, &t);
         a.tell(f, t);
         return code;
       }},
      {"nvml", [](Actor& a, const Words& w) { return nvml(a, w, false); }},
      {"nvml2", [](Actor& a, const Words& w) { return nvml(a, w, true); }},
      {"ask",
       [](Actor& a, const Words& w) {
         using Ask = int(const char*, void**, int, uint64_t, int*);
         void* library = dlopen("libcuda.so.1", RTLD_NOW);
         auto* ask = reinterpret_cast<Ask*>(dlsym(library, "cuGetProcAddress_v2"));
         void* found = nullptr;
         int status = 0;
         int code = ask(w[1].c_str(), &found, std::atoi(w[2].c_str()), 0, &status);
         a.note = " " + library_of(found) + " " + std::to_string(status);
         return code;
       }},
      {"chain",
       [](Actor& a, const Words&) {
         auto* chain = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "chain"));
         a.note = std::string(" ") + (chain ? chain() : "none");
         return 0;
       }},
      {"error",
       [](Actor& a, const Words& w) {
         dlerror();
         void* found = w[2].empty() ? dlsym(RTLD_DEFAULT, w[1].c_str())
                                    : dlvsym(RTLD_DEFAULT, w[1].c_str(), w[2].c_str());
         const char* said = dlerror();
         a.note = std::string(found ? " found" : " none") + (said ? ", said" : "");
         return 0;
       }},
      {"whose",
       [](Actor& a, const Words&) {
         a.note = " " + library_of(reinterpret_cast<void*>(a.calls.cuMemAlloc));
         return 0;
       }},
      {"threads", threads},
      {"behind", behind},
      {"hold", hold},
      {"unlink", [](Actor&, const Words&) { return unlink(std::getenv("CUFIT_DOMAIN")); }},
      {"filesize",
       [](Actor&, const Words& w) {
         rlimit most{size_of(w[1]), size_of(w[1])};
         return setrlimit(RLIMIT_FSIZE, &most);
       }},
      {"closefds",
       [](Actor&, const Words&) {
         for (int i = 3; i < 1024; ++i) close(i);
         return 0;
       }},
      {"sleep",
       [](Actor&, const Words& w) {
         usleep(static_cast<useconds_t>(std::atof(w[1].c_str()) * 1e6));
         return 0;
       }},
      {"die",
       [](Actor&, const Words&) {
         std::fflush(stdout);
         raise(SIGKILL);
         return 0;
       }},
      {"exec",
       [](Actor&, const Words& w) {
         std::fflush(stdout);
         execl("/proc/self/exe", "actor", w[1].c_str(), w[2].c_str(), nullptr);
         return 98;
       }},
      {"other",
       [](Actor&, const Words& w) {
         std::fflush(stdout);
         execl("/bin/sleep", "sleep", w[1].c_str(), nullptr);
         return 98;
       }},
  };
  return *table;
}

}  // namespace

int run(Calls& calls, std::istream& script) {
  Actor actor{calls};
  int last = 0;
  for (std::string line; std::getline(script, line);) {
    line.erase(0, line.find_first_not_of(' '));
    std::istringstream in(line);
    Words words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) continue;
    actor.note.clear();
    if (words[0] == "fork") {
      last = forked(actor, line);
      std::printf("fork: %d\n", last);
      continue;
    }
    auto found = commands().find(words[0]);
    if (found == commands().end()) {
      std::fprintf(stderr, "actor: no command %s\n", words[0].c_str());
      return 9;
    }
    for (int i = 0; i < 4; ++i) words.push_back("");
    last = found->second(actor, words);
    if (words[0] != "sleep")
      std::printf("%s: %d%s\n", line.c_str(), last,
                  last == 0 || words[0] == "many" ? actor.note.c_str() : "");
    std::fflush(stdout);
  }
  return last;
}

}  // namespace actor
