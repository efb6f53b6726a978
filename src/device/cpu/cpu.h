/* SPDX-License-Identifier: MIT
 * The types of the CPU driver. README.md describes the scheduler.
 *
 * A *queue* is a ring of items. Its producer is the user of the stream. Its consumer is the owner, one thread at a
 * time: a worker, or a host thread that waits. A *timeline* is a number that only grows, with its waiters. Each queue
 * has one that counts its items, and so has each event-record node. An *event* is a point on a timeline. A
 * *participant* is a thread that runs work of the device: a worker or a waiting host. An *executable* is a graph.
 * Participants share its tasks, and the blocks of a kernel as a *grid job*.
 *
 * A worker never waits: a queue that must wait is set aside (owner = CPU_BLOCKED), and the thread that advances the
 * timeline resumes it. Between a launch and its completion there is no lock and no allocation. In some places two
 * threads each store one value and then read the other's (head and attached, owner and attached, value and waiters,
 * ready and sleepers). There all four accesses are sequentially consistent, so at least one of the threads sees the
 * other's store.
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
typedef struct cpu_shared_memory cpu_shared_memory; /* cpu_shared_memory.h */

/* Timelines ------------------------------------------------------------------------------------------------------- */

/* What continues when a timeline reaches `target`: a queue (executable is NULL), or a task of a running executable.
 * Belongs to that queue or node, and is on at most one list. */
typedef struct cpu_waiter {
  struct cpu_waiter *next;
  uint64_t target;
  cpu_queue *queue;
  cpu_executable *executable;
  uint32_t task;
} cpu_waiter;

typedef struct cpu_timeline {
  _Atomic uint64_t value;        /* only grows; written by one thread at a time */
  _Atomic(cpu_waiter *) waiters; /* a stack, which is always taken as a whole */
  _Atomic uint32_t sleepers;     /* host threads that sleep on `signal` */
  _Atomic uint32_t signal;       /* futex */
  atomic_uint references;
  bool stamped; /* for event-record nodes of timing events: stamp_ns is the time of the last advance */
  _Atomic uint64_t stamp_ns;
  cpu_device *device;
  void (*release)(struct cpu_timeline *timeline); /* called with the last reference */
} cpu_timeline;

/* A point on a timeline. If the timeline is NULL, the point is reached. */
typedef struct cpu_point {
  cpu_timeline *timeline;
  uint64_t value;
} cpu_point;

static inline bool cpu_point_reached(cpu_point point) {
  return point.timeline == NULL || atomic_load_explicit(&point.timeline->value, memory_order_acquire) >= point.value;
}

/* A semaphore (rondo_semaphore_ops, cpu_event.c): a timeline that the layers above advance. The point of its event has
 * the value CPU_AS_ASKED: a wait for it waits for the value that is requested when the wait begins. */
#define CPU_AS_ASKED UINT64_MAX
typedef struct cpu_semaphore {
  cpu_timeline timeline;
  _Atomic uint64_t asked;
  _Atomic bool failed; /* set after the failure */
  rondo_saved_error failure;
  void (*end)(void *user);
  bool (*poll)(void *user);  /* NULL: it is not polled */
  void (*begin)(void *user); /* called when a wait begins, before it reads what is requested; or NULL */
  void *user;
} cpu_semaphore;

extern const rondo_semaphore_ops cpu_semaphore_ops;
/* Whether something happens when a wait for the point begins. */
static inline bool cpu_point_has_begin(cpu_point point) {
  return point.timeline != NULL && point.value == CPU_AS_ASKED &&
         ((const cpu_semaphore *)point.timeline)->begin != NULL;
}

/* A queue or a task begins to wait for the point. */
static inline void cpu_point_begin(cpu_point point) {
  const cpu_semaphore *semaphore = (const cpu_semaphore *)point.timeline;
  if (cpu_point_has_begin(point)) semaphore->begin(semaphore->user);
}
/* The point that a wait that begins now waits for. */
static inline cpu_point cpu_point_now(cpu_point point) {
  if (point.timeline == NULL || point.value != CPU_AS_ASKED) return point;
  return (cpu_point){point.timeline, atomic_load(&((cpu_semaphore *)point.timeline)->asked)};
}

/* The pool -------------------------------------------------------------------------------------------------------- */

enum {
  CPU_MOST_POLLED = 16,
  CPU_HOSTS = 16, /* host threads that can be participants at once */
  CPU_MAX_WORKERS = 256,
  CPU_MAX_QUEUES = 1 << RONDO_TAG_BITS, /* the tag of an entry in a deque is the slot of the queue whose graph runs */
  CPU_QUEUE_WORDS = CPU_MAX_QUEUES / 64
};

/* The blocks of a kernel, which participants take in chunks. While `users` is not 0, the owner does not change the
 * fields. */
typedef struct cpu_grid_job {
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t next; /* the first block that is not taken */
  _Atomic uint64_t done;
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t users;
  _Atomic uint32_t open;
  _Atomic(cpu_queue *) queue; /* that the kernel was enqueued on */
  rondo_cpu_function function;
  void *const *args;
  rondo_grid grid;
  uint64_t blocks, chunk;
  bool wakes; /* long enough to wake parked workers for */
} cpu_grid_job;

struct cpu_participant {
  rondo_task_worker tasks; /* of the graph that it runs now; empty between runs */
  cpu_grid_job job;
  alignas(RONDO_CACHE_LINE) cpu_device *device;
  uint32_t index;
  cpu_queue *watched;       /* the queue that a worker is attached to: a reference; or NULL */
  uint32_t next_slot;       /* the slot at which the next search for a ready queue begins */
  uint32_t processor_index; /* index in pool.processors of a bound worker's processor; changed by the mover */
  _Atomic int processor;    /* the system's number of this processor */
  uint64_t drained;         /* how many items it ran the last time it ran a queue */
  uint32_t drains;          /* how often it has run the watched queue since it attached to it */
  uint32_t reserve;         /* how often the time until its next check of that queue is doubled */
  bool brief;               /* the last check found little to do */
  int run_processor;        /* where its long run was last: the processor, and its index in pool.processors */
  uint32_t run_index;
  _Atomic bool runs_long;   /* it has a long run now */
  uint32_t ran_alone;       /* how many nodes of graphs it ran without help */
  _Atomic uint64_t kernels; /* how many it ran; written only by itself */
  _Atomic uint64_t parks;
};

typedef struct cpu_pool {
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t ready_summary; /* bit w: ready[w] may not be 0 */
  _Atomic uint32_t open_jobs;                               /* grid jobs open now */
  _Atomic uint32_t active_runs;                             /* executables running by stealing now */
  _Atomic uint32_t long_runs, occupied;                     /* long runs now; processors that have one */
  _Atomic uint64_t contentions;                             /* how often contention has begun */
  _Atomic(cpu_waiter *) injected;                           /* tasks whose wait is over */
  _Atomic uint32_t polled_count;                            /* entries of `polled` that are not 0 */
  _Atomic bool stop;
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t ready[CPU_QUEUE_WORDS]; /* bit: the queue needs a worker */
  alignas(RONDO_CACHE_LINE) rondo_sleepers sleepers;                 /* parked workers */
  _Atomic uintptr_t polled[CPU_MOST_POLLED];                         /* semaphores that idle threads poll; 0: none */
  _Atomic bool has_ranks;      /* semaphores are polled, so other ranks may run on this machine */
  _Atomic bool contended;      /* then: threads of others ran on a worker's processor when it yielded last */
  _Atomic uint64_t polling_ns; /* how much longer a thread that polls stays awake: as the last semaphore asked */
  _Atomic bool guarded;        /* a worker sleeps for at most GUARD_NS and finds work that nobody was woken for */
  _Atomic uint64_t wakes;
  rondo_sleepers starters;                          /* starters of runs, which sleep until a run ends */
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t hosts; /* bit: the host participant is taken */
  _Atomic(cpu_executable *) runs[CPU_MAX_QUEUES];   /* by slot of the queue: the executable that ran last by stealing */
  uint64_t spin_ns;                                 /* how long an idle thread stays awake */
  bool bound;                 /* each worker is bound to a processor, and one processor is left to the host */
  _Atomic bool moving;        /* a thread, the mover, moves workers to the spare processor */
  uint32_t spare;             /* its index in `processors`; changed by the mover */
  _Atomic int host_processor; /* that a host thread waited on last */
  uint32_t watch_turns;       /* turns of an idle worker between two checks of its queue */
  uint32_t worker_count;
  uint32_t threads_started;   /* fewer than worker_count if starting failed; for opening and closing */
  uint32_t participant_count; /* workers first, then hosts */
  cpu_participant *participants;
  rondo_thread *threads;
  int *processors;             /* of the process when the device was opened; the numbers of the system */
  _Atomic uint32_t *occupants; /* number of long runs on each of `processors` */
  uint32_t processor_count;
} cpu_pool;

/* The state of a waiting loop. It pauses, yields now and then, and should sleep after the time of the pool. */
typedef struct cpu_backoff {
  uint32_t turns;
  uint64_t since_ns; /* 0 before the clock is read for the first time */
  uint64_t yield_ns; /* how long the last yield took */
  bool polls;        /* the thread polls semaphores meanwhile (cpu_pool_poll) */
} cpu_backoff;

/* Queues ---------------------------------------------------------------------------------------------------------- */

enum {
  CPU_GRANULE = 64,
  CPU_RING_GRANULES = 1024,
  CPU_BUDGET = 64 /* items that a worker runs before it looks for other work */
};

static inline size_t cpu_align(size_t value, size_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

typedef enum cpu_operation {
  CPU_KERNEL = 1,
  CPU_WORK,  /* host function, copy or fill: runs like a kernel, but is not counted as one */
  CPU_WAIT,  /* for a point on a timeline */
  CPU_STAMP, /* writes the time of a timing event */
  CPU_GRAPH,
  CPU_CHECKED_GRAPH, /* on a checking device */
  CPU_STORES,        /* addresses for the next graph that do not fit into its item */
  CPU_SKIP           /* does nothing: fills the rest of the ring */
} cpu_operation;

struct cpu_event;
struct cpu_change_list;
struct cpu_bindings;

/* The head of an item. The addresses and values of a kernel's arguments follow it, and its name if it is traced: the
 * kernel may be destroyed before it runs. */
typedef struct cpu_item {
  uint16_t operation;
  uint16_t granules;
  uint32_t name_at; /* bytes from the item to the name of a kernel; 0 without a name */
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
      struct cpu_change_list *changes; /* applied first; or NULL */
      struct cpu_bindings *bindings;   /* for its event-wait nodes; or NULL */
      uint32_t store_count;            /* cpu_stores, after the item */
    } graph;
    uint32_t store_count;
  } as;
} cpu_item;

/* The address of an input at a site. It is written before the graph runs, to the storage of a node, which earlier
 * launches read until then. */
typedef struct cpu_store {
  void *site;
  uint64_t value;
} cpu_store;

enum { CPU_MOST_STORES = 128 /* of one item */ };

enum { CPU_DETACHED = 0, CPU_SCHEDULED = 1, CPU_ATTACHED = 2, CPU_DEAD = 3 };
enum { CPU_HABIT = 4 /* after so many waits of a host, the next one is expected */ };
enum { CPU_FREE = 0, CPU_OWNED = 1, CPU_BLOCKED = 2 };

struct cpu_queue {
  rondo_queue base;
  cpu_device *device;
  uint32_t slot;          /* index in the device's table */
  bool is_last;           /* of the queues of its stream, it was used last (cpu_shared_queue.h) */
  cpu_queue *next_shared; /* a ring; NULL: it is a stream by itself */
  uint64_t number;        /* unique in the process: its native handle */
  unsigned char *ring;
  /* The producer's. */
  alignas(RONDO_CACHE_LINE) _Atomic uint64_t head; /* granules written */
  /* CPU_DETACHED and so on: whether an awake worker watches the queue */
  _Atomic uint32_t attached;
  uint64_t tail_seen;
  _Atomic uint64_t submitted; /* items that count on the timeline; written by the producer */
  _Atomic uint64_t launches;  /* the same */
  /* The consumer's. */
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t owner;
  _Atomic uint64_t tail;   /* granules that are consumed; written by the owner */
  uint64_t completed;      /* items; for the owner */
  cpu_waiter waiter;       /* for CPU_WAIT */
  _Atomic bool runs;       /* it runs a graph by stealing */
  _Atomic uint32_t hosted; /* how often host threads ran it since a worker did, up to CPU_HABIT */
  /* how many threads sleep (cpu_queue_begin_sleep); in the upper half, how often they were woken */
  _Atomic uint64_t sleeping;
  cpu_timeline timeline; /* references to it keep this struct, but not the ring */
  _Atomic bool detach;   /* the producer requests that the worker detaches */
  atomic_uint visitors;  /* threads that are setting it aside or resuming it, so it cannot be freed */
  alignas(RONDO_CACHE_LINE) rondo_first_failure failure;
  char label[RONDO_STREAM_LABEL]; /* for messages */
};

extern const rondo_queue_ops cpu_queue_ops;
extern const rondo_event_ops cpu_event_ops;
extern const rondo_executable_ops cpu_executable_ops;
/* Whether there is an item and no owner. */
static inline bool cpu_queue_pending(cpu_queue *queue) {
  /* `owner` is read first: while a host thread runs the queue, the cache line with `head` stays with it for the next
   * launch. */
  return atomic_load(&queue->owner) == CPU_FREE &&
         atomic_load(&queue->head) != atomic_load_explicit(&queue->tail, memory_order_relaxed);
}

/* Work that is not a kernel (cpu_work.c): functions like those of kernels, whose args[0] points to a description. */
typedef struct cpu_host_work {
  rondo_host_node host;
  const char *name; /* for messages; owned by the item or node */
  bool is_node;
  rondo_node_where where;  /* of a node, which owns its text */
  cpu_queue *const *queue; /* where a failure goes; read when the function runs */
} cpu_host_work;
/* The function of a copy or fill, its number of blocks, and the data that args[0] points to. */
typedef struct cpu_description {
  rondo_cpu_function function;
  uint64_t blocks;
  const void *data;
  size_t bytes;
} cpu_description;
static inline rondo_blocks cpu_all_blocks(uint64_t count) {
  /* Such work uses only `first` and `last`: a grid cannot hold all counts. */
  const uint32_t x = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
  return (rondo_blocks){0, (size_t)count, {x, 1, 1}};
}

/* Events (cpu_event.c) -------------------------------------------------------------------------------------------- */

typedef struct cpu_event {
  rondo_device_event base;
  cpu_device *device;
  atomic_uint references;        /* of the handle, and of each enqueued stamp and executable */
  cpu_point point;               /* the event completes there */
  uint64_t records;              /* how often it was recorded */
  _Atomic uint64_t stamp_serial; /* twice the number of the record of stamp_ns; odd while stamp_ns is written */
  _Atomic uint64_t stamp_ns;
} cpu_event;

/* Executables (cpu_executable.c: building and changing; cpu_run.c: running) --------------------------------------- */

/* A node, in the order of execution: everything that the plain loop reads. */
typedef struct cpu_node {
  rondo_cpu_function function;
  void *const *args;
  rondo_blocks blocks;
} cpu_node;

/* The rest of a node as it was last set, for the caller's side. */
typedef struct cpu_node_detail {
  rondo_node_kind kind;
  rondo_node_where where;
  bool enabled;
  const char *name; /* in storage */
  cpu_node node;    /* as it runs if it is enabled; args point into storage */
  void *storage;    /* addresses and values of arguments, or the description of other work; then the name */
  size_t storage_bytes;
  cpu_event *event;       /* of an event node: a reference */
  cpu_timeline *timeline; /* of an event-record node: counts launches; a reference */
} cpu_node_detail;

#define CPU_NO_WAIT UINT32_MAX /* the mark of a task that is not an event-wait node */

/* What the event-wait nodes of one launch wait for. */
typedef struct cpu_bindings {
  struct cpu_bindings *next;
  cpu_point points[];
} cpu_bindings;

/* A change of a node from some launch on. The caller's side frees what it replaces after that launch. */
typedef struct cpu_change {
  struct cpu_change *next;
  uint32_t position;
  int more_kernels; /* change of kernel_count: 1 if the node is enabled, -1 if it is disabled, else 0 */
  cpu_node node;
  const char *name;
  rondo_node_where old_where;
  void *old_storage;
  size_t old_storage_bytes;
  cpu_timeline *old_timeline; /* of an event-record node; running launches still advance it */
} cpu_change;

typedef struct cpu_change_list {
  struct cpu_change_list *next; /* on the list of applied ones */
  cpu_change *first, **last;
} cpu_change_list;

struct cpu_executable {
  rondo_executable base;
  cpu_device *device;
  size_t node_count, kernel_count;
  /* its items are the nodes; a task's mark is the index of its event-wait node in the bindings */
  rondo_task_graph graph;
  cpu_node *nodes;                     /* by position */
  const char **names;                  /* by position, for traces */
  uint32_t *grid_costs;                /* by position: nanoseconds of all blocks (cpu_grid_run); 0: not known */
  uint64_t *times;                     /* by position: nanoseconds of the last run; NULL while timing is off */
  cpu_node_detail *details;            /* by index of the lowered node */
  uint32_t *wait_nodes, *record_nodes; /* lowered indices of the event nodes */
  uint32_t wait_count, record_count;
  cpu_waiter *waiters; /* one for each event-wait node */
  bool parallel;       /* it has work for more than one participant */
  bool is_chain;       /* each task is the only successor of the one before */
  /* The current run. There is one at a time, because launches of an executable are ordered (L1). */
  cpu_queue *queue;
  bool wakes;    /* it is worth waking parked workers */
  bool is_short; /* its tasks are short: participants keep some to themselves and count down several at once */
  cpu_bindings *bindings;
  alignas(RONDO_CACHE_LINE) _Atomic uint32_t sinks_left;
  /* How it runs. */
  alignas(RONDO_CACHE_LINE) uint64_t runs_begun;
  uint64_t contentions_seen; /* contentions of the pool at the last run */
  cpu_choice choice;
  /* The caller's side. */
  uint64_t launches;
  cpu_point last;           /* where the last launch completes */
  cpu_change_list *changes; /* made since the last launch; or NULL */
  cpu_bindings *free_bindings;
  _Atomic(cpu_bindings *) spent_bindings;
  _Atomic(cpu_change_list *) spent_changes;
  cpu_executable *next_zombie;
  uint64_t host_bytes;
  rondo_device_list others; /* devices of its nodes: their work runs on this device's workers */
};

/* The device ------------------------------------------------------------------------------------------------------ */

struct cpu_device {
  rondo_device base;
  size_t page_bytes;
  bool has_pools, has_nodes; /* it supports stream-ordered memory; alloc and free nodes */
  uint64_t memory_limit;     /* the maximum of physical_bytes */
  _Atomic uint64_t physical_bytes;
  cpu_pool pool;
  pthread_mutex_t lock; /* of queues[] and zombies; never held during a wait or a callback */
  _Atomic(cpu_queue *) queues[CPU_MAX_QUEUES];
  cpu_executable *zombies; /* destroyed while launches run */
  uint64_t launches_of_dead_queues;
  _Atomic uint64_t mapped_bytes, maps;
  _Atomic(cpu_shared_memory *) shared_memory; /* NULL before the first kernel that may use it */
  _Atomic(struct cpu_watcher *) watcher;      /* cpu_operations.h; NULL before the first memory operations */
  struct check_state *check;                  /* of a checking device (check.h); else NULL */
};

extern const rondo_driver rondo_cpu_driver;

#endif
