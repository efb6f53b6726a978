/* SPDX-License-Identifier: MIT
 * Checkpoints: the complete state of a compiled program in one file. A run that was interrupted continues from it as if
 * it had never stopped, with the same bits on the same device.
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
 * A checkpoint is a set of weights (<rondo/weights.h>). It holds the states and cells of a compiled program under their
 * names: its weights, an optimizer's moments and step count, accumulated gradients, the loss scale, and the counters
 * that dropout draws random numbers from. Its metadata holds what the host needs to continue: the step number, seeds,
 * the position in the data. Inputs are not part of it, because they are written before each run. Outputs that are not
 * states are not part of it either. Metadata keys that begin with "rondo." are reserved for the library.
 *
 * The file is a safetensors file with checksums, like that of any other set; rondo_weights_load reads it too. A
 * checkpoint without checksums is refused.
 *
 * Component: rondo-tensor.
 */
#ifndef RONDO_CHECKPOINT_H
#define RONDO_CHECKPOINT_H

#include <rondo/random.h>
#include <rondo/weights.h>

RONDO_EXTERN_C_BEGIN

/* Adds all states and cells of a compiled program to the set, or none. Waits for the program's runs. Of a data-parallel
 * program, all ranks call it (<rondo/data_parallel.h>). Errors: as rondo_weights_gather. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_gather(rondo_weights *checkpoint, rondo_compiled *compiled);

/* Sets the states and cells of a compiled program to those of the checkpoint, after all runs enqueued so far. Program
 * and checkpoint must have the same states and cells by name, type and shape. Otherwise nothing is changed, and the
 * call returns INVALID_DATA with SHAPE, TYPE or UNKNOWN_NAME (one that the program or the checkpoint lacks), or
 * UNSUPPORTED as rondo_weights_find, naming it. The operators of the program are not compared. The checkpoint may come
 * from another device. Other errors as rondo_compiled_write. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_apply(const rondo_weights *checkpoint, rondo_compiled *compiled);

/* Saves the state of a generator as metadata under `name`, and restores it. This is for generators that are used in
 * addition to a compiled program. Errors: those of rondo_generator_get_state, rondo_generator_set_state and
 * rondo_weights_set_metadata; restore also returns INVALID_DATA with UNKNOWN_NAME (no generator has this name) or
 * MALFORMED. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_keep_generator(rondo_weights *checkpoint, const char *name,
                                                                      const rondo_generator *generator);
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_restore_generator(const rondo_weights *checkpoint,
                                                                         const char *name, rondo_generator *generator);

/* Sets the metadata "rondo.checkpoint" to the version of the format ("1"), and writes the file like rondo_weights_save:
 * `path` is always either the old file or the new file, complete. Does not need the program: another thread may save a
 * gathered set while training continues. Errors: as rondo_weights_save. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_save(rondo_weights *checkpoint, const char *path);

/* Reads a file that rondo_checkpoint_save wrote, or its bytes in memory. The caller destroys the set with
 * rondo_weights_destroy. Errors: as rondo_weights_load; INVALID_DATA with UNKNOWN_NAME (not a checkpoint) or MALFORMED
 * (it has no checksum); UNSUPPORTED for another version of the format. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_load(const char *path, const rondo_allocator *allocator,
                                                            rondo_weights **out_checkpoint);
RONDO_API RONDO_MUST_USE rondo_status rondo_checkpoint_parse(const void *bytes, size_t count,
                                                             const rondo_allocator *allocator,
                                                             rondo_weights **out_checkpoint);

RONDO_EXTERN_C_END

#endif
