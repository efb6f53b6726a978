/* SPDX-License-Identifier: MIT
 * A set of named tensors: entries sorted by name, each with data of its own; metadata sorted by key.
 */
#ifndef RONDO_TENSOR_WEIGHTS_INTERNAL_H
#define RONDO_TENSOR_WEIGHTS_INTERNAL_H

#include <rondo/weights.h>

#include "base/array.h"
#include "base/error.h"
#include "tensor/shape.h"

#define RONDO_METADATA_KEY "__metadata__"

/* Entries and pairs begin with the text that they are sorted by. */
typedef struct rondo_weights_entry {
  char *name;
  rondo_shape shape;
  void *data;
} rondo_weights_entry;

typedef struct rondo_weights_pair {
  char *key, *value;
} rondo_weights_pair;

struct rondo_weights {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_weights_entry) entries;
  RONDO_ARRAY(rondo_weights_pair) metadata;
};

/* Adds an entry at the end, its data zero; the caller fills it, and sorts once all are there. The name is none of the
 * set's. `shape` is one that rondo_shape_make took. Errors: INVALID_ARGUMENT with MALFORMED (a name that cannot be
 * written into a file), OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weights_append(rondo_weights *weights, const char *name, const rondo_shape *shape,
                                                 void **out_data);
void rondo_weights_sort(rondo_weights *weights);

/* The same for metadata: a key that the set does not have, in UTF-8 as the value. OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weights_append_metadata(rondo_weights *weights, const char *key, const char *value);
void rondo_weights_sort_metadata(rondo_weights *weights);

/* The entry of this name in a sorted set, or NULL. */
const rondo_weights_entry *rondo_weights_look_up(const rondo_weights *weights, const char *name);

/* Moves all entries of `from` into `to`: all, or none and DUPLICATE_NAME or OUT_OF_MEMORY. Both have one allocator. */
RONDO_MUST_USE rondo_status rondo_weights_move(rondo_weights *to, rondo_weights *from);

/* What files call the types of values; and the type that is called so, false for another name. */
const char *rondo_safetensors_type_name(rondo_type type);
bool rondo_safetensors_find_type(const char *name, rondo_type *out_type);

#endif
