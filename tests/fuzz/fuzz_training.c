/* SPDX-License-Identifier: MIT
 * Reading the metadata of a checkpoint in `rondo train --resume`: it either fails with a message that names the file,
 * or belongs to this training and has progress from which it can resume. The input: a byte that chooses between the
 * checkpoint's number of steps and 8, then lines of a key, "=" and a value.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"
#include "train/train.h"

/* Stands in for train_ranks.c, which would link MPI's and NCCL's start-up: trainings here have one rank. */
bool train_ranks_agree(training *t, bool is_ok) {
  REQUIRE(t->ranks.communicator == NULL);
  return is_ok;
}

static char *copy_text(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  REQUIRE(text != NULL);
  memcpy(text, data, size);
  text[size] = '\0';
  return text;
}

static void require_numbers(const rondo_weights *set) {
  const char *loss = rondo_weights_get_metadata(set, "first_loss");
  const char *batches = rondo_weights_get_metadata(set, "batches");
  char *end = NULL;
  REQUIRE(isfinite(strtof(loss, &end)) && end != loss && *end == '\0');
  errno = 0;
  (void)strtoull(batches, &end, 10);
  REQUIRE(errno == 0 && end != batches && *end == '\0');
}

/* A line without a key and a value is omitted. */
static void add_metadata(rondo_weights *set, char *text) {
  for (char *line = text, *next; line != NULL; line = next) {
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    char *value = strchr(line, '=');
    if (value == NULL) continue;
    *value++ = '\0';
    if (rondo_weights_set_metadata(set, line, value)) REQUIRE(rondo_last_error()->message[0] != '\0');
  }
}

static void require_progress(training *t) {
  const char *step = rondo_weights_get_metadata(t->resumed, "step");
  REQUIRE(t->resumed_steps >= 1 && t->resumed_steps <= TRAIN_MOST_STEPS);
  REQUIRE(train_checkpoint_apply(t) == TOOL_FAILURE); /* because there is nothing to apply it to */
  REQUIRE(t->progress.step < t->settings.steps && t->progress.step == strtoull(step, NULL, 10));
  require_numbers(t->resumed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  training t = {
      .settings = {.resume = "in", .batch = 4, .seed = 1, .learning_rate = 0.5},
      .text_fingerprint = 0x0123456789abcdef,
      .model = {.kind = &model_character, .sizes = {[MODEL_CONTEXT] = 1, [MODEL_EMBEDDING] = 2, [MODEL_HIDDEN] = 3}}};
  if (size == 0) return 0;
  t.settings.steps = data[0] == 'g' ? 8 : 0;
  REQUIRE(rondo_weights_create(NULL, &t.resumed) == RONDO_OK);
  char *text = copy_text(data + 1, size - 1);
  add_metadata(t.resumed, text);
  free(text);
  tool_message[0] = '\0';
  const int result = train_checkpoint_check(&t);
  REQUIRE((result == TOOL_OK) == (tool_message[0] == '\0'));
  REQUIRE(result == TOOL_OK || strncmp(tool_message, "in: ", 4) == 0);
  if (result == TOOL_OK) require_progress(&t);
  rondo_weights_destroy(t.resumed);
  return 0;
}
