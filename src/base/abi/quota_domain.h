/* SPDX-License-Identifier: Apache-2.0
 * The quota domain: one file that all processes of a `cufit run --vram` map. The launcher makes it
 * (formats/system/quota_domain.h has the bytes), the guard (guard/) charges in it, `cufit quota` reads it.
 * C, because the guard has no C++ library; all numbers little-endian, as the machine has them.
 *
 *   0      header, 4096 bytes: what the launcher decided, and one row per GPU
 *   4096   slot_count slots of 512 bytes: one per process, written by that process alone
 *
 * There is no total in the file: what is used of a GPU is the sum of `used` over all slots. A slot belongs to
 * whoever holds a classic record lock (fcntl F_SETLK, F_WRLCK) on its first byte; the kernel drops it when the process
 * ends, however it ends. A slot without a lock is dead if its process is gone, was replaced (start_ticks) or
 * no longer maps the file (exec); then any process may take the lock, clear the numbers, then the token.
 * A classic lock goes with ANY descriptor of the file that its process closes: whoever reads the file in a process
 * that also runs under a guard must not open it twice.
 * Byte 0 of the file is the lock for adding a row of `devices`. A launcher that has not yet become its program holds a
 * shared lock on byte 1.
 */
#ifndef CUFIT_ABI_QUOTA_DOMAIN_H
#define CUFIT_ABI_QUOTA_DOMAIN_H

#include <stdint.h>

#define CUFIT_DOMAIN_MAGIC "CUFITQD1" /* 8 bytes, no end */
#define CUFIT_DOMAIN_VERSION 1u
#define CUFIT_DOMAIN_DEVICES 16u
#define CUFIT_DOMAIN_HEADER_BYTES 4096u
#define CUFIT_DOMAIN_SLOT_BYTES 512u
#define CUFIT_DOMAIN_MAX_SLOTS 4096u
#define CUFIT_DOMAIN_NO_LIMIT UINT64_MAX
#define CUFIT_DOMAIN_LAUNCH_LOCK 1u

/* cufit_domain_header.flags */
#define CUFIT_DOMAIN_NVML_OWN_PROCESS 1u /* driver >= 565: NVML says what a process itself holds */
#define CUFIT_DOMAIN_CHARGE_MANAGED 2u /* cuMemAllocManaged counts in full; by default not at all */

/* cufit_domain_device.flags */
#define CUFIT_DOMAIN_DEVICE_MIG \
  1u /* uuid is a MIG instance's; it is never matched by PCI address */

/* One GPU or MIG instance. Matched by uuid, else by PCI address, never by an index. 128 bytes. */
struct cufit_domain_device {
  uint8_t uuid[16]; /* all zero: not known */
  char pci[16];     /* "0000:65:00.0", lower case, ends with 0; empty: not known */
  uint64_t limit_bytes;
  uint64_t total_bytes;   /* of the card, for readers; 0 = not known */
  uint64_t context_bytes; /* what a context takes, where NVML does not say it */
  uint32_t ready;         /* written last: 1 = the row counts */
  uint32_t flags;
  /* For readers only; nothing is enforced by these. */
  uint64_t peak_bytes; /* highest sum of `granted` */
  uint64_t refusals;   /* requests that the quota refused */
  uint64_t spilled_bytes;
  uint64_t driver_refusals; /* within the quota, and the card was full */
  uint64_t reserved[4];
};

struct cufit_domain_header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes; /* 4096 */
  uint32_t slot_count;
  uint32_t slot_bytes; /* 512 */
  uint32_t flags;
  uint32_t used_slots;          /* slots from here on were never taken; only grows */
  uint64_t default_limit_bytes; /* for a GPU without a row, which gets one; NO_LIMIT = none */
  uint64_t default_context_bytes;
  uint64_t created_ns; /* CLOCK_REALTIME */
  uint64_t reserved0;
  char name[64];       /* of --share, or empty; ends with 0 */
  char foreign[64];    /* another library between programs and the driver, as a guard saw it */
  char unknown[4][64]; /* allocating calls of the driver that the guard does not know */
  uint8_t reserved1[1024 - 448];
  struct cufit_domain_device devices[CUFIT_DOMAIN_DEVICES]; /* at 1024 */
  uint8_t reserved2[1024];
};

/* One process. 512 bytes. */
struct cufit_domain_slot {
  uint64_t token; /* 0 = free; else a number of this claim, so that an owner knows its slot again */
  uint32_t pid;   /* in the pid namespace below */
  uint32_t reserved0;
  uint64_t start_ticks;                    /* field 22 of /proc/PID/stat */
  uint64_t pid_namespace;                  /* inode of /proc/self/ns/pid */
  uint64_t claimed_ns;                     /* CLOCK_REALTIME */
  char name[24];                           /* of the program, cut; ends with 0 */
  uint64_t used[CUFIT_DOMAIN_DEVICES];     /* at 64: bytes charged, by row of `devices` */
  uint64_t overhead[CUFIT_DOMAIN_DEVICES]; /* the part of `used` that contexts and modules take */
  /* The part of `used` that the driver has given and the program has: without requests that are still being decided,
   * which may be refused. Never more than `used`, but for an instant between two stores: readers take the smaller. */
  uint64_t granted[CUFIT_DOMAIN_DEVICES];
  uint32_t refusals[CUFIT_DOMAIN_DEVICES];
};

#ifdef __cplusplus
static_assert(sizeof(struct cufit_domain_device) == 128, "layout");
static_assert(sizeof(struct cufit_domain_header) == CUFIT_DOMAIN_HEADER_BYTES, "layout");
static_assert(sizeof(struct cufit_domain_slot) == CUFIT_DOMAIN_SLOT_BYTES, "layout");
#endif

#endif
