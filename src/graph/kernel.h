/* SPDX-License-Identifier: MIT
 * A kernel as data: the options of rondo_kernel_create and a reference count. It is in this layer because graphs refer
 * to kernels; nothing here runs one. `device` is only compared, never dereferenced. After creation, only the count and
 * the driver's slot change. The driver fills its slot before the user gets the kernel.
 */
#ifndef RONDO_GRAPH_KERNEL_H
#define RONDO_GRAPH_KERNEL_H

#include <stdatomic.h>
#include <string.h>

#include <rondo/kernel.h>

#include "base/allocation.h"
#include "base/component.h"

/* The single argument of a copying kernel: up to RONDO_MOST_RANGES ranges. The ranges share no byte, except that a
 * range may be its own source, and then nothing is copied. The graph that contains the kernel sets the fixed addresses.
 * Each launch sets the variable ones: sources or, with `is_back`, destinations. Analyses see the argument as a scalar,
 * so the caller must order the node before, or after, all nodes that use the ranges. */
#define RONDO_MOST_RANGES 16
typedef struct rondo_range_copy {
  void *dst;
  const void *src; /* NULL: zeros are written */
  uint64_t bytes;
} rondo_range_copy;
typedef struct rondo_range_copies {
  uint32_t count, is_back;
  rondo_range_copy ranges[RONDO_MOST_RANGES];
} rondo_range_copies;

/* The same for a kernel that is enqueued outside a graph. Each launch copies the argument, and every driver accepts 4
 * KiB. */
#define RONDO_MOST_QUEUED_RANGES 64
typedef struct rondo_queued_ranges {
  uint64_t count;
  rondo_range_copy ranges[RONDO_MOST_QUEUED_RANGES];
} rondo_queued_ranges;

/* The names of rondo_access in JSON, by value; "" for 0. */
#define RONDO_ACCESS_COUNT 5
extern const char *const rondo_access_names[RONDO_ACCESS_COUNT];

/* A symbol of a kernel. `known` is the record that the layer above keeps of its memory. */
typedef struct rondo_code_symbol {
  char *name;
  void *cpu;     /* as given */
  char *address; /* on the kernel's device, set when the kernel is prepared; NULL: it has none */
  size_t bytes;
  void *known; /* NULL until its address is asked for */
} rondo_code_symbol;

struct rondo_kernel {
  atomic_uint references;
  rondo_allocator allocator;
  rondo_device *device; /* NULL: data only */
  char *name;
  rondo_cpu_function cpu;
  rondo_cpu_block_function cpu_block; /* in place of cpu; or NULL */
  char *cuda_source;                  /* "" when none */
  const void *cuda_image;             /* the caller's, only while the kernel is created; then NULL */
  void *cuda_function;                /* the caller's, or of a foreign kernel; NULL when none */
  uint32_t block_threads;
  /* a library's kernel, found in a capture: all its arguments are one scalar, of which some bytes are unset */
  bool is_foreign;
  bool is_launched_elsewhere; /* a library's kernel, also if its parameters are declared */
  bool has_gaps;              /* some bytes between arguments belong to no argument */
  bool copies_ranges;         /* its one argument is a rondo_range_copies; block (x, y) copies a share of range y */
  uint32_t parameter_count;
  uint32_t argument_bytes; /* all arguments, each at its offset */
  uint32_t argument_alignment;
  rondo_parameter parameters[RONDO_MAX_PARAMETERS];
  uint32_t offsets[RONDO_MAX_PARAMETERS];
  void *driver_data; /* the driver's compiled form; freed by driver_release */
  void (*driver_release)(void *driver_data);
  rondo_code_symbol *symbols;
  uint32_t symbol_count;
  void (*forget_symbols)(rondo_kernel *kernel); /* frees what is known of them; NULL: nothing */
  void *kept; /* data for the kernel's code, owned by the layer that made it; kept_release releases it */
  void (*kept_release)(void *kept);
};

/* Checks and copies the options. `device` may be NULL. The caller gets one reference. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_kernel_make(rondo_device *device, const rondo_allocator *allocator,
                                                            const rondo_kernel_options *options, rondo_kernel **out);
static inline void rondo_kernel_retain(rondo_kernel *kernel) {
  atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
}
RONDO_PRIVATE void rondo_kernel_release(rondo_kernel *kernel); /* frees with the last; NULL is fine */
/* For a caller that has no reference, but prevents that the kernel is freed. False if the last one is gone. */
bool rondo_kernel_try_retain(rondo_kernel *kernel);

/* The symbol that contains the address, or NULL. */
const rondo_code_symbol *rondo_kernel_symbol_at(const rondo_kernel *kernel, const void *address);
/* The symbol of this name, or NULL. */
rondo_code_symbol *rondo_kernel_symbol_named(const rondo_kernel *kernel, const char *name);

/* Copies an argument's value. Most are pointers or words, which take one load and one store. */
static inline void rondo_argument_set(void *to, const void *from, uint32_t bytes) {
  if (bytes == sizeof(uint64_t))
    memmove(to, from, sizeof(uint64_t));
  else if (bytes == sizeof(uint32_t))
    memmove(to, from, sizeof(uint32_t));
  else
    memmove(to, from, bytes);
}

/* Turns zeros in y and z into ones. */
static inline rondo_grid rondo_grid_resolve(rondo_grid grid) {
  return (rondo_grid){.x = grid.x, .y = grid.y == 0 ? 1 : grid.y, .z = grid.z == 0 ? 1 : grid.z};
}

/* The arguments of a graph node are one block of whole words: each value at its offset, and zeros elsewhere. So two
 * blocks of a kernel can be compared and copied without its parameters. Most have a few words. */
static inline size_t rondo_argument_words(const rondo_kernel *kernel) {
  return (kernel->argument_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}
static inline bool rondo_arguments_same(const rondo_kernel *kernel, const void *a, const void *b) {
  const size_t bytes = rondo_argument_words(kernel) * sizeof(uint64_t);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t))
    if (memcmp((const char *)a + at, (const char *)b + at, sizeof(uint64_t)) != 0) return false;
  return true;
}
static inline void rondo_arguments_copy(const rondo_kernel *kernel, void *to, const void *from) {
  const size_t bytes = rondo_argument_words(kernel) * sizeof(uint64_t);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t))
    memmove((char *)to + at, (const char *)from + at, sizeof(uint64_t));
}

/* Checks a grid (x at least 1, the product at most 2^40) and turns zeros into ones. A small grid passes the check. */
RONDO_MUST_USE rondo_status rondo_grid_check(const char *kernel_name, rondo_grid grid, rondo_grid *out);
static inline bool rondo_grid_is_small(rondo_grid grid) {
  return grid.x != 0 && (grid.x | grid.y | grid.z) < UINT32_C(1) << 13;
}
static inline uint64_t rondo_grid_blocks(rondo_grid grid) { return (uint64_t)grid.x * grid.y * grid.z; }

#endif
