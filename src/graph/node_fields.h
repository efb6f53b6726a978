/* SPDX-License-Identifier: MIT
 * The parameters of nodes as data: for each kind of node its name and its fields, in the order in which JSON lists
 * them. The functions that compare, hash, write and read nodes walk over this table, so a new field is one line. The
 * arguments of a kernel and a child graph are not plain values: their entries have the type SPECIAL and only give their
 * names in JSON; the functions that walk the table treat them separately.
 *
 * Everything here is constant, so any thread may read it.
 */
#ifndef RONDO_GRAPH_NODE_FIELDS_H
#define RONDO_GRAPH_NODE_FIELDS_H

#include "graph/graph_internal.h"

/* Fingerprints use the types from TEXT on only. */
typedef enum rondo_field_type {
  RONDO_FIELD_SPECIAL,  /* no plain value */
  RONDO_FIELD_ADDRESS,  /* a pointer to memory */
  RONDO_FIELD_HANDLE,   /* a pointer without meaning in another process: JSON readers check and drop it */
  RONDO_FIELD_FUNCTION, /* likewise, but it says what the node does, so comparisons that ignore addresses compare it */
  RONDO_FIELD_FLAG,     /* a bool */
  RONDO_FIELD_TEXT,     /* NULL counts as "" */
  RONDO_FIELD_PEERS,    /* a set of devices, one bit each */
  RONDO_FIELD_U32,
  RONDO_FIELD_SIZE, /* 64 bits, at most PTRDIFF_MAX */
  RONDO_FIELD_PITCH /* 64 bits; any value where it has no effect, as for a single row */
} rondo_field_type;

typedef struct rondo_node_field {
  const char *name; /* in JSON */
  rondo_field_type type;
  size_t offset; /* in rondo_node_params */
} rondo_node_field;

typedef struct rondo_node_fields {
  const rondo_node_field *items;
  size_t count;
} rondo_node_fields;

/* In JSON: by rondo_memory_operation_kind, "" for 0, and by rondo_wait_condition. */
extern const char *const rondo_operation_names[RONDO_OPERATION_WRITE_64 + 1];
extern const char *const rondo_condition_names[RONDO_WAIT_NOR + 1];

rondo_node_fields rondo_node_fields_of(rondo_node_kind kind); /* no fields for an invalid kind */

/* The address of the field in the parameters. */
static inline const void *rondo_node_field_in(const rondo_node_params *params, const rondo_node_field *field) {
  return (const char *)params + field->offset;
}

/* Whether two nodes of one kind have the same value in the field. */
bool rondo_node_field_same(const rondo_node_field *field, const rondo_node_params *a, const rondo_node_params *b,
                           bool ignore_addresses);

/* Adds the field to a hash. */
uint64_t rondo_node_field_hash(uint64_t state, const rondo_node_field *field, const rondo_node_params *params);

/* The value of a field that is a number. */
uint64_t rondo_node_field_number(const rondo_node_field *field, const rondo_node_params *params);

#endif
