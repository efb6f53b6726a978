/* SPDX-License-Identifier: MIT
 * Named tensors in files, in the safetensors format (huggingface/safetensors, README, "Format"): 8 bytes of header
 * length, a JSON header of names, types, shapes and offsets, then the bytes. Reading trusts nothing.
 *
 * A file that is saved has checksums in its metadata, which other readers of the format take as any text: one of names,
 * types, shapes and metadata, and one of each tensor's bytes. They are compared when it is read. No change of up to 8
 * aligned bytes of a tensor goes unseen, and any other with a probability of 2^-64; they are no protection against
 * forgery. Files of other programs have none and are read without; one that changes a file must leave out the keys
 * "rondo.weights" and "rondo.checksum".
 */
#ifndef RONDO_WEIGHTS_H
#define RONDO_WEIGHTS_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_weights rondo_weights;

typedef struct rondo_weight {
  const char *name; /* the weights' own */
  rondo_type type;
  size_t rank, shape[RONDO_MAX_DIMENSIONS];
  const void *data; /* the weights' own, aligned to the size of an element */
  size_t bytes;
} rondo_weight;

/* An empty set. allocator is copied; NULL = the C library's. The caller destroys it. A set is thread-compatible.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_create(const rondo_allocator *allocator,
                                                           rondo_weights **out_weights);
/* Frees the set with its names and data. NULL is fine. */
RONDO_API void rondo_weights_destroy(rondo_weights *weights);

typedef struct rondo_weights_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
  /* Called once for each tensor of the file that a value can hold, during the call; the set gets those for which it
   * returns true. NULL = all. It must not call into the library. */
  bool (*wanted)(const char *name, void *user);
  void *user;
} rondo_weights_options;
#define RONDO_WEIGHTS_OPTIONS_INIT .struct_size = sizeof(rondo_weights_options)

/* Reads a set from a file, or from bytes in memory, which are copied. options may be NULL.
 *
 * A file is mapped, not copied: its tensors take memory only while they are used, and rondo_weights_apply gives the
 * memory of each tensor back once it is written. The set keeps its data when the file is replaced (as
 * rondo_weights_save does) or deleted. The file must not be changed in place while the set lives: its tensors would
 * change, and a process that reads one whose file was cut shorter gets SIGBUS. Where that may happen, read the file
 * into memory and use rondo_weights_parse. A tensor whose offset in the file is no multiple of its element's size is
 * copied; files of rondo_weights_save and of the safetensors library have none.
 *
 * A tensor that no value can hold (another type such as U8 or F64, more than RONDO_MAX_DIMENSIONS dimensions, one of
 * size 0) is passed over. Asking for it by name is UNSUPPORTED and gives the reason.
 *
 * Checksums are compared before the call returns: that of the header, and those of the tensors that are wanted.
 *
 * Errors: NOT_FOUND; IO_ERROR with errno; INVALID_DATA with TRUNCATED or MALFORMED saying what is wrong where (header
 * length, JSON line, tensor, offsets that overlap, leave gaps or do not fit shape and type), or CHECKSUM (damaged: the
 * message names the tensor, or says that it is the names, shapes or metadata); UNSUPPORTED for another version of the
 * checksums; OUT_OF_MEMORY; INVALID_ARGUMENT with BAD_OPTIONS. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_load(const char *path, const rondo_weights_options *options,
                                                         rondo_weights **out_weights);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_parse(const void *bytes, size_t count,
                                                          const rondo_weights_options *options,
                                                          rondo_weights **out_weights);

/* Writes the set to `path` as rondo_file_write (<rondo/files.h>) writes a file: `path` is the old file or the new one,
 * whole, at any time. Errors: IO_ERROR with errno; OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_save(const rondo_weights *weights, const char *path);

/* Adds a tensor; name and data are copied. Errors: INVALID_ARGUMENT with DUPLICATE_NAME, SHAPE (also when `bytes` is
 * not the shape's), TYPE, MALFORMED (a name that is not UTF-8, or "__metadata__"); OUT_OF_MEMORY. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_add(rondo_weights *weights, const rondo_weight *weight);

/* By index (sorted by name) or by name. Errors: NOT_FOUND; UNSUPPORTED with TYPE or SHAPE for a tensor of the file that
 * was passed over. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_at(const rondo_weights *weights, size_t index,
                                                       rondo_weight *out_weight);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_find(const rondo_weights *weights, const char *name,
                                                         rondo_weight *out_weight);

/* The file's "__metadata__": text by key, UTF-8 (else INVALID_ARGUMENT/MALFORMED). Setting a key again replaces its
 * value. get gives NULL when there is none; the text is the weights' own, until the key is set again. Keys that begin
 * with "rondo." are the library's; saving makes "rondo.weights" and "rondo.checksum" anew in the file alone. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_set_metadata(rondo_weights *weights, const char *key,
                                                                 const char *value);
RONDO_API const char *rondo_weights_get_metadata(const rondo_weights *weights, const char *key);

/* All states of a compiled program into the set (waits for its runs; all or none: DUPLICATE_NAME when one is there
 * already), and back: every state of the program must be in the set with the same type and shape (INVALID_DATA with
 * SHAPE, TYPE or UNKNOWN_NAME, or UNSUPPORTED as rondo_weights_find, naming it; nothing is changed then), unless `only`
 * is given: then the states whose name it accepts. Other errors as rondo_compiled_read and rondo_compiled_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_gather(rondo_weights *weights, rondo_compiled *compiled,
                                                           bool (*only)(const char *name));
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_apply(const rondo_weights *weights, rondo_compiled *compiled,
                                                          bool (*only)(const char *name));

RONDO_EXTERN_C_END

#endif
