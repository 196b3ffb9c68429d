// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>

#include "calls.h"

namespace actor {

// One line a command, words by blanks; sizes as 10M, 64K, 1G. Prints "<line>: <code>" and what was asked for.
//   init | count | total N | context N | current N | release N | reset N | create N NAME | destroy NAME
//   alloc NAME SIZE | pitch NAME WIDTH HEIGHT | managed NAME SIZE | free NAME | many COUNT SIZE | array NAME W H | unarray NAME
//   vmm NAME DEVICE SIZE | host NAME TYPE SIZE | import NAME | map NAME HANDLE SIZE | unmap NAME | close NAME | retain NAME MAPPED
//   stream NAME | async NAME SIZE STREAM | back NAME STREAM | sync | pool NAME DEVICE | from NAME SIZE POOL | unpool NAME
//   keep DEVICE SIZE (release threshold) | trim DEVICE | capture STREAM | captured STREAM
//   graph NAME DEVICE SIZE | ready NAME | launch NAME
//   kernels SIZE                 the driver takes so much without an allocation
//   whose                        the library that cuMemAlloc lies in
//   ask NAME VERSION             the library that cuGetProcAddress points into, and its status
//   chain                        what the libraries chain_a and chain_b say of each other
//   error NAME [VERSION]         looks a name up that there is or is not
//   info | nvml N | nvml2 N      free and total in MiB
//   fork [COMMAND; COMMAND...] | exec ROUTE SCRIPT | other SECONDS (becomes sleep) | threads COUNT ROUNDS SIZE | closefds | unlink (the domain) |
//   filesize SIZE (RLIMIT_FSIZE) | sleep SECONDS | die
//   hold SIZE SECONDS            allocates and frees until the time is over, prints nothing
int run(Calls& calls, std::istream& script);

}  // namespace actor
