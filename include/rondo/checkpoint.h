/* SPDX-License-Identifier: MIT
 * Checkpoints: all that a compiled program carries from run to run, in one file, so that work that was stopped goes on
 * as if it had not been, bit for bit on the same device.
 *
 *   RONDO_TRY(rondo_weights_create(NULL, &checkpoint));
 *   RONDO_TRY(rondo_checkpoint_gather(checkpoint, compiled));
 *   RONDO_TRY(rondo_weights_set_metadata(checkpoint, "step", "2000"));
 *   RONDO_TRY(rondo_checkpoint_save(checkpoint, path));
 *   ...
 *   RONDO_TRY(rondo_checkpoint_load(path, NULL, &checkpoint));
 *   step = rondo_weights_get_metadata(checkpoint, "step");
 *   RONDO_TRY(rondo_checkpoint_apply(checkpoint, compiled));
 *
 * A checkpoint is a set of weights (<rondo/weights.h>): the states and cells of a compiled program under their names,
 * which are its weights, an optimizer's moments and step, sums of gradients, the scale of losses and the numbers that
 * dropouts draw from; and, as metadata, what the host goes on from: the number of the step, seeds, its place in the
 * data. Inputs are not part of it, for they are written before a run, nor are outputs that are no states. Keys of
 * metadata that begin with "rondo." are the library's.
 *
 * Its file is that of any set, a safetensors file with checksums, which rondo_weights_load reads too; a checkpoint
 * without checksums is refused.
 */
#ifndef RONDO_CHECKPOINT_H
#define RONDO_CHECKPOINT_H

#include <rondo/random.h>
#include <rondo/weights.h>

RONDO_EXTERN_C_BEGIN

/* Adds all states and cells of a compiled program to the set (waits for its runs; all or none). Errors: as
 * rondo_weights_gather. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_gather(rondo_weights *checkpoint, rondo_compiled *compiled);

/* Sets a compiled program's states and cells to those of the checkpoint, ordered behind its runs so far. They must be
 * the same by name, type and shape: INVALID_DATA with SHAPE, TYPE or UNKNOWN_NAME (one that the program or the
 * checkpoint lacks), or UNSUPPORTED as rondo_weights_find, naming it; nothing is changed then. What the program
 * computes with them is not compared. The device may be another one than the checkpoint's. Other errors as
 * rondo_compiled_write. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_apply(const rondo_weights *checkpoint, rondo_compiled *compiled);

/* Keeps where a generator is as metadata under `name`, for generators that are used beside a compiled program; and sets
 * a generator to it. Errors: those of rondo_generator_get_state, rondo_generator_set_state and
 * rondo_weights_set_metadata; for restore INVALID_DATA with UNKNOWN_NAME (there is none of this name) or MALFORMED.
 * Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_keep_generator(rondo_weights *checkpoint, const char *name,
                                                                      const rondo_generator *generator);
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_restore_generator(const rondo_weights *checkpoint,
                                                                         const char *name, rondo_generator *generator);

/* Sets the metadata "rondo.checkpoint" (the version of the form, "1") and writes the file as rondo_weights_save does:
 * whatever happens meanwhile, `path` is the old file or the new one, whole. Needs no program: a set that was gathered
 * may be saved by another thread while training goes on. Errors: as rondo_weights_save. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_save(rondo_weights *checkpoint, const char *path);

/* Reads a file that rondo_checkpoint_save wrote, or its bytes in memory. The caller destroys the set with
 * rondo_weights_destroy. Errors: as rondo_weights_load; INVALID_DATA with UNKNOWN_NAME (it is no checkpoint) or
 * MALFORMED (it has no checksum); UNSUPPORTED for another version of the form. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_load(const char *path, const rondo_allocator *allocator,
                                                            rondo_weights **out_checkpoint);
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_parse(const void *bytes, size_t count,
                                                             const rondo_allocator *allocator,
                                                             rondo_weights **out_checkpoint);

RONDO_EXTERN_C_END

#endif
