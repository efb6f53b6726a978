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

/* How a tensor of a file is named and stored in the set (PR-10), so that a program can use weights of another library.
 * For each tensor the first rule applies whose `from` is its name; a tensor without a rule keeps its name. For example,
 * for the weights that the transformers library saves of GPT-2:
 *
 *   {.from = "transformer.h.*.attn.bias", .to = NULL},                                  // a mask, which is left out
 *   {.from = "transformer.h.*.mlp.c_fc.weight", .to = "block*.hidden", .transpose = true},
 *   {.from = "transformer.**", .to = "**"},                                             // all others, shortened
 *
 * "*" stands for one or more characters other than '.', once at most between two dots. "**", at the end of `from` only,
 * stands for the rest of the name, one or more characters. In `to`, they stand for the same texts, in the same order.
 */
typedef struct rondo_weight_rule {
  const char *from, *to; /* UTF-8; to: NULL leaves the tensor out */
  bool transpose;        /* exchange the last two dimensions; the tensor has two or more */
} rondo_weight_rule;

/* Chooses values by name: true takes the value. It is called during the call that it is passed to, with the `user` that
 * is passed with it, and must not call Rondo. */
typedef bool (*rondo_weight_filter)(const char *name, void *user);

typedef struct rondo_weights_options {
  uint32_t struct_size;
  uint32_t reserved;
  const rondo_allocator *allocator; /* copied; NULL = the C library's */
  /* Called once for each tensor of the file that a value can hold, or that an index lists. `name` is that in the set.
   * The set gets the tensors that it chooses. NULL = all. */
  rondo_weight_filter wanted;
  void *user;
  const rondo_weight_rule *rules; /* rule_count rules, read during the call */
  size_t rule_count;
  bool convert_floats; /* rondo_weights_apply converts between F32, F16, BF16 and 8-bit floats where the type of a state
                          is another, rounding to the nearest, ties to even; false: it returns TYPE */
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
 * A tensor that no value can hold (another type such as U16 or F64, more than RONDO_MAX_DIMENSIONS dimensions, one of
 * size 0) is skipped. Requesting it by name returns UNSUPPORTED with the reason.
 *
 * A transposed tensor is transposed while it is applied, in pieces. It is copied when rondo_weights_find, _at or _save
 * use it.
 *
 * load also reads the index of weights that are divided between several files, model.safetensors.index.json, as the
 * transformers library writes it. The files are in the folder of the index. Only those with requested tensors are
 * opened, and each of these must have the tensors that the index lists for it. The metadata are those of the index:
 * texts, and integers as text.
 *
 * Checksums are verified before the call returns: that of the header, and those of the requested tensors.
 *
 * Errors: NOT_FOUND; IO_ERROR with errno; INVALID_DATA with TRUNCATED or MALFORMED, saying what is wrong and where
 * (header length, JSON line, tensor, offsets that overlap, leave gaps or do not match shape and type; in an index, a
 * name of a file with a folder, a tensor that its file lacks), or CHECKSUM (damaged: the message names the tensor, or
 * the header's part); UNSUPPORTED for another version of the checksums; OUT_OF_MEMORY; INVALID_ARGUMENT with
 * BAD_OPTIONS (also a rule that is not as above), DUPLICATE_NAME (rules give two tensors one name), SHAPE (a rule
 * transposes a tensor of one dimension). */
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
 * back. Every state of the program must be in the set with the same shape, and with the same type if the options of
 * the set do not convert it; otherwise nothing is changed, and the call returns INVALID_DATA with SHAPE, TYPE or
 * UNKNOWN_NAME, or UNSUPPORTED as rondo_weights_find, naming the state, and tensors that no state takes. Tensors of the
 * set that the program does not have are no error. If `only` is not NULL, both handle only the states that it chooses;
 * it may be called several times for each. A program with an optimizer also has the states of this, which the weights
 * of a model lack: apply those to a program without an optimizer that shares the states (rondo_compile_options.share),
 * or use `only`. Other errors as rondo_compiled_read and rondo_compiled_write. */
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_gather(rondo_weights *weights, rondo_compiled *compiled,
                                                           rondo_weight_filter only, void *user);
RONDO_API RONDO_MUST_USE rondo_status rondo_weights_apply(const rondo_weights *weights, rondo_compiled *compiled,
                                                          rondo_weight_filter only, void *user);

RONDO_EXTERN_C_END

#endif
