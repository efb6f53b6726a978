/* SPDX-License-Identifier: MIT
 * The parameters of nodes as data: for each kind of node its name and its fields, in the order in which JSON lists
 * them. Comparing, hashing, writing and reading nodes walk over this table, so that a new field is one line in it.
 * The arguments of a kernel and a child graph are no plain values: they have entries of type SPECIAL, which only give
 * their names in JSON, and the functions that walk the table treat them by themselves.
 *
 * Everything here is constant, so any thread may read it.
 */
#ifndef RONDO_GRAPH_NODE_FIELDS_H
#define RONDO_GRAPH_NODE_FIELDS_H

#include "graph/graph_internal.h"

/* Fingerprints look at the types from TEXT on only. */
typedef enum rondo_field_type {
  RONDO_FIELD_SPECIAL,  /* no plain value */
  RONDO_FIELD_ADDRESS,  /* a pointer to memory */
  RONDO_FIELD_HANDLE,   /* a pointer that means nothing in another process: JSON readers check and drop it */
  RONDO_FIELD_FUNCTION, /* likewise, but it tells what the node does: comparisons that ignore addresses look at it */
  RONDO_FIELD_FLAG,     /* a bool */
  RONDO_FIELD_TEXT,     /* NULL counts as "" */
  RONDO_FIELD_PEERS,    /* a set of devices, one bit each */
  RONDO_FIELD_U32,
  RONDO_FIELD_SIZE, /* 64 bits, at most PTRDIFF_MAX */
  RONDO_FIELD_PITCH /* 64 bits; it may have any value where it has no effect, as the pitch of a single row */
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

rondo_node_fields rondo_node_fields_of(rondo_node_kind kind); /* none for a number that is no kind */

/* Where the parameters have the field. */
static inline const void *rondo_node_field_in(const rondo_node_params *params, const rondo_node_field *field) {
  return (const char *)params + field->offset;
}

/* Whether two nodes of one kind have the same value in the field. */
bool rondo_node_field_same(const rondo_node_field *field, const rondo_node_params *a, const rondo_node_params *b,
                           bool ignore_addresses);

/* Folds the field into a hash. */
uint64_t rondo_node_field_hash(uint64_t state, const rondo_node_field *field, const rondo_node_params *params);

/* The value of a field that is a number. */
uint64_t rondo_node_field_number(const rondo_node_field *field, const rondo_node_params *params);

#endif
