// SPDX-License-Identifier: Apache-2.0
#include "host/process/pod_resources.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "host/install/http.h"

namespace cufit::host {
namespace {

constexpr double k_ask_again_seconds =
    10;  // the kubelet answers 100 questions a second, to all who ask
constexpr double k_first_answer_wait_seconds = 0.2;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}
double growing_seconds() { return seconds_of(std::chrono::steady_clock::now().time_since_epoch()); }
double epoch_seconds() { return seconds_of(std::chrono::system_clock::now().time_since_epoch()); }

Result<formats::PodResources> ask_kubelet(const std::string& socket) {
  GrpcRequest request;
  request.socket = socket;
  request.method = "/v1.PodResourcesLister/List";
  request.body = std::string(5, '\0');  // a frame around a message without fields
  CUFIT_TRY(body, grpc_call(request));
  Result<std::string_view> message = formats::grpc_message(body);
  if (!message)
    return fail(message.error().code,
                format("`{}`: {}", k_pod_resources_socket, message.error().what));
  formats::PodResources pods = formats::parse_pod_resources(*message);
  if (pods.damages.empty()) return pods;
  return fail(Code::malformed, format("`{}`: byte {}: {}", k_pod_resources_socket,
                                      pods.damages[0].offset, pods.damages[0].what));
}

// While one of these lives, no signal is taken by a thread that is started.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// Of the thread as well, which may outlive the client by a second.
struct PodResourcesClient::State {
  std::mutex mutex;
  std::condition_variable answered;
  bool is_open = false;  // a question is
  std::optional<Result<formats::PodResources>> answer;
  double asked = 0;  // of the answer
};

PodResourcesClient::PodResourcesClient() : state_(std::make_shared<State>()) {}

void PodResourcesClient::ask(const Host& host) {
  if (growing_seconds() - asked_at_ < k_ask_again_seconds) return;
  asked_at_ = growing_seconds();
  Result<std::string> place = host.socket_place(k_pod_resources_socket);
  if (!place) {
    newest_ = {};  // a kubelet that was here is gone
    if (place.error().code == Code::no_permission)
      newest_.problem = format("{}; as root the kubelet can be asked", place.error().what);
    return;
  }
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->is_open) return;
  state_->is_open = true;
  const auto run = [state = state_, socket = *place, asked = epoch_seconds()] {
    Result<formats::PodResources> answer = ask_kubelet(socket);
    const std::lock_guard<std::mutex> of_thread(state->mutex);
    state->answer = std::move(answer);
    state->asked = asked;
    state->is_open = false;
    state->answered.notify_all();
  };
  try {
    const NoSignals none;
    std::thread(run).detach();
  } catch (const std::system_error&) {  // no more threads: next time
    state_->is_open = false;
  }
}

const PodAnswer& PodResourcesClient::newest() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (newest_.number == 0 && newest_.problem.empty() && state_->is_open) {
    const double left = asked_at_ + k_first_answer_wait_seconds - growing_seconds();
    state_->answered.wait_for(lock, std::chrono::duration<double>(left),
                              [&] { return !state_->is_open; });
  }
  if (!state_->answer) return newest_;
  Result<formats::PodResources> answer = std::move(*state_->answer);
  state_->answer.reset();
  newest_.problem = answer ? "" : answer.error().text();
  if (!answer) return newest_;
  newest_.pods = std::move(*answer);
  newest_.asked = state_->asked;
  ++newest_.number;
  return newest_;
}

}  // namespace cufit::host
