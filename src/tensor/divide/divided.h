/* SPDX-License-Identifier: MIT
 * The inside of a divided program: its parts, each a compiled program, and the links by which an output of one part
 * becomes an input of another. Parts of one device share its states, and have their own streams and arenas. Each waits
 * on the device for the part that ran there last, so all work of a device is in order. A link to another device copies
 * through host memory: the sender waits on the host until the previous copy was taken, and the receiver until it was
 * sent. A part that changes states comes after all parts that may fail, waits for them, and does not run if one has
 * failed. Thread-compatible.
 */
#ifndef RONDO_TENSOR_DIVIDE_DIVIDED_H
#define RONDO_TENSOR_DIVIDE_DIVIDED_H

#include <rondo/placement.h>

#include "tensor/divide/division.h"
#include "tensor/run/compiled.h"

typedef struct rondo_divided_unit {
  uint32_t place, operators;
  rondo_device *device;
  rondo_compiled *compiled;
  rondo_event *done; /* recorded after the last work on its stream */
  bool has_updates;  /* it changes states */
} rondo_divided_unit;

typedef struct rondo_divided_link {
  uint32_t from, to;
  bool at_beginning; /* a state, as it was before the run */
  bool is_crossing;  /* to another device */
  char *what;
  const void *source;
  rondo_named_value *input; /* of part `to` */
  size_t bytes;
  rondo_device *host_of; /* whose host memory: a CUDA device of the two, which needs it page-locked */
  void *buffer;          /* NULL before the first run */
  rondo_event *sent, *taken;
} rondo_divided_link;

typedef struct rondo_divided_value {
  char kind; /* as rondo_compiled_value */
  char *name;
  uint32_t part; /* that reads of the value use */
} rondo_divided_value;

struct rondo_divided {
  rondo_allocator allocator;
  char *name, *label; /* the program's */
  RONDO_ARRAY(rondo_divided_unit) parts;
  RONDO_ARRAY(rondo_divided_link) links;
  RONDO_ARRAY(rondo_divided_value) values; /* states, cells, inputs, outputs of the program */
  uint32_t last[RONDO_MAX_PLACES];         /* by place: the part that was used last, plus one; 0: none */
  uint64_t host_bytes;
  rondo_saved_error failure; /* found by a run and returned by the next call that waits; status RONDO_OK: none */
};

/* Returns the failure that a run found, once. */
RONDO_MUST_USE rondo_status rondo_divided_take_failure(rondo_divided *divided);

#endif
