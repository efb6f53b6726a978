/* SPDX-License-Identifier: MIT
 * The checking CPU device, "cpu:check". Each allocation has its own pages between guard pages, and can be accessed only
 * during its lifetime. Errors of work become findings, and launches are run in several orders. Other CPU devices do
 * nothing of this: a checking device has other functions in its tables, and wraps its works and nodes (check_work.c).
 *
 * An *area* is an allocation. A *region* is a reservation of addresses. It stays reserved for a while after it was
 * released (quarantine), so that stale pointers fault. The signal handler notes a *fault* of a work in the *run* of its
 * thread and maps *scratch* memory at the address. When the function of the work returns, the faults of the run become
 * the failure of the queue, and the scratch memory is unmapped (check_fault.c, check_findings.c).
 *
 * Threads: `edit` is held while the tables are changed or walked. `spin` is held too while tables change that the
 * signal handler reads. The handler takes only `spin`. The code of works never runs while either is held, so a thread
 * that faults there holds neither. The gate blocks works and changes of lifetimes while a launch is explored.
 */
#ifndef RONDO_DEVICE_CHECK_CHECK_H
#define RONDO_DEVICE_CHECK_CHECK_H

#include "base/array.h"
#include "device/cpu/cpu.h"

enum { CHECK_NAME_BYTES = 64, CHECK_SCRATCHES = 64, CHECK_FAULTS = 4 };

/* The contents of new memory: quiet NaNs, as floats and as doubles. */
#define CHECK_POISON UINT32_C(0x7ffcdead)

/* Areas and regions ------------------------------------------------------------------------------------------------ */

typedef enum check_life { CHECK_EARLY = 0, CHECK_LIVE = 1, CHECK_ENDED = 2 } check_life;

/* An area is at the end of its pages, as far as its alignment allows. While it is live, the bytes before and after it
 * on these pages hold canaries. */
typedef struct check_area {
  char *begin;
  size_t bytes; /* as requested */
  char *pages;
  size_t page_bytes;
  check_life life;
  bool graph;     /* of an alloc node: memory/ maps its pages, and each launch begins its life again */
  bool read_only; /* live, and no work may write it */
  char name[CHECK_NAME_BYTES];
} check_area;

/* A range of addresses. The ranges of an index do not overlap. */
typedef struct check_range {
  char *begin, *end;
  union {
    void *object;
    int file; /* of a mapping */
  };
} check_range;

typedef RONDO_ARRAY(check_range) check_index;

/* Memory at the address of a fault, for the rest of the work that faulted. */
typedef struct check_scratch {
  char *begin;
  size_t bytes;
  const void *run; /* whose */
} check_scratch;

/* Runs ------------------------------------------------------------------------------------------------------------- */

struct check_state;

/* A wrapped work or node: the real function, and what findings say about it. It is in the item of the queue or the
 * storage of the node. Its own address is the only argument of check_run_work. */
typedef struct check_work {
  struct check_work *self;
  rondo_cpu_function function;
  void *const *args;
  void *const *values; /* of a kernel: the addresses of its arguments; else as args */
  struct check_state *check;
  struct check_state *other; /* of the device of a graph's node, if it is not the graph's; else NULL */
  cpu_queue *const *queue;   /* where a finding goes; read when it runs */
  cpu_queue *own_queue;      /* of an enqueued work: what `queue` points to */
  rondo_node_kind kind;
  rondo_node_where where;           /* its text is the node's; RONDO_NO_NODE for enqueued works */
  char *address;                    /* ALLOC and FREE */
  const rondo_code_symbol *symbols; /* of a kernel: its code may write them. Valid as long as the kernel */
  uint32_t symbol_count;
  uint32_t parameter_count;
  rondo_parameter parameters[RONDO_MAX_PARAMETERS];
  char name[CHECK_NAME_BYTES];
} check_work;

typedef enum check_mistake {
  CHECK_MISTAKE_EARLY,
  CHECK_MISTAKE_ENDED,
  CHECK_MISTAKE_AFTER_END,    /* `distance` bytes past the end */
  CHECK_MISTAKE_BEFORE_BEGIN, /* `distance` bytes before the beginning */
  CHECK_MISTAKE_FOREIGN,
  CHECK_MISTAKE_READ_ONLY
} check_mistake;

typedef struct check_fault {
  struct check_state *check; /* of the device whose memory it is */
  check_mistake mistake;
  bool writes, known; /* known: whether it reads or writes */
  const char *address;
  size_t distance; /* or the offset in the allocation */
  size_t bytes;    /* of the allocation */
  char name[CHECK_NAME_BYTES];
} check_fault;

/* One call of a work's function on one thread. The signal handler writes the faults. */
typedef struct check_run {
  struct check_run *outer;
  const check_work *work;
  uint32_t count;
  uint32_t retries;
  uint32_t passing; /* how many other handlers are being called, one inside another, for a signal */
  const void *retried;
  check_fault faults[CHECK_FAULTS]; /* the first of `count` */
} check_run;

/* State of the device ---------------------------------------------------------------------------------------------- */

typedef struct check_region check_region;

typedef struct check_state {
  cpu_device *device;
  rondo_allocator allocator;
  rondo_device_ops plain; /* the plain device's functions */
  uint32_t orders;        /* in how many each launch is run */
  uint64_t seed;
  _Atomic uint64_t orders_run, findings;

  pthread_mutex_t edit;
  _Atomic uint32_t spin;
  check_index regions;  /* check_region */
  check_index areas;    /* check_area, by their pages */
  check_index mappings; /* of physical memory. Files are duplicates, which exist as long as the mapping */
  check_index hosts;    /* host memory from the device; no objects */
  check_scratch scratches[CHECK_SCRATCHES];
  uint32_t scratch_count;
  check_region *oldest, **newest; /* the quarantine */
  size_t quarantine_bytes, quarantine_count;

  _Atomic uint32_t gate;       /* how many works run, and whether a launch is explored */
  rondo_first_failure failure; /* of no queue */
  atomic_bool said_once;       /* it was logged that some graphs are not explored */
} check_state;

/* Works (check_work.c) */
void check_run_work(rondo_blocks blocks, void *const *args);
static inline const check_work *check_work_of(const cpu_node *node) {
  return node->function == check_run_work ? (const check_work *)node->args[0] : NULL;
}
extern const rondo_guard_ops check_guard_ops;

#endif
