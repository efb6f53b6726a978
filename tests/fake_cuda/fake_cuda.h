/* SPDX-License-Identifier: MIT
 * The interface through which tests control the fake CUDA driver: which objects are alive, which calls were made, which
 * call is to fail, and which violations occurred. The fake driver is a shared library that stands in for libcuda.so.1.
 * It runs work on the host, in order and asynchronously; a kernel runs as the CPU function that is registered for its
 * name (rondoTestKernel). It behaves as docs/cuda-probes.md says a real driver does, and is stricter where Rondo must
 * be: it records misuse as a violation, and tests assert that there is none.
 *
 *    const fake_cuda_control *fake = fake_cuda_get();   ... fake->reset(); ... assert_int_equal(fake->violations(), 0);
 *
 * Environment variables RONDO_TEST_FAKE_CUDA_*, read when the library is loaded:
 *
 *    DEVICES   0 to 16, default 2
 *    MEMORY    bytes of each device, default 8 GiB
 *    VERSION   default 13000
 *    SEED      not 0: the nodes of a graph that are ready run in an order drawn from this seed
 *    SERIAL    1: launches of kernels and graphs return when they have run, and start after all work that was enqueued
 *              before on any stream of the device, as under tools that observe one kernel at a time
 *    LATE      not 0: streams delay work that nobody waits for, by times drawn from this seed (late.c)
 *    HANG      a path: while a file is there, no stream starts any work, as on a device that hangs
 *    STRICT    set, read at the end: a process that misused the driver or left an object exits with 1
 *
 * Threads: any.
 */
#ifndef RONDO_TESTS_FAKE_CUDA_H
#define RONDO_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda/fake_entry.h"

/* What the ledger knows. Contexts are alive while retained; nodes go with their graph, functions with their module. */
typedef enum fake_cuda_kind {
  FAKE_CUDA_CONTEXT,
  FAKE_CUDA_STREAM,
  FAKE_CUDA_EVENT,
  FAKE_CUDA_MODULE,
  FAKE_CUDA_FUNCTION,
  FAKE_CUDA_GRAPH,
  FAKE_CUDA_NODE,
  FAKE_CUDA_EXEC,
  FAKE_CUDA_RESERVATION,
  FAKE_CUDA_PHYSICAL, /* handles not yet released */
  FAKE_CUDA_MAPPING,
  FAKE_CUDA_HOST_MEMORY,
  FAKE_CUDA_POOL_MEMORY, /* of cuMemAllocAsync and of memory nodes */
  FAKE_CUDA_SEMAPHORE,   /* external */
  FAKE_CUDA_KIND_COUNT,
  FAKE_CUDA_ANY = FAKE_CUDA_KIND_COUNT
} fake_cuda_kind;

/* The attributes that a kernel runs with. */
typedef struct fake_cuda_attributes {
  int cooperative, programmatic, priority, memory_domain, shared_percent;
  unsigned cluster_x, cluster_y, cluster_z;
} fake_cuda_attributes;

enum { FAKE_CUDA_PEER_IS_ENABLED = 704 }; /* of cuCtxEnablePeerAccess, in addition to the codes of the ABI */

typedef struct fake_cuda_control {
  /* Waits for all work, destroys everything, and forgets. Registered kernels stay. No other thread is in a call. */
  void (*reset)(void);
  /* Sets counts of calls, violations, hidden symbols and the call that is to fail back. */
  void (*forget)(void);
  /* Waits until no stream has work left. */
  void (*settle)(void);

  /* How many objects of a kind, or of all kinds, are alive; and which, one a line, into `text`, cut at `bytes`. */
  size_t (*live)(fake_cuda_kind kind);
  void (*list)(char *text, size_t bytes);

  /* Calls made so far of one name ("cuMemMap"), or of all when it is NULL. */
  uint64_t (*calls)(const char *name);
  /* The nth call from now (1 is the next) of `name`, or of any name when NULL, returns `code`; with `onward` all after
   * it too. A call that gives something back or waits does so all the same, as calls of a real driver do that hand
   * on an asynchronous error; calls for virtual memory with a code alone that loses the context. A code after which a
   * context is lost loses the current one, or all if the call needs none. nth 0: none fails. */
  void (*fail_call)(const char *name, uint64_t nth, unsigned code, bool onward);
  /* The first such call that has been made since; NULL: none. */
  const char *(*failed)(void);
  /* The name is no longer found by cuGetProcAddress; for what loads the library later. */
  void (*hide)(const char *symbol);

  /* Misuse so far: unknown and destroyed handles, no or another's context, mappings that the driver refuses. */
  size_t (*violations)(void);
  /* The first ones in words, one a line, into `text`, cut at `bytes`. */
  void (*list_violations)(char *text, size_t bytes);

  /* Of one device: bytes of physical memory, and ranges that are mapped. */
  uint64_t (*physical_bytes)(int device);
  size_t (*mappings)(int device);
  /* The size of a device's memory from now on. */
  void (*set_memory)(int device, uint64_t bytes);
  /* The device's context is lost, as after a fault in a kernel; until its last release. */
  void (*lose)(int device, unsigned code);

  /* The attributes of the kernel of this name that began last. The priority is 0 in an exec that was not instantiated
   * with the priorities of its nodes. */
  fake_cuda_attributes (*ran)(const char *kernel);
  /* The compute capability of devices that are asked from now on, as `major`.0. */
  void (*set_capability)(int major);
} fake_cuda_control;

/* The library's only other export; see fake_cuda_get. */
#define FAKE_CUDA_ENTRY "rondo_fake_cuda_control"

/* The control of the fake driver that RONDO_CUDA_LIBRARY names; NULL when that is none. */
static inline const fake_cuda_control *fake_cuda_get(void) {
  return fake_entry_call("RONDO_CUDA_LIBRARY", FAKE_CUDA_ENTRY);
}

#endif
