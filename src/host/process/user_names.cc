// SPDX-License-Identifier: Apache-2.0
#include "host/process/user_names.h"

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cufit::host {
namespace {

constexpr std::chrono::milliseconds k_most_wait{200};
constexpr size_t k_most_answers = 4096;

struct NameServiceState {
  std::mutex mutex;
  std::condition_variable answered;
  std::map<uint32_t, std::string> answers;
  bool is_open = false;  // a question is
};

std::string name_of_user(uint32_t uid) {
  std::vector<char> room(16384);  // an entry with a long list of groups or a photograph's name
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return {};
  return entry.pw_name;
}

void ask_name_service(const std::shared_ptr<NameServiceState>& state, uint32_t uid) {
  std::string name = name_of_user(uid);
  const std::lock_guard<std::mutex> lock(state->mutex);
  if (state->answers.size() >= k_most_answers) state->answers.clear();
  state->answers[uid] = std::move(name);
  state->is_open = false;
  state->answered.notify_all();
}

}  // namespace

UserLookup name_service() {
  auto state = std::make_shared<NameServiceState>();
  return [state](uint32_t uid) -> std::optional<std::string> {
    std::unique_lock<std::mutex> lock(state->mutex);
    const auto take = [&]() -> std::optional<std::string> {
      const auto known = state->answers.find(uid);
      if (known == state->answers.end()) return std::nullopt;
      std::string name = std::move(known->second);
      state->answers.erase(known);  // who asks keeps it as long as he thinks right
      return name;
    };
    if (std::optional<std::string> name = take()) return name;
    if (state->is_open) return std::nullopt;
    state->is_open = true;
    try {
      std::thread(ask_name_service, state, uid).detach();
    } catch (const std::system_error&) {  // no more threads: next time
      state->is_open = false;
      return std::nullopt;
    }
    state->answered.wait_for(lock, k_most_wait, [&] { return !state->is_open; });
    return take();
  };
}

}  // namespace cufit::host
