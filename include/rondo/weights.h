/* SPDX-License-Identifier: MIT
 * Named tensors in files, in the safetensors format (huggingface/safetensors, README, "Format"): 8 bytes of header
 * length, a JSON header of names, types, shapes and offsets, then the bytes. Files are validated before they are used.
 *
 * Saved files have checksums in their metadata, which other readers of the format treat as text: one of the names,
 * types, shapes and metadata, and one of each tensor's bytes. They are verified when the file is read. Every change
 * within 8 aligned bytes of a tensor is detected, and any other change except with a probability of 2^-64. The
 * checksums do not protect against forgery. Files of other programs have no checksums, and are read without them. A
 * program that modifies a file must remove the keys "rondo.weights" and "rondo.checksum".
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_WEIGHTS_H
#define RONDO_WEIGHTS_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_weights rondo_weights;

typedef struct rondo_weight {
  const char *name; /* owned by the weights */
  rondo_type type;
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  const void *data; /* owned by the weights, aligned to the size of an element */
  size_t bytes;
} rondo_weight;

/* Creates an empty set. allocator is copied; NULL = the C library's. The caller destroys the set. A set is
 * thread-compatible. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_create(const rondo_allocator *allocator,
                                                           rondo_weights **out_weights);
/* Frees the set with its names and data. NULL is fine. */
RONDO_API void rondo_weights_destroy(rondo_weights *weights);

typedef struct rondo_weights_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
  /* Called during the call, once for each tensor of the file that a value can hold. The set gets the tensors for which
   * it returns true. NULL = all. It must not call Rondo. */
  bool (*wanted)(const char *name, void *user);
  void *user;
} rondo_weights_options;
#define RONDO_WEIGHTS_OPTIONS_INIT .struct_size = sizeof(rondo_weights_options)

/* Reads a set from a file, or from bytes in memory, which are copied. options may be NULL.
 *
 * A file is mapped, not copied: its tensors take memory only while they are used, and rondo_weights_apply frees the
 * memory of each tensor after it is written. The set keeps its data if the file is replaced (as rondo_weights_save
 * does) or deleted. The file must not be changed in place while the set exists: its tensors would change, and reading a
 * tensor of a truncated file raises SIGBUS. If that may happen, read the file into memory and use rondo_weights_parse.
 * A tensor is copied if its offset in the file is not a multiple of its element size; rondo_weights_save and the
 * safetensors library write no such files.
 *
 * A tensor that no value can hold (another type such as U8 or F64, more than RONDO_MAX_DIMENSIONS dimensions, one of
 * size 0) is skipped. Requesting it by name returns UNSUPPORTED with the reason.
 *
 * Checksums are verified before the call returns: that of the header, and those of the requested tensors.
 *
 * Errors: NOT_FOUND; IO_ERROR with errno; INVALID_DATA with TRUNCATED or MALFORMED, saying what is wrong and where
 * (header length, JSON line, tensor, offsets that overlap, leave gaps or do not match shape and type), or CHECKSUM
 * (damaged: the message names the tensor, or the header's part); UNSUPPORTED for another version of the checksums;
 * OUT_OF_MEMORY; INVALID_ARGUMENT with BAD_OPTIONS. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_load(const char *path, const rondo_weights_options *options,
                                                         rondo_weights **out_weights);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_parse(const void *bytes, size_t count,
                                                          const rondo_weights_options *options,
                                                          rondo_weights **out_weights);

/* Writes the set to `path` like rondo_file_write (<rondo/files.h>): `path` is always either the old file or the new
 * file, complete. Errors: IO_ERROR with errno; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_save(const rondo_weights *weights, const char *path);

/* Adds a tensor; name and data are copied. Errors: INVALID_ARGUMENT with DUPLICATE_NAME, SHAPE (also if `bytes` does
 * not match the shape), TYPE, MALFORMED (a name that is not UTF-8, or "__metadata__"); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_add(rondo_weights *weights, const rondo_weight *weight);

/* Return a tensor by index (sorted by name) or by name. Errors: NOT_FOUND; UNSUPPORTED with TYPE or SHAPE for a tensor
 * of the file that was skipped. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_at(const rondo_weights *weights, size_t index,
                                                       rondo_weight *out_weight);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_find(const rondo_weights *weights, const char *name,
                                                         rondo_weight *out_weight);

/* The file's "__metadata__": strings by key, in UTF-8 (otherwise INVALID_ARGUMENT/MALFORMED). Setting a key again
 * replaces its value. get returns NULL for an unknown key; the string belongs to the weights and is valid until the key
 * is set again. Keys that begin with "rondo." are reserved for the library; saving writes "rondo.weights" and
 * "rondo.checksum" to the file only. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_set_metadata(rondo_weights *weights, const char *key,
                                                                 const char *value);
RONDO_API const char *rondo_weights_get_metadata(const rondo_weights *weights, const char *key);

/* gather copies all states of a compiled program to the set, after waiting for its runs: all or none (DUPLICATE_NAME if
 * one is already there). Of a data-parallel program, all ranks call it (<rondo/data_parallel.h>). apply copies them
 * back. Every state of the program must be in the set with the same type and shape; otherwise nothing is changed, and
 * the call returns INVALID_DATA with SHAPE, TYPE or UNKNOWN_NAME, or UNSUPPORTED as rondo_weights_find, naming the
 * state. If `only` is not NULL, both handle only the states whose names it accepts. Other errors as rondo_compiled_read
 * and rondo_compiled_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_gather(rondo_weights *weights, rondo_compiled *compiled,
                                                           bool (*only)(const char *name));
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_apply(const rondo_weights *weights, rondo_compiled *compiled,
                                                          bool (*only)(const char *name));

RONDO_EXTERN_C_END

#endif
