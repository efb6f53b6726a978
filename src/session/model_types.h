/* SPDX-License-Identifier: MIT
 * The types of a model and of its instances. A model has one instance on each stream of the session: programs that
 * share states and an arena, the graphs recorded of them, and staging memory. Only the thread that has claimed the
 * stream's worker uses the instance.
 *
 * A model's graphs change only while the model is changing, when no request uses it, or while all workers are claimed.
 * The session's lock guards the list `graphs`, the dispatch tables and the counters. Tables, and the times that they
 * are made from, may also be replaced while requests run, so a thread copies what it needs before it releases the lock.
 */
#ifndef RONDO_SESSION_MODEL_TYPES_H
#define RONDO_SESSION_MODEL_TYPES_H

#include <rondo/capture.h>
#include <rondo/memory.h>
#include <rondo/session.h>

#include "base/array.h"
#include "base/error.h"
#include "session/serve/waiting_requests.h"
#include "session/sizing/dispatch_table.h"
#include "session/sizing/graph_times.h"

#define RONDO_STAGING_ALIGNMENT 256

typedef struct rondo_session_model rondo_session_model;
typedef struct rondo_model_devices rondo_model_devices; /* session/placement/upstream_parts.h, as is the next */
typedef struct rondo_upstream rondo_upstream;

/* What the session writes to an input (rondo_row_inputs). */
typedef enum rondo_row_role {
  RONDO_ROW_GIVEN, /* nothing: the request gives it */
  RONDO_ROW_LENGTH,
  RONDO_ROW_SLOT,
  RONDO_ROW_START,
  RONDO_ROW_SOURCE,
  RONDO_ROW_POSITIONS,
  RONDO_ROW_LAST,
  RONDO_ROW_ROLES
} rondo_row_role;

/* An input or output. `shape` is that of one row, and is known only for functions. */
typedef struct rondo_session_value {
  char *name;
  rondo_type type;
  rondo_row_role role;
  size_t row_bytes;
  size_t position_bytes; /* of one position of a row; 0: the value does not have the length */
  uint32_t rank;
  size_t shape[RONDO_TREE_MAX_RANK];
} rondo_session_value;

/* Bytes of a row of so many positions. */
static inline size_t rondo_session_value_bytes(const rondo_session_value *value, size_t length) {
  return value->position_bytes > 0 ? value->position_bytes * length : value->row_bytes;
}

/* Instances -------------------------------------------------------------------------------------------------------- */

/* Staging memory: host memory for `rows` rows of all inputs and outputs, each at its own offset. Functions also have
 * device memory, in which the inputs have the same offsets. Host memory for the results of upstream parts, `bytes` of
 * them, is a stage of 0 rows. */
typedef struct rondo_stage {
  unsigned char *memory, *device_memory;
  size_t rows, bytes, device_bytes;
} rondo_stage;

static inline size_t rondo_staging_align(size_t bytes) {
  return (bytes + RONDO_STAGING_ALIGNMENT - 1) / RONDO_STAGING_ALIGNMENT * RONDO_STAGING_ALIGNMENT;
}

/* A program for a number of rows, compiled for an instance. */
typedef struct rondo_instance_program {
  rondo_compiled *compiled; /* on the session's device */
  rondo_upstream *upstream; /* its parts on other devices; NULL: none */
  void **addresses;         /* of the model's inputs, then of its outputs; NULL: `compiled` does not have the value */
} rondo_instance_program;

/* A recorded graph. For a function, `function` and `recorded` replace `program`, `graph` and `exec`. */
typedef struct rondo_instance_graph {
  rondo_instance_program program;
  rondo_graph *graph;
  rondo_exec *exec;
  size_t rows,
      length;        /* the length is that of the model, or a shorter one of an eager run of a model with exact ones */
  rondo_stage stage; /* of the instance */
  unsigned char *transfer; /* of the instance */
  rondo_function *function;
  struct rondo_recorded_call *recorded;
  rondo_input_copy *copies; /* the input map, by input */
} rondo_instance_graph;

/* A program for eager runs of exactly `rows` rows of this length; 0: unused. */
typedef struct rondo_cached_program {
  size_t rows, length;
  rondo_instance_program program;
  uint64_t last_use;
} rondo_cached_program;

typedef struct rondo_model_instance {
  rondo_session_model *model;
  uint32_t worker;
  rondo_stream *stream;
  rondo_instance_program anchor; /* for one row; owns the arena and, with the other anchors, the states */
  rondo_tree *tree;              /* of a function, instead of the anchor */
  rondo_function *eager_function;
  RONDO_ARRAY(rondo_instance_graph) graphs;
  RONDO_ARRAY(rondo_stage) stages;
  rondo_stage eager_stage, eager_transfer; /* for eager runs */
  rondo_cached_program *programs;          /* max_eager_programs of them */
  uint64_t uses;                           /* of programs: the clock of last_use */
  uint64_t arena_bytes;                    /* guarded by the session's lock */
  uint64_t upstream_arena_bytes;           /* the part of arena_bytes on other devices; likewise */
  size_t last_graph;                       /* index + 1 of the graph that a manual run launched last; 0: none */
} rondo_model_instance;

/* Models ----------------------------------------------------------------------------------------------------------- */

/* The properties of a graph, on all streams. */
typedef struct rondo_session_graph {
  rondo_model_graph info; /* `samples` is in `tracked` */
  rondo_tracked_time tracked;
  double overlap, eager_overlap; /* time on all streams at once, divided by the time one after the other */
} rondo_session_graph;

/* Both are NULL while there are no graphs. */
typedef struct rondo_dispatch_tables {
  rondo_dispatch_table *any;
  rondo_dispatch_table *recorded; /* without eager runs */
} rondo_dispatch_tables;

/* Requests of a model that wait, the oldest first. */
typedef struct rondo_slot_list {
  struct rondo_slot *head, *tail;
} rondo_slot_list;

/* A model with lengths is several of these, one for each length, ascending in the session's list. The shortest is the
 * head, which has the states, the cache slots, `is_changing` and `in_use` of all. A model without lengths is its own
 * head. A network that reads the sources of sequences (<rondo/session.h>, Sources) follows the lengths of its model in
 * the list, has lengths and names of its own, and the head of the model. */
struct rondo_session_model {
  rondo_session_model *next;
  rondo_session *session;
  char *name;
  char *whole_name; /* of the head of a model with lengths: the name without the length; else NULL */
  rondo_session_model *head;
  rondo_session_model *network;    /* the shortest length of the same network: the head, unless it reads sources */
  size_t length;                   /* 0: the model has no lengths */
  bool has_exact_lengths;          /* nothing is padded to `length`: shorter requests run eagerly */
  struct rondo_cache_slots *slots; /* of the head; NULL: the model has no sequences */
  rondo_model_build_sized build_sized;
  rondo_model_build_sized build_source; /* of the head: the network that reads sources; NULL: there is none */
  void *source_user;
  size_t source_length; /* the shortest one of that network */
  rondo_model_build build;
  rondo_function_body body; /* not NULL: the model is a function, and `build` is NULL */
  RONDO_ARRAY(rondo_host_range) constants;
  rondo_model_devices *devices; /* NULL: the whole model runs on the session's device */
  rondo_device *staging_device; /* allocates the staging memory */
  void *user;
  uint32_t max_sizes;
  size_t max_batch_rows;
  uint64_t budget_bytes, budget_startup_us;
  RONDO_ARRAY(size_t) history; /* sorted when sizes are chosen */
  RONDO_ARRAY(rondo_session_value) inputs, outputs;
  size_t given_inputs;         /* the first inputs, which requests give */
  RONDO_ARRAY(char *) changed; /* names of the states that a run changes, without caches; on one stream only */
  rondo_model_instance instances[RONDO_SESSION_MAX_STREAMS];
  RONDO_ARRAY(rondo_session_graph) graphs;
  rondo_dispatch_tables idle;   /* for a batch while nothing else runs and other workers are free */
  rondo_dispatch_tables loaded; /* for all other batches */
  double eager_extra_us;        /* mean time that an eager run spends on compiling a program */
  bool has_given_times;         /* times of rondo_session_set_times, which samples do not change */
  bool is_outdated;             /* times have changed since the tables were made */
  uint64_t next_renewal_ns;     /* the tables are not made again before this time */
  double trial_debt_us;         /* time of the last trial that later batches have not compensated yet */
  bool is_building;             /* a thread is in `build`; one at a time */
  bool is_changing;             /* of the head */
  bool is_recording;            /* of the head: in capture mode, a request is being recorded */
  uint32_t in_use;              /* of the head: requests that wait or run, and writes of states */
  uint32_t writes;              /* of states */
  uint32_t runs;                /* objects of rondo_model_run */
  size_t waiting_rows;
  rondo_slot_list waiting;
  rondo_waiting_tree waiting_by_mode[RONDO_RUN_CAPTURED]; /* the same requests, by requested mode */
  rondo_model_info info;
};

#endif
