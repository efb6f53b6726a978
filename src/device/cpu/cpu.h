/* SPDX-License-Identifier: MIT
 * The types of the CPU driver. README.md describes the scheduler.
 *
 * A *queue* is a ring of items with one producer, the user of the stream, and one consumer at a time, the owner: a
 * worker, or a host thread that waits. A *timeline* is a number that only grows, with its waiters. Each queue has one,
 * which counts its items, and so does each event-record node. An *event* is a point on a timeline. A *participant* is a
 * thread that runs work of the device: a worker or a waiting host. An *executable* is a graph; participants share its
 * tasks, and the blocks of a kernel as a *grid job*.
 *
 * Waiting never holds a worker: a queue that must wait is set aside (owner = CPU_BLOCKED), and the thread that advances
 * the timeline resumes it. Between a launch and its completion there is no lock and no allocation. Where two threads
 * each store a value and then read the other's (head and attached, owner and attached, value and waiters, ready and
 * sleepers), all four accesses are sequentially consistent, so that one of the two sees the other.
 */
#ifndef RONDO_DEVICE_CPU_CPU_H
#define RONDO_DEVICE_CPU_CPU_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/tasks/sleepers.h"
#include "base/tasks/task_graph.h"
#include "base/thread.h"
#include "device/cpu/cpu_choice.h"
#include "device/device.h"

typedef struct cpu_device cpu_device;
typedef struct cpu_queue cpu_queue;
typedef struct cpu_executable cpu_executable;
typedef struct cpu_participant cpu_participant;

/* Timelines ------------------------------------------------------------------------------------------------------- */

/* Somebody who goes on when a timeline reaches `target`: a queue (executable is NULL) or a task of a running
 * executable. Belongs to that queue or node, and is on at most one list. */
typedef struct cpu_waiter {
  struct cpu_waiter *next;
  uint64_t target;
  cpu_queue *queue;
  cpu_executable *executable;
  uint32_t task;
} cpu_waiter;

typedef struct cpu_timeline {
  _Atomic uint64_t value;        /* only grows; written by one thread at a time */
  _Atomic(cpu_waiter *) waiters; /* a stack, taken whole */
  _Atomic uint32_t sleepers;     /* host threads asleep on `signal` */
  _Atomic uint32_t signal;       /* futex */
  atomic_uint references;
  bool stamped; /* event-record nodes of timing events: stamp_ns is the time of the last advance */
  _Atomic uint64_t stamp_ns;
  cpu_device *device;
  void (*release)(struct cpu_timeline *timeline); /* called with the last reference */
} cpu_timeline;

/* A point on a timeline; timeline NULL is the past. */
typedef struct cpu_point {
  cpu_timeline *timeline;
  uint64_t value;
} cpu_point;

static inline bool cpu_point_reached(cpu_point point) {
  return point.timeline == NULL || atomic_load_explicit(&point.timeline->value, memory_order_acquire) >= point.value;
}

/* A semaphore (rondo_semaphore_ops; cpu_event.c): a timeline that others advance. Its event's point has the value
 * CPU_AS_ASKED, which stands for what it is asked for when the wait is come to. */
#define CPU_AS_ASKED UINT64_MAX
typedef struct cpu_semaphore {
  cpu_timeline timeline;
  _Atomic uint64_t asked;
  _Atomic bool failed; /* set after the failure */
  rondo_saved_error failure;
  void (*end)(void *user);
  void *user;
} cpu_semaphore;

extern const rondo_semaphore_ops cpu_semaphore_ops;
/* The point that a wait which is come to now is for. */
static inline cpu_point cpu_point_now(cpu_point point) {
  if (point.timeline == NULL || point.value != CPU_AS_ASKED) return point;
  return (cpu_point){point.timeline, atomic_load(&((cpu_semaphore *)point.timeline)->asked)};
}

/* The pool -------------------------------------------------------------------------------------------------------- */

enum {
  CPU_HOSTS = 16, /* waiting host threads that can work along at once */
  CPU_MAX_WORKERS = 256,
  CPU_MAX_QUEUES = 1 << RONDO_TAG_BITS, /* the tag of a deque's entry is the slot of the queue whose graph runs */
  CPU_QUEUE_WORDS = CPU_MAX_QUEUES / 64
};

/* The blocks of a kernel, which participants take in chunks. `users` keeps the fields from changing under a participant
 * that looks. */
typedef struct cpu_grid_job {
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t next; /* first block that nobody has taken */
  _Atomic uint64_t done;
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t users;
  _Atomic uint32_t open;
  _Atomic(cpu_queue *) queue; /* whose work it is */
  rondo_cpu_function function;
  void *const *args;
  rondo_grid grid;
  uint64_t blocks, chunk;
  bool wakes; /* so long that waking parked workers pays */
} cpu_grid_job;

struct cpu_participant {
  rondo_task_worker tasks; /* of the graph that it works on now; empty between runs */
  cpu_grid_job job;
  alignas(RONDO_CACHE_LINE) cpu_device *device;
  uint32_t index;
  cpu_queue *watched;    /* a worker's: attached to it; holds a reference. Or NULL */
  uint32_t next_slot;    /* where the next search for a ready queue begins */
  uint32_t place;        /* a worker's processor, when bound: its place in the pool's; the mover's */
  _Atomic int processor; /* the system's number of it */
  uint64_t drained;      /* items, the last time it ran a queue */
  uint32_t drains;       /* of the watched queue, since it turned to that */
  uint32_t reserve;      /* doublings of the time until its next look at that queue */
  bool brief;            /* the last look found little to do */
  int run_processor;     /* of its long run, as last seen, and its place */
  uint32_t run_place;
  _Atomic bool runs_long;   /* it has one now */
  uint32_t ran_alone;       /* nodes of graphs that it ran without help */
  _Atomic uint64_t kernels; /* run by it; only it writes this */
  _Atomic uint64_t parks;
};

typedef struct cpu_pool {
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t ready_summary; /* bit w: ready[w] may have bits */
  _Atomic uint32_t open_jobs;                               /* grid jobs open now */
  _Atomic uint32_t active_runs;                             /* executables running by stealing now */
  _Atomic uint32_t long_runs, occupied;                     /* long runs now, and processors that have one */
  _Atomic uint64_t contentions;                             /* begun, of all time */
  _Atomic(cpu_waiter *) injected;                           /* tasks that may go on */
  _Atomic bool stop;
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t ready[CPU_QUEUE_WORDS]; /* bit: that queue wants a worker */
  alignas(RONDO_CACHE_LINE) rondo_sleepers sleepers;                 /* parked workers */
  _Atomic bool guarded; /* a worker sleeps for GUARD_NS at most: what nobody is woken for, it finds */
  _Atomic uint64_t wakes;
  rondo_sleepers starters;                          /* starters of runs that sleep until a run ends */
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t hosts; /* bit: that host participant is taken */
  _Atomic(cpu_executable *) runs[CPU_MAX_QUEUES];   /* what ran by stealing last, by its queue's slot */
  uint64_t spin_ns;                                 /* how long an idle thread stays awake */
  bool bound;                 /* workers are bound to processors, each to one, one processor left to the host */
  _Atomic bool moving;        /* a worker is given the spare processor */
  uint32_t spare;             /* that one: its place in processors; the mover's */
  _Atomic int host_processor; /* where a host thread waited last */
  uint32_t watch_turns;       /* turns of an idle worker between two looks at its queue */
  uint32_t worker_count;
  uint32_t threads_started;   /* fewer when starting failed half-way; the opener's and closer's */
  uint32_t participant_count; /* workers first, then hosts */
  cpu_participant *participants;
  rondo_thread *threads;
  int *processors;             /* the process's, as they were when the device was opened; by the system's numbers */
  _Atomic uint32_t *occupants; /* long runs, by place */
  uint32_t processor_count;
} cpu_pool;

/* How long a waiting loop has turned: pauses first, a yield now and then, and after the pool's time it wants to sleep.
 */
typedef struct cpu_backoff {
  uint32_t turns;
  uint64_t since_ns; /* 0: the clock was not read yet */
} cpu_backoff;

/* Queues ---------------------------------------------------------------------------------------------------------- */

enum { CPU_GRANULE = 64, CPU_RING_GRANULES = 1024, CPU_BUDGET = 64 /* items drained between two looks at the rest */ };

static inline size_t cpu_align(size_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

typedef enum cpu_operation {
  CPU_KERNEL = 1,
  CPU_WORK,  /* host, copy, fill: as a kernel, not counted as one */
  CPU_WAIT,  /* for a point on a timeline */
  CPU_STAMP, /* write the time of a timing event */
  CPU_GRAPH,
  CPU_CHECKED_GRAPH, /* on a checking device */
  CPU_STORES,        /* addresses for the next graph that have no room in its item */
  CPU_SKIP           /* nothing: fills up to the end of the ring */
} cpu_operation;

struct cpu_event;
struct cpu_change_list;
struct cpu_bindings;

/* The head of an item; a kernel's argument addresses and values follow it, and its name when it is to be traced: it may
 * be destroyed before it runs. */
typedef struct cpu_item {
  uint16_t operation;
  uint16_t granules;
  uint32_t name_at; /* a kernel's: bytes from here to its name; 0 without one */
  union {
    struct {
      rondo_cpu_function function;
      void *const *args;
      rondo_blocks blocks;
    } work;
    cpu_point wait; /* holds a reference */
    struct {
      struct cpu_event *event; /* holds a reference */
      uint64_t serial;
    } stamp;
    struct {
      cpu_executable *executable;
      struct cpu_change_list *changes; /* to apply first, or NULL */
      struct cpu_bindings *bindings;   /* what its event-wait nodes wait for, or NULL */
      uint32_t store_count;            /* cpu_stores, after the item */
    } graph;
    uint32_t store_count;
  } as;
} cpu_item;

/* An input's address at a site, written before the graph runs: in a node's storage, which launches that are queued
 * before read until then. */
typedef struct cpu_store {
  void *site;
  uint64_t value;
} cpu_store;

enum { CPU_MOST_STORES = 128 /* of one item */ };

enum { CPU_DETACHED = 0, CPU_SCHEDULED = 1, CPU_ATTACHED = 2, CPU_DEAD = 3 };
enum { CPU_HABIT = 4 /* waits of a host's from which on the next is expected */ };
enum { CPU_FREE = 0, CPU_OWNED = 1, CPU_BLOCKED = 2 };

struct cpu_queue {
  rondo_queue base;
  cpu_device *device;
  uint32_t slot; /* its number in the device's table */
  unsigned char *ring;
  /* The producer's. */
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t head; /* granules written */
  _Atomic uint32_t attached;                       /* whether an awake worker watches the queue */
  uint64_t tail_seen;
  _Atomic uint64_t submitted; /* items that count on the timeline; written only by the producer */
  _Atomic uint64_t launches;  /* the same */
  /* The consumer's. */
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t owner;
  _Atomic uint64_t tail;     /* granules consumed; written by the owner */
  uint64_t completed;        /* items; the owner's */
  cpu_waiter waiter;         /* for CPU_WAIT and suspended graphs */
  _Atomic bool runs;         /* a graph, by stealing */
  _Atomic uint32_t hosted;   /* times that a host thread ran it since a worker did, up to CPU_HABIT */
  _Atomic uint64_t sleeping; /* cpu_queue_begin_sleep: how many, and in the upper half how often they were woken */
  cpu_timeline timeline;     /* references keep this struct, not the ring */
  _Atomic bool detach;       /* the producer wants the worker to let go */
  alignas(RONDO_CACHE_LINE) rondo_first_failure failure;
  char label[RONDO_STREAM_LABEL]; /* for messages */
};

extern const rondo_queue_ops cpu_queue_ops;
extern const rondo_event_ops cpu_event_ops;
extern const rondo_executable_ops cpu_executable_ops;
/* True when there is an item and nobody at it. */
static inline bool cpu_queue_pending(cpu_queue *queue) {
  /* The owner first: while a host thread runs the queue, its line with `head` is left to it for the next launch. */
  return atomic_load(&queue->owner) == CPU_FREE &&
         atomic_load(&queue->head) != atomic_load_explicit(&queue->tail, memory_order_relaxed);
}

/* Work that is no kernel (cpu_work.c): functions of a kernel's form, args[0] points to their description. */
typedef struct cpu_host_work {
  rondo_host_node host;
  const char *name; /* for the message; the owner's */
  bool is_node;
  rondo_node_where where;  /* of a node; its text is the owner's */
  cpu_queue *const *queue; /* where a failure goes: looked up when it runs */
} cpu_host_work;
/* Of a copy or fill: the function, how many blocks of it there are, and what args[0] points to. */
typedef struct cpu_description {
  rondo_cpu_function function;
  uint64_t blocks;
  const void *data;
  size_t bytes;
} cpu_description;
static inline rondo_blocks cpu_all_blocks(uint64_t count) {
  /* Such work looks at first and last alone; the grid's numbers are too small for all counts. */
  const uint32_t x = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
  return (rondo_blocks){0, (size_t)count, {x, 1, 1}};
}

/* Events (cpu_event.c) -------------------------------------------------------------------------------------------- */

typedef struct cpu_event {
  rondo_device_event base;
  cpu_device *device;
  atomic_uint references;        /* the handle's, and one for each queued stamp or executable */
  cpu_point point;               /* completes there */
  uint64_t records;              /* how often recorded */
  _Atomic uint64_t stamp_serial; /* of the record that stamp_ns is of, twice; odd while that is being written */
  _Atomic uint64_t stamp_ns;
} cpu_event;

/* Executables (cpu_executable.c: building and changing; cpu_run.c: running) --------------------------------------- */

/* One node, in execution order; all that the plain loop touches. */
typedef struct cpu_node {
  rondo_cpu_function function;
  void *const *args;
  rondo_blocks blocks;
} cpu_node;

/* The rest of a node, as it was last set; the caller's side. */
typedef struct cpu_node_detail {
  rondo_node_kind kind;
  rondo_node_where where;
  bool enabled;
  const char *name; /* in storage */
  cpu_node node;    /* as it runs when enabled; args point into storage */
  void *storage;    /* argument addresses and values, or the description of other work; then the name */
  size_t storage_bytes;
  cpu_event *event;       /* event nodes; holds a reference */
  cpu_timeline *timeline; /* record: counts launches; holds a reference */
} cpu_node_detail;

#define CPU_NO_WAIT UINT32_MAX /* the mark of a task that is no event-wait node */

/* What the event-wait nodes of one launch wait for. */
typedef struct cpu_bindings {
  struct cpu_bindings *next;
  cpu_point points[];
} cpu_bindings;

/* A node as it runs from some launch on. What it replaces is freed by the caller's side after that. */
typedef struct cpu_change {
  struct cpu_change *next;
  uint32_t position;
  int more_kernels; /* that run: 1 when it was disabled, -1 when it is now */
  cpu_node node;
  const char *name;
  rondo_node_where old_where;
  void *old_storage;
  size_t old_storage_bytes;
  cpu_timeline *old_timeline; /* of an event-record node; launches in flight still advance it */
} cpu_change;

typedef struct cpu_change_list {
  struct cpu_change_list *next; /* on the list of spent ones */
  cpu_change *first, **last;
} cpu_change_list;

struct cpu_executable {
  rondo_executable base;
  cpu_device *device;
  size_t node_count, kernel_count;
  rondo_task_graph graph;   /* its items are the nodes; a task's mark is its event-wait node's place in the bindings */
  cpu_node *nodes;          /* by position */
  const char **names;       /* the same, for traces */
  uint64_t *times;          /* the same: nanoseconds of the last run; NULL unless they are wanted */
  cpu_node_detail *details; /* of lowered node i */
  uint32_t *wait_nodes, *record_nodes; /* lowered indices of the event nodes */
  uint32_t wait_count, record_count;
  cpu_waiter *waiters; /* one an event-wait node */
  bool parallel;       /* more than one participant can find work in it */
  /* The run that is going on: one at a time, since launches come one after another (L1). */
  cpu_queue *queue;
  bool wakes;    /* parked workers are worth their wake-up */
  bool is_short; /* its tasks are: participants keep some to themselves, and count down several at once */
  cpu_bindings *bindings;
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t sinks_left;
  /* How it runs. */
  alignas(RONDO_CACHE_LINE) uint64_t runs_begun;
  uint64_t contentions_seen; /* the pool's, when it ran last */
  cpu_choice choice;
  /* The caller's side. */
  uint64_t launches;
  cpu_point last;           /* completion of the last launch */
  cpu_change_list *changes; /* set, not yet launched with; or NULL */
  cpu_bindings *free_bindings;
  _Atomic(cpu_bindings *) spent_bindings;
  _Atomic(cpu_change_list *) spent_changes;
  cpu_executable *next_zombie;
  uint64_t host_bytes;
};

/* The device ------------------------------------------------------------------------------------------------------ */

struct cpu_device {
  rondo_device base;
  size_t page_bytes;
  bool has_pools, has_nodes; /* stream-ordered memory; alloc and free nodes */
  uint64_t memory_limit;     /* the most bytes of physical memory at once */
  _Atomic uint64_t physical_bytes;
  cpu_pool pool;
  pthread_mutex_t lock; /* guards queues[], zombies; never held over a wait or a callback */
  _Atomic(cpu_queue *) queues[CPU_MAX_QUEUES];
  cpu_executable *zombies; /* destroyed while in flight */
  uint64_t launches_of_dead_queues;
  _Atomic uint64_t mapped_bytes, maps;
  struct check_state *check; /* of a checking device (check.h); else NULL */
};

extern const rondo_driver rondo_cpu_driver;

#endif
