// SPDX-License-Identifier: Apache-2.0
// The kernel's log, in any form it is found: syslog(2) or `dmesg` ("<6>[   12.3] text"), /dev/kmsg
// ("6,339,514090,-;text"), syslog files ("Nov 21 00:12:00 host kernel: [ 12.3] text"). Kept are the
// lines that say something about an NVIDIA GPU: the driver's own, nouveau's, refused module
// signatures, PCI windows that did not fit. Time stamps and host names are dropped, so that equal
// lines are equal and nothing personal is kept. The lines are untrusted (user programs may write to
// the log): control characters are replaced, counts and lengths bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

// "NVRM: Xid (PCI:0000:01:00): 79, pid=..., GPU has fallen off the bus."
struct Xid {
  uint32_t number = 0;
  std::string pci;     // "0000:01:00"
  std::string text;    // the last line with this number and device
  uint32_t count = 0;  // equal numbers of one device are counted together
};

struct KernelLog {
  // each text once, in order of first appearance; the middle is left out when too many
  std::vector<std::string> lines;
  std::vector<Xid> xids;  // in order of first appearance
};

KernelLog parse_kernel_log(std::string_view text);

}  // namespace cufit::formats
