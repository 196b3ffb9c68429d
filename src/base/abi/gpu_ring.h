/* SPDX-License-Identifier: Apache-2.0
 * The black box of one process: what it asked of the GPU driver for memory, in a file that the guard (guard/) maps and
 * the kernel keeps when the process is killed. `cufit explain FILE.ring` reads it (formats/system/gpu_ring.h).
 *
 *   0       header, 65536 bytes
 *   65536   4096 events of 48 bytes, the n-th at n % 4096
 *
 * Written with plain stores by many threads: an event counts only if its `sequence` says the place it stands in.
 */
#ifndef CUFIT_ABI_GPU_RING_H
#define CUFIT_ABI_GPU_RING_H

#include <stdint.h>

#define CUFIT_RING_MAGIC "CUFITRG1" /* 8 bytes, no end */
#define CUFIT_RING_VERSION 1u
#define CUFIT_RING_BYTES 262144u
#define CUFIT_RING_HEADER_BYTES 65536u
#define CUFIT_RING_EVENT_BYTES 48u
#define CUFIT_RING_EVENTS 4096u
#define CUFIT_RING_DEVICES 16u
#define CUFIT_RING_REFUSALS 16u
#define CUFIT_RING_MODULES 64u
#define CUFIT_RING_KEPT 64u /* recordings in one folder; of those beyond it the oldest go, unless their process lives */
#define CUFIT_RING_NO_DEVICE 255u
#define CUFIT_RING_NO_MODULE 255u

/* cufit_ring_header.flags */
#define CUFIT_RING_QUOTA 1u         /* a quota domain was in force */
#define CUFIT_RING_NVML 2u          /* NVML said what this process holds */
#define CUFIT_RING_DOMAIN_FAILED 4u /* a domain was named and could not be used: nothing was limited */

/* What was asked for: cufit_ring_event.kind. */
enum cufit_ring_kind {
  CUFIT_RING_KIND_NONE = 0,
  CUFIT_RING_KIND_ALLOC = 1,      /* cuMemAlloc, cuMemAllocPitch */
  CUFIT_RING_KIND_MANAGED = 2,    /* cuMemAllocManaged */
  CUFIT_RING_KIND_VMM = 3,        /* cuMemCreate */
  CUFIT_RING_KIND_POOL = 4,       /* cuMemAllocAsync, cuMemAllocFromPoolAsync: the request */
  CUFIT_RING_KIND_POOL_SIZE = 5,  /* what a pool reserves changed; bytes = the new size, address = the pool */
  CUFIT_RING_KIND_ARRAY = 6,      /* arrays and mipmapped arrays */
  CUFIT_RING_KIND_GRAPH = 7,      /* a graph's allocation node; GRAPH_SIZE below is what graphs reserve */
  CUFIT_RING_KIND_GRAPH_SIZE = 8,
  CUFIT_RING_KIND_CONTEXT = 9,
  CUFIT_RING_KIND_OVERHEAD = 10, /* what NVML says beyond the above; bytes = the new figure */
  CUFIT_RING_KIND_LAST = 10
};

/* What became of it: cufit_ring_event.what. */
enum cufit_ring_what {
  CUFIT_RING_GRANTED = 1,
  CUFIT_RING_RELEASED = 2,
  CUFIT_RING_REFUSED = 3,        /* by the quota */
  CUFIT_RING_DRIVER_REFUSED = 4, /* by the driver, with `result` */
  CUFIT_RING_SPILLED = 5,
  CUFIT_RING_WHAT_LAST = 5
};

struct cufit_ring_event {
  uint64_t ns;      /* CLOCK_MONOTONIC */
  uint64_t address; /* or a handle */
  uint64_t bytes;   /* as asked */
  uint64_t used;    /* charged to this process on the device, after it */
  uint32_t sequence; /* n + 1 of the n-th event; written last */
  uint32_t tid;
  uint16_t result; /* CUresult */
  uint8_t kind;
  uint8_t what;
  uint8_t device; /* CUDA ordinal of this process; 255 = none */
  uint8_t module; /* row of `modules` that called; 255 = not known */
  uint8_t reserved[2];
};

/* By CUDA ordinal. 128 bytes. */
struct cufit_ring_device {
  uint8_t uuid[16];
  char pci[16];
  uint64_t limit_bytes; /* UINT64_MAX: none */
  uint64_t total_bytes;
  uint64_t used_bytes; /* charged to this process */
  uint64_t peak_bytes;
  uint64_t overhead_bytes;
  uint64_t told_free_bytes; /* the last answer of cuMemGetInfo to the program */
  uint64_t told_total_bytes;
  uint64_t grants;
  uint64_t refusals;
  uint64_t driver_refusals;
  uint32_t seen; /* 1 = the row counts */
  uint32_t reserved0;
  uint64_t reserved1;
};

/* The last refusals, the n-th at n % 16. 128 bytes. */
struct cufit_ring_refusal {
  uint64_t ns;
  uint64_t asked_bytes;
  uint64_t own_bytes;    /* charged to this process */
  uint64_t domain_bytes; /* charged to all */
  uint64_t limit_bytes;
  uint64_t swept_bytes;   /* what the sweep of dead processes gave back before */
  uint64_t trimmed_bytes; /* what trimming pools and graph memory gave back */
  uint64_t card_free_bytes; /* as the driver says; UINT64_MAX: not asked */
  uint64_t caller_offset;   /* in its module */
  uint64_t reserved0[5];
  uint32_t sequence; /* n + 1; written last */
  uint32_t tid;
  uint8_t kind;
  uint8_t what; /* REFUSED or DRIVER_REFUSED */
  uint8_t device;
  uint8_t module;
  uint32_t processes; /* live ones in the domain */
};

struct cufit_ring_module {
  uint64_t base;
  char name[56]; /* of the file, cut from the left; ends with 0 */
};

struct cufit_ring_header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t event_bytes;
  uint32_t event_count;
  uint32_t pid;
  uint32_t driver_version; /* cuDriverGetVersion: 13000 */
  uint64_t start_ticks;
  uint64_t pid_namespace;
  uint64_t started_ns;       /* CLOCK_REALTIME at ... */
  uint64_t started_monotonic_ns; /* ... this CLOCK_MONOTONIC */
  uint64_t head;             /* events ever written */
  uint64_t refusal_head;     /* refusals ever written */
  uint64_t arguments_hash;   /* FNV-1a of /proc/self/cmdline */
  uint32_t module_count;
  uint32_t flags;
  char program[64]; /* /proc/self/comm and what follows; ends with 0 */
  char guard_version[32];
  char foreign[64];
  char unknown[4][64];
  char share[64]; /* the name of the domain, as in cufit_domain_header; empty: none */
  uint8_t reserved0[1024 - 576];
  struct cufit_ring_device devices[CUFIT_RING_DEVICES];    /* at 1024 */
  uint8_t reserved1[1024];
  struct cufit_ring_refusal refusals[CUFIT_RING_REFUSALS]; /* at 4096 */
  uint8_t reserved2[2048];
  struct cufit_ring_module modules[CUFIT_RING_MODULES]; /* at 8192 */
  uint8_t reserved3[65536 - 12288];
};

#ifdef __cplusplus
static_assert(sizeof(struct cufit_ring_event) == CUFIT_RING_EVENT_BYTES, "layout");
static_assert(sizeof(struct cufit_ring_device) == 128, "layout");
static_assert(sizeof(struct cufit_ring_refusal) == 128, "layout");
static_assert(sizeof(struct cufit_ring_header) == CUFIT_RING_HEADER_BYTES, "layout");
static_assert(CUFIT_RING_HEADER_BYTES + CUFIT_RING_EVENTS * CUFIT_RING_EVENT_BYTES == CUFIT_RING_BYTES, "layout");
#endif

#endif
