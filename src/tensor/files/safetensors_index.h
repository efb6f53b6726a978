/* SPDX-License-Identifier: MIT
 * Weights that are divided between several safetensors files, with an index file as the transformers library writes it:
 * {"metadata": {"total_size": 123}, "weight_map": {"a tensor": "a file in the same folder", ..}}. An index does not
 * change after it is read, except for what its files are found to have.
 */
#ifndef RONDO_TENSOR_FILES_SAFETENSORS_INDEX_H
#define RONDO_TENSOR_FILES_SAFETENSORS_INDEX_H

#include "base/json_parse.h"
#include "tensor/files/weights_internal.h"

/* A tensor of the index; the document owns both names. */
typedef struct rondo_indexed_tensor {
  const char *name, *file;
  bool is_wanted, is_found;
} rondo_indexed_tensor;

typedef struct rondo_safetensors_index {
  rondo_json_document document;
  rondo_indexed_tensor *tensors; /* sorted by file, then by name */
  size_t count, capacity;
} rondo_safetensors_index;

/* Whether the bytes are those of an index, not of a safetensors file, which begins with a length. */
bool rondo_safetensors_is_index(const unsigned char *bytes, size_t count);

/* Loads the requested tensors from the files of an index into an empty set. The mapping is that of the index at `path`.
 * Errors: as rondo_weights_load. */
RONDO_MUST_USE rondo_status rondo_safetensors_load_index(const char *path, const rondo_file_mapping *mapping,
                                                         const rondo_weights_options *options, rondo_weights *weights);

/* The tensor in the index; NULL if it is not listed for this file. */
rondo_indexed_tensor *rondo_safetensors_find_indexed(const rondo_safetensors_index *index, const char *file,
                                                     const char *name);

#endif
