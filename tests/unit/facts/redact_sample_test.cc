// SPDX-License-Identifier: Apache-2.0
#include "facts/redact_sample.h"

#include <gtest/gtest.h>

#include "facts/gpu_sample_json.h"

namespace cufit::facts {
namespace redact_sample_test {

GpuSample full_sample() {
  GpuSample out;
  out.gpus.resize(2);
  out.gpus[0].uuid = "GPU-5f7a1c22-1111-2222-3333-444455556666";
  out.gpus[1].uuid = "MIG-0a1b2c3d-1111-2222-3333-444455556666";
  out.gpus[1].parent_uuid = out.gpus[0].uuid;
  out.gpus[0].pods = {{"secretns", "secretpod", "secretname"}};
  SampledProcess process;
  process.pid = 77;
  ProcessOwner& owner = process.owner;
  owner.uid = 1234;
  owner.user = "secretann";
  owner.command = "/home/secretann/venv/bin/python /home/secretann/secretproject/train.py --x 1";
  owner.container = "secretc0ffee";
  owner.container_name = "secretname";
  owner.pod_uid = "secret-uid";
  owner.pod = "secretpod";
  owner.pod_namespace = "secretns";
  owner.slurm_job = "48213";
  owner.unit = "secret.service";
  owner.quota = "/dev/shm/secret";
  owner.environment = "secretclass";
  owner.python_environment = "/home/secretann/venv";
  out.processes = {process, process};
  out.processes[1].owner.user = "secretbo";
  return out;
}

TEST(RedactSample, NothingThatTellsWhoIsLeft) {
  GpuSample sample = full_sample();
  SampleRedactor redactor;
  redactor.redact(sample);
  const std::string text = sample_to_json(sample);
  for (const char* name : {"secret", "5f7a1c22", "0a1b2c3d", "48213", "1234", "train.py", "/home"})
    EXPECT_EQ(text.find(name), std::string::npos) << name << " in " << text;
  EXPECT_EQ(sample.processes[0].owner.command, "python");
  EXPECT_EQ(sample.gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(sample.gpus[1].uuid, "MIG-00000000-0000-0000-0000-000000000002");
}

TEST(RedactSample, EqualThingsStayEqualAndOthersApart) {
  GpuSample first = full_sample(), second = full_sample();
  std::swap(second.processes[0], second.processes[1]);
  SampleRedactor redactor;
  redactor.redact(first);
  redactor.redact(second);
  EXPECT_EQ(first.gpus[1].parent_uuid, first.gpus[0].uuid);
  EXPECT_NE(first.processes[0].owner.user, first.processes[1].owner.user);
  EXPECT_EQ(first.processes[0].owner.user, second.processes[1].owner.user);
  EXPECT_EQ(first.gpus[0].pods->at(0).pod, first.processes[0].owner.pod);
  EXPECT_EQ(first.processes[0].owner.container, second.processes[0].owner.container);
}

TEST(RedactSample, WhatTheSystemRunsAsIsNobodysName) {
  GpuSample sample = full_sample();
  sample.processes[0].owner.uid = 0;
  sample.processes[0].owner.user = "root";
  SampleRedactor redactor;
  redactor.redact(sample);
  EXPECT_EQ(sample.processes[0].owner.user, "root");
}

}  // namespace redact_sample_test
}  // namespace cufit::facts
