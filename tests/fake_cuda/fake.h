/* SPDX-License-Identifier: MIT
 * All objects of the fake CUDA driver.
 *
 * One lock guards everything here: fake_begin takes it, fake_end releases it. Waits use one condition, `fake_changed`,
 * which is signalled at each change that a thread may wait for. Only a stream's thread without a task waits on a
 * condition of its stream. Each stream has a thread, which runs copies, fills, kernels and host functions without the
 * lock. Handles are never reused, so that the use of a destroyed object is always detected. The names of the driver's
 * functions come from the rows in the tables of symbols: row `stream_create` is fake_stream_create here and is exported
 * as cuStreamCreate.
 */
#ifndef RONDO_TESTS_FAKE_CUDA_FAKE_H
#define RONDO_TESTS_FAKE_CUDA_FAKE_H

#include <pthread.h>
#include <rondo/kernel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda/fake_cuda.h"
#include "vendor/cuda_driver_abi.h"

#define FAKE_EXPORT __attribute__((visibility("default")))
#define FAKE_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The driver's functions, with the types of the tables and the driver's names as exports. */
#define required(member, symbol, version, arguments) FAKE_EXPORT cu_result fake_##member arguments __asm__(#symbol);
#define optional(member, symbol, version, arguments) FAKE_EXPORT cu_result fake_##member arguments __asm__(#symbol);
#include "fake_cuda/foreign_symbols.h"
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional

/* Their numbers. */
typedef enum fake_call {
#define required(member, symbol, version, arguments) CALL_##member,
#define optional(member, symbol, version, arguments) CALL_##member,
#include "fake_cuda/foreign_symbols.h"
#include "vendor/cuda_driver_symbols.h"
#undef required
#undef optional
  CALL_COUNT
} fake_call;

enum { FAKE_LOSSY_QUERY = 402 }; /* in addition to the codes of the ABI */
enum { FAKE_MAX_BLOCK_THREADS = 1024, FAKE_MAX_HEAVY_THREADS = 512 };
/* Of a block: in all, dynamic without the function's attribute, and static of a kernel named static_... */
enum { FAKE_MAX_SHARED = 227 << 10, FAKE_DEFAULT_SHARED = 48 << 10, FAKE_STATIC_SHARED = 16 << 10 };
enum { FAKE_MAX_GRID_X = 0x7fffffff, FAKE_MAX_GRID_YZ = 65535 };
enum { FAKE_LEAST_PRIORITY = 0, FAKE_GREATEST_PRIORITY = -5 };
enum { FAKE_MAX_DEVICES = 16, FAKE_MULTIPROCESSORS = 132, FAKE_GRANULARITY = 2 << 20 };

typedef struct fake_object fake_object;
typedef struct fake_context fake_context;
typedef struct fake_device fake_device;
typedef struct fake_stream fake_stream;
typedef struct fake_event fake_event;
typedef struct fake_module fake_module;
typedef struct fake_function fake_function;
typedef struct fake_kernel fake_kernel;
typedef struct fake_work fake_work;
typedef struct fake_semaphore fake_semaphore;
typedef struct fake_node fake_node;
typedef struct fake_graph fake_graph;
typedef struct fake_program fake_program;
typedef struct fake_exec fake_exec;
typedef struct fake_capture fake_capture;
typedef struct fake_allocation fake_allocation;

/* Memory and the lock --------------------------------------------------------------------------------------------- */

/* Zeroed memory; the process ends when there is none, since no test can go on. */
void *fake_allocate(size_t count, size_t bytes);
void *fake_copy_of(const void *from, size_t bytes);

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;
void fake_wait(void);       /* for fake_changed */
void fake_wait_short(void); /* the same, for a moment at most: for what changes without a signal */
void fake_signal(void);

/* What a thread brings along. */
typedef struct fake_thread {
  fake_context *current;
  cu_capture_mode capture_mode;
  bool is_in_callback;
  cu_result result; /* what the call under way returns although it does its work; CU_OK: its own result */
  char identity;    /* its address tells threads apart */
} fake_thread;
/* In memory that comes with the thread: ThreadSanitizer does not see how the loader frees a finished thread's memory
 * for the libraries that were loaded later. */
extern _Thread_local fake_thread fake_self __attribute__((tls_model("initial-exec")));

/* Calls ----------------------------------------------------------------------------------------------------------- */

enum {
  FAKE_ANYWHERE = 0,     /* needs no context */
  FAKE_IN_CONTEXT = 1,   /* needs a current context that is not lost */
  FAKE_ALL_THE_SAME = 2, /* gives back or waits: does so even when it returns an error of another's */
  FAKE_BEFORE_START = 4, /* before cuInit as well */
  FAKE_WHEN_LOST = 8     /* as ALL_THE_SAME when the error is one that loses the context */
};

/* Begins a call: takes the lock, counts, and returns the code with which the call is to end at once. Every call ends
 * with fake_end, which gives the lock back. */
cu_result fake_begin(fake_call call, unsigned flags);
cu_result fake_end(cu_result code);

/* Keeps misuse in words, and returns the code. */
cu_result fake_violation(cu_result code, const char *format, ...) FAKE_PRINTF(2, 3);
bool fake_is_losing(cu_result code); /* after it the context is lost */
void fake_calls_forget(void);
uint64_t fake_calls_of(const char *name);
void fake_calls_fail(const char *name, uint64_t nth, cu_result code, bool onward);
const char *fake_calls_failed(void);
void fake_calls_hide(const char *symbol);
size_t fake_violation_count(void);
void fake_violation_list(char *text, size_t bytes);

/* Objects --------------------------------------------------------------------------------------------------------- */

/* Each object begins with this one. */
struct fake_object {
  fake_object *next; /* with the same hash */
  uint64_t handle;   /* 0: not in the table */
  fake_cuda_kind kind;
  fake_context *context; /* NULL: of none */
};

void fake_object_add(fake_object *object, fake_cuda_kind kind, fake_context *context);
void fake_object_add_at(fake_object *object, fake_cuda_kind kind, fake_context *context, uint64_t handle);
void fake_object_remove(fake_object *object);
/* The live object of a handle; NULL when there is none, which fake_need keeps as a violation. */
void *fake_find(fake_cuda_kind kind, uint64_t handle);
void *fake_need(fake_cuda_kind kind, uint64_t handle);
/* Any object of a kind; NULL when there is none. */
void *fake_any(fake_cuda_kind kind);
size_t fake_live(fake_cuda_kind kind);
void fake_list(char *text, size_t bytes);
/* Calls `visit` for each object of a kind, which must add and remove none. */
void fake_each(fake_cuda_kind kind, void (*visit)(void *object, void *user), void *user);

#define fake_handle(pointer) ((uint64_t)(uintptr_t)(pointer))
#define fake_as(type, pointer) ((type)(uintptr_t)(pointer)->object.handle)

/* Devices, contexts ----------------------------------------------------------------------------------------------- */

struct fake_context {
  fake_object object; /* in the table while it is retained; the handle stays the same */
  fake_device *device;
  unsigned retained;
  cu_result lost;   /* CU_OK, or what every call returns from now on */
  unsigned running; /* works other than host functions that run in it, or were launched from it */
  fake_stream *legacy;
  bool reaches[FAKE_MAX_DEVICES]; /* contexts of devices whose memory it was given access to, as a whole */
};

struct fake_device {
  int ordinal;
  uint64_t memory, used; /* bytes */
  fake_context context;
};

extern fake_device fake_devices[FAKE_MAX_DEVICES];
extern int fake_device_count;
extern int fake_driver_version;
extern bool fake_is_initialized;
extern uint64_t fake_seed;
extern bool fake_is_serial;
extern int fake_capability;
extern uint64_t fake_late;                /* a seed; 0: no work is late */
extern const char *fake_hang;             /* a path; NULL: nothing hangs */
fake_device *fake_device_at(int ordinal); /* NULL: none */
/* Work that runs now is waited for; none begins after it. */
void fake_context_lose(fake_context *context, cu_result code);
void fake_context_drain(const fake_context *context); /* waits until its streams have no work left */
bool fake_context_works(const fake_context *context); /* retained and not lost: else its work is left out */
void fake_contexts_reset(void);

/* Memory ---------------------------------------------------------------------------------------------------------- */

/* Held, shared, by who reads or writes mapped memory, and alone by who changes mappings, who has fake_lock as well. */
extern pthread_rwlock_t fake_mappings_lock;

/* Whether `device` may access the range: all of it host memory, or mapped with that access. With fake_mappings_lock. */
bool fake_memory_allows(const fake_device *device, uint64_t address, size_t bytes, bool writes);
/* Whether the address lies in a reservation. With either lock. */
bool fake_memory_is_device(uint64_t address);
/* Whether it lies in host memory of the driver's. With fake_lock. */
bool fake_memory_is_page_locked(uint64_t address);
/* How much is mapped of a range in a caller's reservation: not even its first byte, not all, all; all when it lies in
 * none. */
typedef enum fake_presence { FAKE_ABSENT, FAKE_PARTLY_PRESENT, FAKE_PRESENT } fake_presence;
fake_presence fake_memory_presence(uint64_t address, size_t bytes);
size_t fake_memory_mappings(int device);
/* Whole granules of address space that are no reservation of a caller's, 0 when there is none; memory for them,
 * which its device may access; and giving both back. */
uint64_t fake_memory_hold(uint64_t bytes);
cu_result fake_memory_back(uint64_t address, uint64_t bytes, fake_device *device);
void fake_memory_drop(uint64_t address);
void fake_memory_reset(void);

/* Code ------------------------------------------------------------------------------------------------------------ */

/* A registered kernel; never freed, so that functions keep what they were bound to. */
struct fake_kernel {
  fake_kernel *next;
  char *name;
  rondo_cpu_function function;
  rondo_cpu_block_function block_function; /* in its place; or NULL */
  size_t count;
  rondo_parameter parameters[RONDO_MAX_PARAMETERS];
  size_t offsets[RONDO_MAX_PARAMETERS];
  size_t bytes; /* of all arguments */
  bool faults;
  fake_cuda_attributes ran; /* the last work that began */
};

struct fake_function {
  fake_object object;
  fake_function *next; /* of the module */
  unsigned references; /* the module's and those of works */
  char *name;
  fake_module *module;
  fake_kernel *kernel;    /* NULL: not registered yet */
  int max_dynamic_shared; /* an attribute */
};

/* A variable of code: a registered one of the program, which every module has. Never freed. */
typedef struct fake_symbol {
  struct fake_symbol *next;
  char *name;
  void *address;
  size_t bytes;
  unsigned modules; /* that were asked for it and are loaded */
} fake_symbol;

typedef struct fake_global {
  struct fake_global *next; /* of the module */
  fake_symbol *symbol;
} fake_global;

struct fake_module {
  fake_object object;
  fake_function *functions;
  fake_global *globals;
  char *image;
};

/* Whether a loaded module has a variable at the address. */
bool fake_symbol_contains(uint64_t address);

/* What the function runs, bound at the first time; NULL when nothing is registered for its name. */
fake_kernel *fake_function_kernel(fake_function *function);
void fake_function_release(fake_function *function);
void fake_module_free(fake_module *module);

/* Work: what a stream or a node does ------------------------------------------------------------------------------ */

typedef struct fake_kernel_work {
  fake_function *function;
  fake_kernel *kernel;
  cu_kernel_params params; /* as given, but `params` and `extra` point into what is kept here */
  unsigned char *bytes;    /* of the arguments */
  void *addresses[RONDO_MAX_PARAMETERS];
  size_t extra_bytes;
  void *extra[5];
  fake_cuda_attributes attributes;
} fake_kernel_work;

/* Immutable once made, but for its count of references. */
struct fake_work {
  unsigned references;
  cu_node_type type; /* KERNEL, COPY, MEMSET, HOST, EVENT_*, ALLOC, FREE, BATCH_MEMORY_OPERATION */
  bool is_astray;    /* a copy that was captured of addresses which were not mapped */
  void *source;      /* of a copy, taken when it was queued; or NULL */
  fake_context *context;
  union {
    fake_kernel_work kernel;
    cu_copy copy;
    cu_memset_params fill;
    cu_host_params host;
    struct {
      cu_memory_operation *items;
      size_t count;
    } operations;
    struct {
      fake_semaphore **items;
      uint64_t *values;
      size_t count;
    } semaphores;
    fake_event *event;
    fake_allocation *allocation;
  } of;
};

/* Each checks its arguments, makes a work with one reference into *out, or leaves NULL there. */
cu_result fake_work_kernel(const cu_kernel_params *params, const fake_cuda_attributes *attributes, fake_work **out);
/* Sets or reads one attribute. */
cu_result fake_attribute_set(fake_cuda_attributes *attributes, cu_launch_attribute_id id, const cu_launch_value *value);
cu_result fake_attribute_get(const fake_cuda_attributes *attributes, cu_launch_attribute_id id, cu_launch_value *value);
/* The attributes of the last work of a registered kernel that began; zeros when there is none. */
fake_cuda_attributes fake_kernel_ran(const char *name);
/* How many blocks of a function one multiprocessor runs at once. */
int fake_function_blocks(const fake_function *function, unsigned threads, size_t shared_bytes);
/* What a capture takes need not be mapped yet. */
cu_result fake_work_copy(const cu_copy *params, fake_context *context, bool is_captured, fake_work **out);
cu_result fake_work_fill(const cu_memset_params *params, fake_context *context, bool is_captured, fake_work **out);
/* What the driver says when it is instantiated to what is mapped of a copy or a fill (docs/cuda-probes.md, 30 to 38).
 */
cu_result fake_work_look(const fake_work *work);
cu_result fake_work_host(const cu_host_params *params, fake_context *context, fake_work **out);
/* Operations on words of host memory or mapped memory. */
cu_result fake_work_operations(const cu_memory_operation *operations, size_t count, fake_context *context,
                               fake_work **out);
/* Runs them from *inout_done on. False at a condition that is not fulfilled. */
bool fake_operations_run(const fake_work *work, size_t *inout_done);

/* Signals of external semaphores and waits for them (semaphore.c). The type is that of the node. */
cu_result fake_work_semaphores(const cu_external_semaphore *semaphores, const cu_semaphore_params *params,
                               unsigned count, cu_node_type type, fake_context *context, fake_work **out);
void fake_work_release_semaphores(fake_work *work);
/* Runs them from *inout_done on. False at a wait that is not over. */
bool fake_semaphores_run(const fake_work *work, size_t *inout_done);
cu_result fake_work_event(cu_event event, cu_node_type type, fake_work **out);
void fake_work_retain(fake_work *work);
void fake_work_release(fake_work *work); /* NULL is fine */
/* Runs kernels, copies, fills and host functions of a stream of the context `launching`. Called with the lock, which it
 * gives back meanwhile. A fault loses the context of the work. */
void fake_work_run(const fake_work *work, fake_context *launching);
/* Does what the work says on host memory; false: an address that must not be accessed. Without the lock. */
bool fake_copy_run(const fake_device *device, const cu_copy *copy);
bool fake_fill_run(const fake_device *device, const cu_memset_params *fill);
cu_result fake_copy_check(const cu_copy *copy);
fake_presence fake_copy_presence(const cu_copy *copy); /* the lesser of its sides' */
bool fake_copy_names(const cu_copy *copy, uint64_t address, size_t bytes);
bool fake_copy_is_1d(const cu_copy *copy);
bool fake_copy_is_alike(const cu_copy *one, const cu_copy *other); /* the same kinds of memory on both sides */

/* Streams, events ------------------------------------------------------------------------------------------------- */

/* A point that is reached once. */
typedef struct fake_marker {
  unsigned references;
  bool is_reached;
  uint64_t time_ns;
  fake_stream *stream; /* whose task reaches it, by its number; NULL: none yet */
  uint64_t number;
} fake_marker;
fake_marker *fake_marker_new(void);
fake_marker *fake_marker_retain(fake_marker *marker); /* NULL is fine, here and below */
void fake_marker_release(fake_marker *marker);
void fake_marker_reach(fake_marker *marker);
bool fake_marker_is_reached(const fake_marker *marker);

/* What a stream does: waits, then works, then a program, then reaches a marker; each NULL for none. */
typedef struct fake_task {
  struct fake_task *next;
  fake_marker *wait;
  fake_work *work;
  fake_program *program;
  fake_marker **program_markers; /* of the program's event nodes, by node */
  fake_marker *reach;
} fake_task;

/* What the next captured node of a stream depends on. */
typedef struct fake_frontier {
  size_t count;
  cu_graph_node *nodes;
  cu_edge_data *data;
} fake_frontier;

struct fake_stream {
  fake_object object;
  fake_stream *next; /* of all whose thread runs */
  bool is_blocking, is_legacy, is_ending;
  int priority;
  const char *thread; /* fake_thread.identity of the thread whose default stream it is; NULL: of none */
  fake_task *first, *last;
  pthread_cond_t arrived;                /* a task, or the end */
  uint64_t submitted, completed, wanted; /* tasks; wanted: somebody waits for so many */
  fake_capture *capture;                 /* NULL: none */
  fake_stream *next_in_capture;
  fake_frontier frontier;
  cu_graph_node last_captured; /* NULL: nothing that has to be joined */
};

struct fake_event {
  fake_object object;
  unsigned references; /* the caller's and those of works */
  bool has_timing;
  fake_marker *marker;    /* of the last record; NULL: never recorded */
  uint64_t capture;       /* the number of the capture that it was last recorded in, or 0 */
  fake_frontier frontier; /* then */
};

/* A live stream of a handle, the legacy stream of the current context for NULL; NULL: none, a violation. */
fake_stream *fake_stream_need(cu_stream handle);
void fake_stream_end(fake_stream *stream);
/* Ends the default streams of a context: the legacy stream, and those of threads. */
void fake_streams_end_defaults(fake_context *context);
/* Queues a task; the stream takes over all that it points to. Returns the code of a lost context. */
cu_result fake_stream_submit(fake_stream *stream, fake_task task);
/* Waits for all that was queued so far. */
cu_result fake_stream_drain(fake_stream *stream);
/* All that still have a thread, destroyed ones too. */
fake_stream *fake_streams_first(void);
void fake_streams_settle(void); /* until none has work */
/* Where launches run alone (fake_is_serial): waits until no stream of the context has work. */
void fake_stream_serialize(const fake_stream *stream);
void fake_streams_leave(void); /* until none is left */
/* Late work: somebody waits for the first so many tasks of a stream, for all of a context's (NULL: of all), or for a
 * marker (NULL is fine); the markers of a task that was queued just now are its stream's; and the stream's thread waits
 * before its next task. */
void fake_stream_want(fake_stream *stream, uint64_t number);
void fake_context_want(const fake_context *context);
void fake_marker_want(const fake_marker *marker);
void fake_task_promise(const fake_task *task, fake_stream *stream);
void fake_stream_hold_back(const fake_stream *stream);
/* A copy from the host may take its source before it is queued. */
void fake_late_take_source(fake_work *copy);
/* Returns once nothing hangs. */
void fake_stream_hang(void);
fake_event *fake_event_need(cu_event handle);
void fake_event_release(fake_event *event);
void fake_event_end(fake_event *event);

/* Graphs ---------------------------------------------------------------------------------------------------------- */

typedef struct fake_edge {
  fake_node *from, *to;
  cu_edge_data data;
} fake_edge;

struct fake_node {
  fake_object object;
  fake_graph *graph;
  cu_node_type type;
  size_t index;    /* in the graph */
  fake_work *work; /* NULL: empty or a child */
  fake_graph *child;
  cu_graph_node source; /* the node that it was cloned from; or NULL */
};

struct fake_graph {
  fake_object object;
  fake_node **nodes; /* in the order in which they were added */
  size_t count, capacity;
  fake_edge *edges;
  size_t edge_count, edge_capacity;
  fake_capture *capture; /* that adds to it; NULL: none */
  fake_node *owner;      /* whose child it is; NULL: none */
};

fake_graph *fake_graph_new(void);
void fake_graph_free(fake_graph *graph);
/* Adds a node after others of the same graph; owns `work` from then on, also if it fails. `data` may be NULL. */
cu_result fake_graph_add(fake_graph *graph, const cu_graph_node *before, const cu_edge_data *data, size_t count,
                         cu_node_type type, fake_work *work, fake_node **out);
bool fake_graph_has_memory(const fake_graph *graph);
bool fake_graph_reaches(const fake_graph *graph, const fake_node *from, const fake_frontier *to);

/* Graphs flattened: a child's nodes stand between two empty ones, its entry and its exit. Topology is immutable; works
 * and enabled bits are changed on a copy when a launch still has the program. */
struct fake_program {
  unsigned references;
  size_t count, edge_count;
  uint64_t *nodes; /* handle of the node that it comes from; 0: the exit of a child */
  cu_node_type *types;
  fake_work **works; /* NULL: nothing to do */
  bool *is_disabled;
  size_t *start, *successors; /* of node i: successors[start[i]] to successors[start[i + 1]] */
  size_t *before;             /* how many nodes it waits for */
};

/* Flattens; NULL and a node in *out_error when it has a cycle. */
fake_program *fake_program_new(const fake_graph *graph, cu_graph_node *out_error);
fake_program *fake_program_copy(const fake_program *program);
void fake_program_release(fake_program *program);
/* Runs it. `markers` of its event nodes, by node. With the lock, which it gives back meanwhile. */
void fake_program_run(const fake_program *program, fake_context *context, fake_marker *const *markers);

struct fake_exec {
  fake_object object;
  uint64_t graph;    /* handle of what it was made from */
  bool frees_before; /* each launch begins with freeing what is alive of it */
  fake_program *program;
  fake_marker *last; /* launch */
};
void fake_exec_free(fake_exec *exec);
/* The exec's program, which may be changed. */
fake_program *fake_exec_edit(fake_exec *exec);
cu_result fake_exec_submit(fake_exec *exec, fake_stream *stream);

/* The driver's own allocations ------------------------------------------------------------------------------------- */

/* Its address is kept as long as works refer to it; in the table, and so in the ledger, while it is alive. */
struct fake_allocation {
  fake_object object;
  unsigned references;
  fake_context *context;
  uint64_t address;
  size_t bytes, held_bytes;
  bool is_of_graph, is_backed;
};
void fake_allocation_retain(fake_allocation *allocation);
void fake_allocation_release(fake_allocation *allocation);
bool fake_allocation_is_alive(const fake_allocation *allocation);
/* Whether the copy names memory that a node of the graph frees, of which it takes no more copies. */
bool fake_graph_has_freed(const fake_graph *graph, const cu_copy *copy);
bool fake_program_has_memory(const fake_program *program);
/* At a launch: begins and ends lifetimes; refused when one is alive that should not be, or the reverse. */
cu_result fake_program_take_memory(const fake_program *program, bool frees_before);
void fake_allocations_reset(void);

/* Capture --------------------------------------------------------------------------------------------------------- */

struct fake_capture {
  fake_capture *next;
  uint64_t number;
  fake_graph *graph; /* NULL once it is invalid and the graph gone */
  fake_stream *origin, *streams;
  const char *thread; /* fake_thread.identity */
  cu_capture_mode mode;
  bool is_invalid;
};

/* Each returns CU_OK, or the code with which a call is refused; see rules C6 to C10 of docs/rules.md. */
cu_result fake_gate_unsafe(void);
cu_result fake_gate_stream(fake_stream *stream);    /* asking or waiting for it */
cu_result fake_gate_event(const fake_event *event); /* asking or waiting for it */
cu_result fake_gate_context(const fake_context *context);
cu_result fake_gate_legacy(const fake_stream *stream);
cu_result fake_gate_submit(fake_stream *stream); /* work that cannot be captured */
/* Work given to a capturing stream becomes a node; takes over `work`. */
cu_result fake_capture_work(fake_stream *stream, fake_work *work, cu_node_type type);
cu_result fake_capture_record(fake_stream *stream, fake_event *event);
/* Waiting when the event was recorded in a capture, or the stream is in one. */
cu_result fake_capture_wait(fake_stream *stream, fake_event *event);
void fake_capture_leave(fake_stream *stream); /* is going to be destroyed */
void fake_frontier_set(fake_frontier *frontier, const cu_graph_node *nodes, const cu_edge_data *data, size_t count);
void fake_frontier_clear(fake_frontier *frontier);
void fake_captures_reset(void);

#endif
