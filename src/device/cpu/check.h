/* SPDX-License-Identifier: MIT
 * What makes a CPU device a checking one ("cpu:check"): each allocation has pages of its own between guard pages, which
 * can be accessed during its lifetime only; what work does wrongly becomes a finding, and launches are run in several
 * orders. Plain devices have none of this: a checking device has its own tables of functions, and the functions of its
 * works and nodes are wrapped (check_work.c).
 *
 * An *area* is an allocation, a *region* a reservation of addresses, which stays reserved for a while after it was
 * given back (quarantine), so that stale pointers fault. A *fault* in a work that runs is noted by the signal handler
 * in the *run* of the faulting thread and made harmless by *scratch* memory at the place; when the work's function
 * returns, the run's faults become the queue's failure and the scratch goes (check_fault.c, check_report.c).
 *
 * Threads: `edit` is held by whoever changes or walks the tables, `spin` besides while the tables that the signal
 * handler reads change. The handler takes `spin` alone; the code of works never runs with either held, so a thread that
 * faults there holds neither. The gate keeps works and changes of lifetimes away while a launch is explored.
 */
#ifndef RONDO_DEVICE_CPU_CHECK_H
#define RONDO_DEVICE_CPU_CHECK_H

#include "base/array.h"
#include "device/cpu/cpu.h"

enum { CHECK_NAME_BYTES = 64, CHECK_SCRATCHES = 64, CHECK_FAULTS = 4 };

/* What fresh memory holds: as floats and doubles quiet NaNs. */
#define CHECK_POISON UINT32_C(0x7ffcdead)

/* Areas and regions ----------------------------------------------------------------------------------------------- */

typedef enum check_life { CHECK_EARLY = 0, CHECK_LIVE = 1, CHECK_ENDED = 2 } check_life;

/* On its pages an area stands as far back as its alignment allows; what is left before and behind it holds canaries
 * while it lives. */
typedef struct check_area {
  char *begin;
  size_t bytes; /* as asked for */
  char *pages;
  size_t page_bytes;
  check_life life;
  bool graph;     /* of an alloc node: its pages are mapped by memory/, and live again with each launch */
  bool read_only; /* lives, and no work may write it */
  char name[CHECK_NAME_BYTES];
} check_area;

/* Things by address, apart from each other. */
typedef struct check_range {
  char *begin, *end;
  void *object;
} check_range;

typedef RONDO_ARRAY(check_range) check_index;

/* The first range that ends behind `address`. */
size_t check_index_seek(const check_index *index, const void *address);
/* The range that holds `address`, or NULL. */
const check_range *check_index_find(const check_index *index, const void *address);

/* Memory at the place of a fault, for the rest of the work that faulted. */
typedef struct check_scratch {
  char *begin;
  size_t bytes;
  const void *run; /* whose */
} check_scratch;

/* Runs ------------------------------------------------------------------------------------------------------------ */

struct check_state;

/* A work or node with what a finding says of it; the real function is behind it. Lies in the queue's item or the node's
 * storage, with its own address as the only argument of check_run_work. */
typedef struct check_work {
  struct check_work *self;
  rondo_cpu_function function;
  void *const *args;
  struct check_state *check;
  cpu_queue *const *queue; /* where a finding goes: looked up when it runs */
  cpu_queue *own_queue;    /* of a queued work: what `queue` points to */
  rondo_node_kind kind;
  rondo_node_where where; /* its text is the node's; the number RONDO_NO_NODE for queued works */
  char *address;          /* ALLOC and FREE */
  uint32_t parameter_count;
  rondo_parameter parameters[RONDO_MAX_PARAMETERS];
  char name[CHECK_NAME_BYTES];
} check_work;

typedef enum check_mistake {
  CHECK_MISTAKE_EARLY,
  CHECK_MISTAKE_ENDED,
  CHECK_MISTAKE_BEHIND, /* `distance` bytes past the end */
  CHECK_MISTAKE_AHEAD,  /* `distance` bytes before the beginning */
  CHECK_MISTAKE_FOREIGN,
  CHECK_MISTAKE_READ_ONLY
} check_mistake;

typedef struct check_fault {
  check_mistake mistake;
  bool writes, known; /* known: whether it reads or writes */
  const char *address;
  size_t distance; /* or the offset in the area */
  size_t bytes;    /* the area's */
  char name[CHECK_NAME_BYTES];
} check_fault;

/* One call of a work's function on one thread. The signal handler writes the faults. */
typedef struct check_run {
  struct check_run *outer;
  const check_work *work;
  uint32_t count;
  uint32_t retries;
  uint32_t passing; /* handlers that a signal was passed on to and that came back to this one */
  const void *retried;
  check_fault faults[CHECK_FAULTS]; /* the first of `count` */
} check_run;

/* The device's ---------------------------------------------------------------------------------------------------- */

typedef struct check_region check_region;

typedef struct check_state {
  cpu_device *device;
  rondo_allocator allocator;
  rondo_device_ops plain; /* what the plain device does */
  uint32_t orders;        /* each launch is run in so many */
  uint64_t seed;
  _Atomic uint64_t orders_run, findings;

  pthread_mutex_t edit;
  _Atomic uint32_t spin;
  check_index regions;  /* check_region */
  check_index areas;    /* check_area, by their pages */
  check_index mappings; /* of physical memory: check_mapping */
  check_index hosts;    /* host memory of the device's; no objects */
  check_scratch scratches[CHECK_SCRATCHES];
  uint32_t scratch_count;
  check_region *oldest, **newest; /* the quarantine */
  size_t quarantine_bytes, quarantine_count;

  _Atomic uint32_t gate; /* works that run, and whether a launch is being explored */
  _Atomic uint32_t failed;
  rondo_saved_error failure; /* of no queue; under `edit` */
  atomic_bool said_once;     /* that graphs like this one are not explored */
} check_state;

/* Makes the device a checking one (check_device.c). UNAVAILABLE when the process's signal handlers cannot be set. */
RONDO_MUST_USE rondo_status check_open(cpu_device *device, const rondo_device_options *options);
#define CHECK_UNAVAILABLE                                                                                              \
  "the handlers of SIGSEGV and SIGBUS cannot be set in this process: with AddressSanitizer, set ASAN_OPTIONS to hold " \
  "handle_segv=1:handle_sigbus=1"

/* The tables and the memory (check_memory.c). Ranges are entered with `edit` held, and not `spin`. */
RONDO_MUST_USE rondo_status check_index_insert(struct check_state *check, check_index *index, check_range range);
/* Takes the first range that touches [begin, end) out; false when there is none. With `edit` held. */
bool check_index_remove(check_state *check, check_index *index, const char *begin, const char *end, void **out_object);
void check_memory_init(check_state *check);
void check_memory_deinit(check_state *check);
RONDO_MUST_USE rondo_status check_reserve(rondo_device *device, size_t bytes, size_t alignment, void **out_address);
RONDO_MUST_USE rondo_status check_unreserve(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status check_map(rondo_device *device, void *address, rondo_physical *physical);
RONDO_MUST_USE rondo_status check_unmap(rondo_device *device, void *address, size_t bytes);
RONDO_MUST_USE rondo_status check_host_allocate(rondo_device *device, size_t bytes, void **out_address);
void check_host_release(rondo_device *device, void *address, size_t bytes);
void check_lock(check_state *check);
void check_unlock(check_state *check);
void check_spin_lock(check_state *check);
void check_spin_unlock(check_state *check);
/* Puts back what was at the scratches of a run (NULL: at all that touch the range). With both locks held. */
void check_scratch_clear(check_state *check, const check_run *run, const char *begin, const char *end);
/* False when there are too many, or no memory. With the spin lock held. */
bool check_scratch_map(check_state *check, check_scratch scratch);

/* Areas (check_area.c). What is called with `edit` held says so. */
RONDO_MUST_USE rondo_status check_area_make(check_state *check, size_t bytes, const char *name, void **out_address);
RONDO_MUST_USE rondo_status check_area_note(check_state *check, char *address, size_t bytes, const char *name);
/* A lifetime begins: pages are there, poisoned, with canaries around the area; or ends. Found damage comes out by
 * check_fail. */
RONDO_MUST_USE rondo_status check_area_begin(check_state *check, char *address);
RONDO_MUST_USE rondo_status check_area_end(check_state *check, char *address);
/* With `edit` held: lets it be accessed or not; its contents stay when its memory does. */
RONDO_MUST_USE rondo_status check_area_open(check_state *check, check_area *area, check_life life);
void check_area_shut(check_state *check, check_area *area, check_life life);
/* What begins at the address, if it lives, may be written or not. */
void check_area_set_read_only(check_state *check, const char *address, bool read_only);
/* Takes areas of graphs that touch the range out of the tables. */
void check_areas_forget(check_state *check, const char *begin, const char *end);
void check_area_set_canaries(const check_area *area);
/* With `edit` held: a byte around the area that is not the canary's any more, or NULL. */
const char *check_area_damage(const check_area *area);
/* With `edit` held: OUT_OF_RANGE when there is damage, which is mended; `who` did or saw it. */
RONDO_MUST_USE rondo_status check_area_inspect(check_area *area, uint32_t node, const char *who);
/* All live areas. */
RONDO_MUST_USE rondo_status check_areas_inspect(check_state *check, const char *who);
check_area *check_area_around(const check_state *check, const void *address); /* with `edit` held */

/* Faults (check_fault.c) */
RONDO_MUST_USE rondo_status check_handler_enter(check_state *check); /* from now on the device's faults are taken */
void check_handler_leave(check_state *check);
/* Puts the handler back in front if another one was installed meanwhile. */
void check_handler_renew(void);
bool check_handler_can_be_set(void);
/* See rondo_device_ops. A run that is no work's: its faults are told to the caller, not to a queue. */
void *check_host_watch_begin(rondo_device *device, void *address, size_t bytes);
void *check_host_watch_end(rondo_device *device, void *watch, size_t bytes, size_t used, size_t *out_bytes);
void *check_host_begin(rondo_device *device);
rondo_status check_host_end(rondo_device *device, void *watch, const char *who);
void check_run_begin(check_run *run, const check_work *work);
void check_run_end(check_run *run);

/* Reports (check_report.c) */
enum { CHECK_LABEL_BYTES = RONDO_LABEL_BYTES };
const char *check_label(char buffer[CHECK_LABEL_BYTES], const check_work *work);
/* Makes the run's faults its queue's failure. `before` is as of check_fail. */
void check_report_faults(const check_run *run, const rondo_saved_error *before);
/* EXECUTION_FAILED for a fault of the host's, outside of works. */
RONDO_MUST_USE rondo_status check_fail_host(const check_state *check, const check_fault *fault, const char *who);
/* The thread's last error becomes the failure of the queue, or, without one, of the device, and `before` the thread's
 * last error again: it may be that of a call which succeeds. */
void check_fail(check_state *check, cpu_queue *queue, const rondo_saved_error *before);
RONDO_MUST_USE rondo_status check_take_failure(check_state *check);

/* Works (check_work.c) */
void check_run_work(rondo_blocks blocks, void *const *args);
const char *check_work_name(const check_work *work); /* for traces */
static inline const check_work *check_work_of(const cpu_node *node) {
  return node->function == check_run_work ? (const check_work *)node->args[0] : NULL;
}
/* Wraps a node whose storage has room for it; gives alloc and free nodes something to do. */
RONDO_MUST_USE rondo_status check_dress(cpu_executable *executable, cpu_node_detail *detail,
                                        const rondo_node_params *params);
RONDO_MUST_USE rondo_status check_submit(rondo_queue *queue, const rondo_node_params *params);
extern const rondo_guard_ops check_guard_ops;

/* The gate (check_gate.c) */
void check_gate_enter(check_state *check);
void check_gate_leave(check_state *check);
void check_gate_close(check_state *check); /* waits until nobody is inside */
void check_gate_open(check_state *check);
bool check_gate_is_mine(void); /* the calling thread has closed it */

/* Orders (check_orders.c) and what they start from and lead to (check_snapshot.c) */
typedef struct check_entry {
  check_area *area; /* NULL: host memory */
  char *begin;
  size_t bytes;
  check_life life_before, life_after;
  char *before, *after; /* bytes while it lives; NULL when it does not */
} check_entry;

typedef struct check_snapshot {
  check_state *check;
  RONDO_ARRAY(check_entry) entries;
} check_snapshot;

/* What an executable's nodes may write. False when that is not known, or there is no memory. */
bool check_snapshot_take(check_snapshot *snapshot, check_state *check, const cpu_executable *executable);
void check_snapshot_free(check_snapshot *snapshot);
bool check_snapshot_keep_result(check_snapshot *snapshot);
void check_snapshot_restore(check_snapshot *snapshot, bool result);
/* The first entry whose contents differ from the kept result, with the offset; NULL when there is none. */
const check_entry *check_snapshot_compare(const check_snapshot *snapshot, size_t *out_offset);

/* Runs a launch in several orders; false when it is to be run as on other devices. */
bool check_explore(cpu_executable *executable, cpu_queue *queue);

#endif
