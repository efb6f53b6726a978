/* SPDX-License-Identifier: MIT
 * A divided program's inside: its parts, each a compiled program, and the links by which one part's output becomes
 * another one's input. Parts of one device have its states in common, and streams and arenas of their own; each waits
 * on the device for the one that ran there last, so all that a device does is in order. A link to another device has
 * host memory in between: what sends into it has waited on the host until it was taken, and what takes until it was
 * sent. A part that changes states comes behind all that may fail, and is not begun if one of the parts before it has:
 * these are waited for, which the links ask for in most programs anyway. Thread-compatible.
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
  rondo_event *done; /* recorded behind whatever was queued on its stream last */
  bool has_updates;  /* it changes states */
} rondo_divided_unit;

typedef struct rondo_divided_link {
  uint32_t from, to;
  bool at_beginning; /* a state, as it was before the run */
  bool is_crossing;  /* to another device */
  char *what;
  const void *source;
  rondo_named_value *input; /* of the part that it goes to */
  size_t bytes;
  rondo_device *host_of; /* whose host memory: the one of the two that wants it page-locked */
  void *buffer;          /* NULL until a run wants it */
  rondo_event *sent, *taken;
} rondo_divided_link;

typedef struct rondo_divided_value {
  char kind; /* as rondo_compiled_value */
  char *name;
  uint32_t part; /* where it is read */
} rondo_divided_value;

struct rondo_divided {
  rondo_allocator allocator;
  char *name, *label; /* the program's */
  RONDO_ARRAY(rondo_divided_unit) parts;
  RONDO_ARRAY(rondo_divided_link) links;
  RONDO_ARRAY(rondo_divided_value) values; /* states, cells, inputs, outputs of the program */
  uint32_t last[RONDO_MAX_PLACES];         /* of each place the part that was used last, plus one; 0: none */
  uint64_t host_bytes;
  rondo_saved_error failure; /* found by a run, and told by what waits next; its status is RONDO_OK: none */
};

/* Tells the failure that a run found, once. */
RONDO_MUST_USE rondo_status rondo_divided_tell_failure(rondo_divided *divided);

#endif
