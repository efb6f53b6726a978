/* SPDX-License-Identifier: MIT
 * language_model.so: the models of `rondo train --save`, for the backend of Triton Inference Server (<rondo/triton.h>),
 * which loads it for a version's folder with a model.safetensors. A token is the index of a byte in the vocabulary of
 * the file's metadata.
 *
 * A model of the kind gpt has sequences: the inputs "tokens" [1, length], "seed" [1] and "temperature" [1] give the
 * output "token" [1], which follows them. The parameter `slots` says how many sequences there are at once (8). With 0,
 * and for the kind character, "tokens" [rows, context] gives "logits", the scores of all tokens after each position, or
 * after the last one.
 */
#include <rondo/triton.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tool.h"
#include "models/model.h"

enum { DEFAULT_SLOTS = 8, MOST_SLOTS = 4096, LENGTHS = 8 };

typedef struct saved_model {
  language_model model; /* the first member: build_steps gets it */
  rondo_weights *weights;
  size_t slots;
  size_t lengths[LENGTHS], length_count;
} saved_model;

static rondo_status build_scores(void *user, size_t rows, rondo_program *program) {
  const saved_model *saved = user;
  rondo_value logits;
  TOOL_TRY(model_build(&saved->model, program, rows, &logits));
  return rondo_program_output(program, "logits", logits);
}

static void destroy(saved_model *saved) {
  rondo_weights_destroy(saved->weights);
  free(saved);
}

static void release(rondo_triton_description *description) { destroy(description->user); }

static int load(const char *folder, saved_model *out) {
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s/model.safetensors", folder);
  if (length < 0 || (size_t)length >= sizeof path) return tool_fail("the path of the folder is too long");
  return model_load(path, &out->model, &out->weights);
}

/* Prompts of any length run with the next longer one: 1, 8, 32, ... and the whole context. */
static void choose_lengths(saved_model *saved) {
  const size_t context = saved->model.sizes[MODEL_CONTEXT];
  saved->lengths[saved->length_count++] = 1;
  for (size_t length = 8; length < context && saved->length_count + 1 < LENGTHS; length *= 4)
    saved->lengths[saved->length_count++] = length;
  if (context > 1) saved->lengths[saved->length_count++] = context;
}

static void describe_sequences(saved_model *saved, rondo_triton_description *out) {
  choose_lengths(saved);
  out->model.build_sized = model_build_steps;
  out->model.row_inputs = model_row_inputs;
  out->model.slots = saved->slots;
  out->model.slot_positions = saved->model.sizes[MODEL_CONTEXT];
  out->model.evict_idle = true;
  out->model.lengths = saved->lengths;
  out->model.length_count = saved->length_count;
  out->next_output = "token";
  out->next_input = "tokens";
}

static int read_slots(const rondo_triton_description *description, saved_model *out) {
  const char *text = description->parameter(description->configuration, "slots");
  char *end;
  out->slots = out->model.kind->build_steps == NULL ? 0 : DEFAULT_SLOTS;
  if (text == NULL) return TOOL_OK;
  const unsigned long slots = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || slots > MOST_SLOTS)
    return tool_fail("parameter 'slots' of the configuration is '%s': give a number from 0 to %d", text, MOST_SLOTS);
  if (slots > 0 && out->model.kind->build_steps == NULL)
    return tool_fail(
        "parameter 'slots' of the configuration is '%s', but a model of the kind %s has no caches: leave it "
        "out",
        text, out->model.kind->name);
  out->slots = slots;
  return TOOL_OK;
}

rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
  saved_model *saved = calloc(1, sizeof *saved);
  if (saved == NULL) {
    tool_fail_memory("the model");
    return rondo_last_error()->status;
  }
  if (load(folder, saved) != TOOL_OK || read_slots(out, saved) != TOOL_OK) {
    destroy(saved);
    return rondo_last_error()->status;
  }
  if (saved->slots > 0)
    describe_sequences(saved, out);
  else
    out->model.build = build_scores;
  out->model.weights = saved->weights;
  out->model.user = saved;
  out->release = release;
  out->user = saved;
  return RONDO_OK;
}
