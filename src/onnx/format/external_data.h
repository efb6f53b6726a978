/* SPDX-License-Identifier: MIT
 * The files beside a model that hold elements of its tensors (ONNX, "External Data"). Each is mapped once, when the
 * first of its tensors is read, and stays mapped.
 *
 * A location is a path below the model's folder, without "..". Symbolic links are followed, because caches of
 * downloaded models consist of them. Threads: one at a time.
 */
#ifndef RONDO_ONNX_FORMAT_EXTERNAL_DATA_H
#define RONDO_ONNX_FORMAT_EXTERNAL_DATA_H

#include "base/allocation.h"
#include "base/array.h"
#include "base/files/file_mapping.h"
#include "onnx/format/wire_reader.h"

typedef struct rondo_onnx_external_file {
  const char *location; /* of the message */
  rondo_file_mapping mapping;
} rondo_onnx_external_file;

typedef struct rondo_onnx_external_files {
  rondo_allocator allocator;
  const char *folder; /* "" is the current one; NULL: the model has no folder */
  RONDO_ARRAY(rondo_onnx_external_file) files;
} rondo_onnx_external_files;

void rondo_onnx_external_files_free(rondo_onnx_external_files *files);

/* The elements that a tensor's entries name: `pairs` of "location", "offset" and "length". Errors: INVALID_DATA with
 * MALFORMED (no location, one that leaves the folder, an offset or length that is not a number), TRUNCATED (the file is
 * shorter); UNSUPPORTED (the model has no folder); those of rondo_file_map, naming the file; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_find_external(rondo_onnx_external_files *files, RondoOnnx__Pair *const *pairs,
                                                     size_t count, const void **out_elements, size_t *out_bytes);

#endif
