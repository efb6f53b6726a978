/* SPDX-License-Identifier: MIT
 * The benchmark of memory inside graphs: the recorded work, and the measurement of each method to record it. The work
 * is a sequence of allocs and frees in the order of a list of buffers. After each alloc, a kernel writes the first
 * byte.
 */
#ifndef RONDO_TOOL_MEMORY_WORK_H
#define RONDO_TOOL_MEMORY_WORK_H

#include <rondo/rondo.h>

#include "bench/bench_target.h"
#include "common/buffer_csv.h"
#include "common/timing.h"

/* An alloc or a free of a buffer. */
typedef struct memory_step {
  bool is_alloc;
  size_t buffer;
} memory_step;

typedef struct memory_work {
  const char *name;
  const buffer_list *list;
  memory_step *steps; /* buffers of 0 bytes have none */
  size_t step_count;
  uint64_t bound; /* the maximum number of bytes alive at once, with each buffer rounded up to a multiple of 256 */
} memory_work;

/* The costs of one method. */
typedef struct memory_times {
  uint64_t bytes; /* held after a launch; 0: unknown */
  /* Host time of the call: the first launch, later ones, and launches on two streams in alternation. */
  samples instantiate, first, again, alternating;
  double profile_us; /* time to make the profile; 0 without one */
  /* The most remaps of a round's later launches: on one stream, and on two in alternation. 0 if unknown. */
  uint64_t remaps, moves;
} memory_times;

enum { MEMORY_ROUNDS = 5, MEMORY_LAUNCHES = 100 };

/* Return TOOL_OK, or TOOL_FAILURE after a message. */
int memory_work_create(const char *name, const buffer_list *list, memory_work *out);
void memory_work_destroy(memory_work *work); /* may be zeroed */
int memory_times_create(memory_times *times);
void memory_times_destroy(memory_times *times); /* may be zeroed */

/* A method to record the work, for a target with two streams. Each call returns TOOL_OK, or TOOL_FAILURE after a
 * message.
 */
typedef struct memory_method {
  bench_target *target;
  int (*trim)(void *self); /* returns the memory that no exec holds */
  int (*instantiate)(void *self, void **out_exec);
  int (*count)(void *self, uint64_t *out_bytes, uint64_t *out_remaps); /* bytes held by graphs; remaps so far */
  void *self;
} memory_method;

/* Instantiates and launches the graph of a method, and measures both. */
int memory_measure(const memory_method *method, memory_times *out);

/* How Rondo chooses the addresses. */
typedef enum memory_placing { MEMORY_ONLINE, MEMORY_PROFILED, MEMORY_RELOCATED } memory_placing;

int memory_measure_rondo(rondo_device *device, const memory_work *work, memory_placing placing, memory_times *out);
/* The same with the CUDA driver's own memory nodes. */
int memory_measure_bare(const char *device_name, const memory_work *work, memory_times *out);

#endif
