// SPDX-License-Identifier: Apache-2.0
// Asks the kubelet, again and again, which pods were given which GPUs: its PodResources socket, where there is one. It needs
// the right to write to that socket, which is root's. One for each sampler; not for several threads.
#pragma once

#include <memory>
#include <string>

#include "formats/system/pod_resources.h"
#include "host/files/host.h"

namespace cufit::host {

inline constexpr const char* k_pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";

struct PodAnswer {
  uint64_t number = 0;         // of the last whole answer; 0: none yet
  formats::PodResources pods;  // of that answer
  double asked = 0;            // when it was asked for: what was so then. Seconds since the epoch
  std::string
      problem;  // why the last question had none; empty: it had, or there is no kubelet here
};

class PodResourcesClient {
 public:
  PodResourcesClient();

  // Asks if the last question is 10 s old. Does not wait for the answer, which a thread gets within a second: the next call
  // has it.
  void ask(const Host& host);
  // The newest. While the first question is open it waits, at most 200 ms from when it was put.
  const PodAnswer& newest();

 private:
  struct State;
  std::shared_ptr<State> state_;
  PodAnswer newest_;
  double asked_at_ = -1e9;  // of a clock that only grows
};

}  // namespace cufit::host
