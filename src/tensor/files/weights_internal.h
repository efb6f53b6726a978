/* SPDX-License-Identifier: MIT
 * A set of named tensors: entries sorted by name, metadata sorted by key. An entry owns its data, or points into one of
 * the set's file mappings or into memory of the caller. Its data are plain, or are made so when they are read
 * (tensor/files/weight_elements.h). `skipped` lists tensors of a file that Rondo cannot represent, with the reason.
 */
#ifndef RONDO_TENSOR_FILES_WEIGHTS_INTERNAL_H
#define RONDO_TENSOR_FILES_WEIGHTS_INTERNAL_H

#include <rondo/weights.h>

#include "base/array.h"
#include "base/component.h"
#include "base/error.h"
#include "base/files/file_mapping.h"
#include "tensor/program/shape.h"

#define RONDO_METADATA_KEY "__metadata__"

/* Entries, pairs and skipped tensors begin with the text that they are sorted by. */
typedef struct rondo_weights_entry {
  char *name;
  rondo_shape shape;
  void *data; /* NULL while a file is read: the caller did not request the tensor; and after it was moved */
  bool owns_data;
  bool is_repeated;   /* the data are one element, which all elements are equal to */
  bool is_transposed; /* the data have the last two dimensions in the other order */
} rondo_weights_entry;

typedef struct rondo_weights_pair {
  char *key, *value;
} rondo_weights_pair;

typedef struct rondo_weights_skipped {
  char *name;
  char *why; /* a sentence that begins with the name */
  rondo_reason reason;
} rondo_weights_skipped;

struct rondo_weights {
  rondo_allocator allocator;
  bool converts_floats;
  RONDO_ARRAY(rondo_file_mapping) mappings; /* of the files that the set was loaded from */
  RONDO_ARRAY(rondo_file_mapping) lent;     /* of files that the caller unmaps after the set is destroyed */
  RONDO_ARRAY(rondo_weights_entry) entries;
  RONDO_ARRAY(rondo_weights_pair) metadata;
  RONDO_ARRAY(rondo_weights_skipped) skipped;
};

/* Adds an entry at the end. The set must not have the name. The caller sorts the set after the last entry. `shape`
 * comes from rondo_shape_make. _append allocates zeroed data, which the caller fills; _append_view uses the caller's
 * pointer, which may be NULL and need not be aligned; _append_owned takes over data from the allocator of the set, also
 * if it fails; _append_repeated gets one element of the caller's, for a tensor all of whose elements are equal to it.
 * Errors: INVALID_ARGUMENT with MALFORMED (a name that cannot be written into a file), OUT_OF_MEMORY. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_append(rondo_weights *weights, const char *name,
                                                               const rondo_shape *shape, void **out_data);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_append_view(rondo_weights *weights, const char *name,
                                                                    const rondo_shape *shape, void *data);

RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_append_owned(rondo_weights *weights, const char *name,
                                                                     const rondo_shape *shape, void *data);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_append_repeated(rondo_weights *weights, const char *name,
                                                                        const rondo_shape *shape, void *element);

/* Makes the pages of a file of the caller's known, so that they are released after their tensors are read. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_weights_lend(rondo_weights *weights, const rondo_file_mapping *mapping);

/* Whether the data are those of a file that the caller has lent. */
bool rondo_weights_is_in_file(const rondo_weights *weights, const rondo_weights_entry *entry);

/* Frees the data of an entry, which nobody reads any more. */
void rondo_weights_free_data(const rondo_weights *weights, rondo_weights_entry *entry);

/* Sorts entries, metadata and skipped tensors. Call it after all are appended. */
RONDO_PRIVATE void rondo_weights_sort(rondo_weights *weights);

/* The same for metadata. The set must not have the key; key and value are UTF-8. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weights_append_metadata(rondo_weights *weights, const char *key, const char *value);

/* Removes the entries without data. */
void rondo_weights_remove_unwanted(rondo_weights *weights);

/* Removes the entries whose names the other set lacks, with their data. Both sets are sorted. */
RONDO_PRIVATE void rondo_weights_keep_common(rondo_weights *weights, const rondo_weights *other);

/* Replaces the name of an entry, which the set then owns. Errors: as append. */
RONDO_MUST_USE rondo_status rondo_weights_rename(rondo_weights *weights, rondo_weights_entry *entry, const char *name);

/* Releases the pages of a mapped file that hold these bytes. Does nothing for others. */
void rondo_weights_drop(const rondo_weights *weights, const void *at, size_t bytes);

/* Releases all pages of mapped files. The system maps neighbours of the pages that are read. */
RONDO_PRIVATE void rondo_weights_drop_all(const rondo_weights *weights);

/* Adds a skipped tensor. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weights_skip(rondo_weights *weights, const char *name, rondo_reason reason,
                                               const char *why);

/* The entry of this name in a sorted set, or NULL. */
RONDO_PRIVATE rondo_weights_entry *rondo_weights_look_up(const rondo_weights *weights, const char *name);

/* If the set skipped a tensor of this name, UNSUPPORTED with the reason; else RONDO_OK. */
RONDO_MUST_USE rondo_status rondo_weights_check_skipped(const rondo_weights *weights, const char *name);

/* Moves all entries, mappings and skipped tensors of `from` into `to`. On failure (DUPLICATE_NAME, OUT_OF_MEMORY) it
 * moves none. Both sets have the same allocator. */
RONDO_MUST_USE rondo_status rondo_weights_move(rondo_weights *to, rondo_weights *from);

/* The names of types in files, and the type of a name; false: it has none. */
const char *rondo_safetensors_type_name(rondo_type type);
bool rondo_safetensors_find_type(const char *name, rondo_type *out_type);

#endif
