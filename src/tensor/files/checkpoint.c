/* SPDX-License-Identifier: MIT
 * Checkpoints: sets of weights with a mark in their metadata, and with the data of a program besides its weights. The
 * file format is that of any set. A checkpoint without checksums is refused.
 */
#include <rondo/checkpoint.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tensor/files/checksum.h"
#include "tensor/files/shards.h"
#include "tensor/files/weights_program.h"
#include "tensor/run/named_values.h"

#define FORM_KEY "rondo.checkpoint"
#define FORM "1"
#define GENERATOR_KEY "rondo.generator."

/* Programs --------------------------------------------------------------------------------------------------------- */

static const rondo_kept_values all_kept = {.cells = true};

rondo_status rondo_checkpoint_gather(rondo_weights *checkpoint, rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_checkpoint_gather", "checkpoint", checkpoint));
  RONDO_TRY(rondo_require("rondo_checkpoint_gather", "compiled", compiled));
  return rondo_weights_gather_kept(checkpoint, compiled, &all_kept);
}

static rondo_status check_names(const rondo_weights *checkpoint, const rondo_compiled *compiled) {
  for (size_t i = 0; i < checkpoint->entries.count; i++) {
    const char *name = checkpoint->entries.items[i].name;
    if (rondo_values_look_up(compiled, name, "sc") != NULL || rondo_shards_have(compiled, name)) continue;
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                      "the checkpoint has '%s', which is no state or cell of %s: it is of another program", name,
                      compiled->label);
  }
  return RONDO_OK;
}

rondo_status rondo_checkpoint_apply(const rondo_weights *checkpoint, rondo_compiled *compiled) {
  RONDO_TRY(rondo_require("rondo_checkpoint_apply", "checkpoint", checkpoint));
  RONDO_TRY(rondo_require("rondo_checkpoint_apply", "compiled", compiled));
  RONDO_TRY(rondo_weights_check_kept(checkpoint, compiled, &all_kept));
  RONDO_TRY(check_names(checkpoint, compiled));
  return rondo_weights_apply_kept(checkpoint, compiled, &all_kept);
}

/* Generators ------------------------------------------------------------------------------------------------------- */

#define GENERATOR_TEXT 64

static void write_generator(char out[GENERATOR_TEXT], const rondo_generator_state *state) {
  (void)snprintf(out, GENERATOR_TEXT, "seed %" PRIu64 " offset %" PRIu64, state->seed, state->offset);
}

static rondo_status make_generator_key(const rondo_weights *checkpoint, const char *name, char **out) {
  rondo_text text;
  rondo_text_init(&text, &checkpoint->allocator);
  rondo_text_add(&text, "%s", GENERATOR_KEY);
  rondo_text_add_bytes(&text, name, strlen(name));
  const rondo_status status = rondo_text_take(&text, out);
  rondo_text_deinit(&text);
  return status;
}

rondo_status rondo_checkpoint_keep_generator(rondo_weights *checkpoint, const char *name,
                                             const rondo_generator *generator) {
  static const char call[] = "rondo_checkpoint_keep_generator";
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  char value[GENERATOR_TEXT];
  char *key = NULL;
  RONDO_TRY(rondo_require(call, "checkpoint", checkpoint));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(rondo_generator_get_state(generator, &state));
  RONDO_TRY(make_generator_key(checkpoint, name, &key));
  write_generator(value, &state);
  const rondo_status status = rondo_weights_set_metadata(checkpoint, key, value);
  rondo_release_text(&checkpoint->allocator, key);
  return status;
}

static rondo_status read_generator(const char *name, const char *value, rondo_generator_state *out) {
  char again[GENERATOR_TEXT];
  if (value == NULL)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME, "the checkpoint has no generator '%s'", name);
  const int found = sscanf(value, "seed %" SCNu64 " offset %" SCNu64, &out->seed, &out->offset);
  write_generator(again, out);
  if (found == 2 && strcmp(again, value) == 0 && out->offset % 4 == 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "the checkpoint has %s%s%s for the generator '%s', which is no seed and offset",
                    value[0] == '\0' ? "no text" : "'", value, value[0] == '\0' ? "" : "'", name);
}

rondo_status rondo_checkpoint_restore_generator(const rondo_weights *checkpoint, const char *name,
                                                rondo_generator *generator) {
  static const char call[] = "rondo_checkpoint_restore_generator";
  rondo_generator_state state = {RONDO_GENERATOR_STATE_INIT};
  char *key = NULL;
  RONDO_TRY(rondo_require(call, "checkpoint", checkpoint));
  RONDO_TRY(rondo_require(call, "name", name));
  RONDO_TRY(make_generator_key(checkpoint, name, &key));
  const rondo_status status = read_generator(name, rondo_weights_get_metadata(checkpoint, key), &state);
  rondo_release_text(&checkpoint->allocator, key);
  return status == RONDO_OK ? rondo_generator_set_state(generator, &state) : status;
}

/* Files ------------------------------------------------------------------------------------------------------------ */

/* The checksums, if there are any, were compared when the set was read. */
static rondo_status check_form(const rondo_weights *set) {
  const char *form = rondo_weights_get_metadata(set, FORM_KEY);
  if (form == NULL) {
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_UNKNOWN_NAME,
                      "it is no checkpoint: its metadata have no '" FORM_KEY "'");
  }
  if (strcmp(form, FORM) != 0) {
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "it is a checkpoint of version '%s'; this library reads version " FORM, form);
  }
  if (rondo_weights_get_metadata(set, RONDO_CHECKSUM_KEY) != NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                    "its metadata have no '" RONDO_CHECKSUM_KEY "', which checkpoints have");
}

rondo_status rondo_checkpoint_save(rondo_weights *checkpoint, const char *path) {
  RONDO_TRY(rondo_require("rondo_checkpoint_save", "checkpoint", checkpoint));
  RONDO_TRY(rondo_require("rondo_checkpoint_save", "path", path));
  RONDO_TRY(rondo_weights_set_metadata(checkpoint, FORM_KEY, FORM));
  return rondo_weights_save(checkpoint, path);
}

/* Destroys a set that is not a checkpoint. */
static rondo_status check_read(const char *what, rondo_weights **inout) {
  const rondo_status status = check_form(*inout);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_weights_destroy(*inout);
  *inout = NULL;
  return rondo_fail_context(status, "%s", what);
}

rondo_status rondo_checkpoint_load(const char *path, const rondo_allocator *allocator, rondo_weights **out_checkpoint) {
  RONDO_TRY(rondo_require("rondo_checkpoint_load", "out_checkpoint", out_checkpoint));
  RONDO_TRY(rondo_weights_load(path, &(rondo_weights_options){.allocator = allocator}, out_checkpoint));
  return check_read(path, out_checkpoint);
}

rondo_status rondo_checkpoint_parse(const void *bytes, size_t count, const rondo_allocator *allocator,
                                    rondo_weights **out_checkpoint) {
  RONDO_TRY(rondo_require("rondo_checkpoint_parse", "out_checkpoint", out_checkpoint));
  RONDO_TRY(rondo_weights_parse(bytes, count, &(rondo_weights_options){.allocator = allocator}, out_checkpoint));
  return check_read("checkpoint", out_checkpoint);
}
