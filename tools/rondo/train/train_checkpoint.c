/* SPDX-License-Identifier: MIT
 * Checkpoints of a training: the library's checkpoints with metadata that identify the training ("train.steps" and so
 * on: everything that affects the numbers) and its progress. A checkpoint of a different training is rejected with a
 * message that names the difference. All of it is checked before anything is compiled, and the library checks the
 * states again when the step has been compiled. With validation, the parameters with the least loss are tensors too
 * ("best." and their names), unless they are those of the checkpoint's own step.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fingerprint.h"
#include "common/tool.h"
#include "train/train.h"

#define COMMAND "rondo train"
#define TRAIT_PREFIX "train."
#define BEST_PREFIX "best."

enum { MOST_KEY_BYTES = 64 };

/* Traits ---------------------------------------------------------------------------------------------------------- */

train_trait *train_traits_add(train_traits *all, const char *name) {
  assert(all->count < TRAIN_MOST_TRAITS);
  train_trait *added = &all->items[all->count++];
  added->name = name;
  return added;
}

void train_traits_add_number(train_traits *all, const char *name, uint64_t value) {
  snprintf(train_traits_add(all, name)->value, TRAIN_TRAIT_BYTES, "%" PRIu64, value);
}

train_traits train_traits_of(const training *t) {
  const train_settings *s = &t->settings;
  train_traits all = {0};
  snprintf(train_traits_add(&all, "model")->value, TRAIN_TRAIT_BYTES, "%s", t->model.kind->name);
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (t->model.kind->sizes[i] > 0) train_traits_add_number(&all, model_size_rows[i].name, t->model.sizes[i]);
  }
  train_traits_add_number(&all, "steps", s->steps);
  train_traits_add_number(&all, "batch", s->batch);
  train_traits_add_number(&all, "seed", s->seed);
  train_traits_add_number(&all, "validation", s->validation);
  train_traits_add_number(&all, "validate-every", s->validate_every);
  snprintf(train_traits_add(&all, "learning-rate")->value, TRAIN_TRAIT_BYTES, "%.17g", s->learning_rate);
  fingerprint_write(t->text_fingerprint, train_traits_add(&all, "text")->value);
  return all;
}

static const char *make_key(char out[MOST_KEY_BYTES], const char *name) {
  snprintf(out, MOST_KEY_BYTES, TRAIT_PREFIX "%s", name);
  return out;
}

static int fail_other_trait(const char *path, const train_trait *wanted, const char *found) {
  if (strcmp(wanted->name, "text") == 0) return tool_fail("%s: it is a checkpoint of training on another text", path);
  return tool_fail("%s: it is a checkpoint of training with --%s %s, not %s: use that value, or train without --resume",
                   path, wanted->name, found, wanted->value);
}

static int check_traits(const training *t) {
  const char *path = t->settings.resume;
  const train_traits all = train_traits_of(t);
  for (size_t i = 0; i < all.count; i++) {
    char key[MOST_KEY_BYTES];
    if (strcmp(all.items[i].name, "steps") == 0) continue; /* read_steps */
    const char *found = rondo_weights_get_metadata(t->resumed, make_key(key, all.items[i].name));
    if (!found && strncmp(all.items[i].name, "valid", 5) == 0) found = "0"; /* Rondo 0.1 wrote none */
    if (!found) return tool_fail("%s: its metadata has no '%s': use a checkpoint written by rondo train", path, key);
    if (strcmp(found, all.items[i].value) != 0) return fail_other_trait(path, &all.items[i], found);
  }
  return TOOL_OK;
}

/* Writing --------------------------------------------------------------------------------------------------------- */

static rondo_status set_number(rondo_weights *set, const char *key, uint64_t value) {
  char text[TRAIN_TRAIT_BYTES];
  snprintf(text, sizeof text, "%" PRIu64, value);
  return rondo_weights_set_metadata(set, key, text);
}

static rondo_status describe_best(const train_best *best, rondo_weights *set) {
  char loss[TRAIN_TRAIT_BYTES];
  snprintf(loss, sizeof loss, "%.9g", (double)best->loss);
  TOOL_TRY(set_number(set, "best_step", best->step));
  TOOL_TRY(set_number(set, "validations_since", best->since));
  return rondo_weights_set_metadata(set, "best_loss", loss);
}

/* Losses are text in the metadata: the bits of each, in hexadecimal. */
enum { LOSS_DIGITS = 8 };
static const char hex_digits[] = "0123456789abcdef";

size_t train_loss_text_bytes(uint64_t steps) {
  return (size_t)(steps < TRAIN_MOST_LOSSES ? steps : TRAIN_MOST_LOSSES) * LOSS_DIGITS + 1;
}

static void write_losses(const training *t) {
  const uint64_t end = t->progress.step, least = end > TRAIN_MOST_LOSSES ? end - TRAIN_MOST_LOSSES : 0;
  char *to = t->loss_text;
  for (uint64_t i = least > t->losses_from ? least : t->losses_from; i < end; i++) {
    uint32_t bits;
    memcpy(&bits, &t->losses[i], sizeof bits);
    for (int digit = LOSS_DIGITS - 1; digit >= 0; digit--) *to++ = hex_digits[bits >> (4 * digit) & 15];
  }
  *to = '\0';
}

static rondo_status describe(const training *t, rondo_weights *set) {
  const train_progress *progress = &t->progress;
  const train_traits all = train_traits_of(t);
  char key[MOST_KEY_BYTES], loss[TRAIN_TRAIT_BYTES];
  TOOL_TRY(rondo_weights_set_metadata(set, "command", COMMAND));
  for (size_t i = 0; i < all.count; i++) {
    TOOL_TRY(rondo_weights_set_metadata(set, make_key(key, all.items[i].name), all.items[i].value));
  }
  TOOL_TRY(set_number(set, "step", progress->step));
  TOOL_TRY(set_number(set, "batches", progress->batches.state));
  TOOL_TRY(set_number(set, "loss_history", progress->loss_history));
  snprintf(loss, sizeof loss, "%.9g", (double)progress->first_loss);
  TOOL_TRY(rondo_weights_set_metadata(set, "first_loss", loss));
  write_losses(t);
  TOOL_TRY(rondo_weights_set_metadata(set, "losses", t->loss_text));
  return t->settings.validation > 0 ? describe_best(&progress->best, set) : RONDO_OK;
}

/* The name of a tensor with NaN or infinite values; NULL if there is none. */
static const char *find_no_number(const rondo_weights *set) {
  rondo_weight weight;
  for (size_t i = 0; rondo_weights_at(set, i, &weight) == RONDO_OK; i++) {
    const float *values = weight.data;
    for (size_t k = 0; weight.type == RONDO_F32 && k < weight.bytes / sizeof *values; k++) {
      if (!isfinite(values[k])) return weight.name;
    }
  }
  return NULL;
}

/* Adds the parameters of one set to another, with other names. */
static rondo_status copy_parameters(const language_model *model, const rondo_weights *from, const char *from_prefix,
                                    rondo_weights *to, const char *to_prefix) {
  model_parameter p;
  for (size_t i = 0; model->kind->parameter(model, i, &p); i++) {
    char from_name[MOST_KEY_BYTES], to_name[MOST_KEY_BYTES];
    rondo_weight weight;
    snprintf(from_name, sizeof from_name, "%s%s", from_prefix, p.name);
    snprintf(to_name, sizeof to_name, "%s%s", to_prefix, p.name);
    TOOL_TRY(rondo_weights_find(from, from_name, &weight));
    weight.name = to_name;
    TOOL_TRY(rondo_weights_add(to, &weight));
  }
  return RONDO_OK;
}

static bool has_other_best(const train_progress *progress) {
  return progress->best.step > 0 && progress->best.step != progress->step;
}

static rondo_status write_set(training *t, rondo_weights *set, const char **out_bad) {
  TOOL_TRY(rondo_checkpoint_gather(set, t->compiled));
  *out_bad = find_no_number(set);
  if (*out_bad || t->ranks.started.rank > 0) return RONDO_OK;
  TOOL_TRY(describe(t, set));
  if (has_other_best(&t->progress)) TOOL_TRY(copy_parameters(&t->model, t->validation.best, "", set, BEST_PREFIX));
  return rondo_checkpoint_save(set, t->settings.checkpoint);
}

bool train_checkpoint_write(training *t, char problem[TRAIN_PROBLEM_BYTES]) {
  const char *bad = NULL;
  rondo_weights *set = NULL;
  rondo_status status = rondo_weights_create(NULL, &set);
  if (!status) status = write_set(t, set, &bad);
  const bool is_written = !status && !bad;
  if (status) {
    snprintf(problem, TRAIN_PROBLEM_BYTES, "the checkpoint could not be written: %s", rondo_last_error()->message);
  } else if (bad) {
    snprintf(problem, TRAIN_PROBLEM_BYTES, "no checkpoint is written, because '%s' contains NaN or infinite values",
             bad);
  }
  const bool is_ok = train_ranks_agree(t, is_written);
  if (is_written && !is_ok)
    snprintf(problem, TRAIN_PROBLEM_BYTES, "%s",
             t->ranks.is_lost ? rondo_last_error()->message : "another rank could not write the checkpoint");
  if (is_ok || (is_written && t->ranks.started.rank == 0)) t->kept_step = t->progress.step;
  rondo_weights_destroy(set);
  return is_ok;
}

/* Reading --------------------------------------------------------------------------------------------------------- */

/* Returns NULL after a message if there is none. */
static const char *metadata_of(const training *t, const char *key) {
  const char *text = rondo_weights_get_metadata(t->resumed, key);
  if (!text)
    tool_fail("%s: its metadata has no '%s': use a checkpoint written by rondo train", t->settings.resume, key);
  return text;
}

static int fail_no_number(const training *t, const char *key, const char *text) {
  return tool_fail("%s: the '%s' in its metadata is '%s', which is not a number", t->settings.resume, key, text);
}

/* Reads a number from metadata in the format of set_number. */
static int read_number(const training *t, const char *key, uint64_t *out) {
  const char *text = metadata_of(t, key);
  if (!text) return TOOL_FAILURE;
  errno = 0;
  *out = strtoull(text, NULL, 10);
  const bool is_number = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && errno == 0;
  return is_number ? TOOL_OK : fail_no_number(t, key, text);
}

static int read_loss(const training *t, const char *key, float *out) {
  const char *text = metadata_of(t, key);
  char *end = NULL;
  if (!text) return TOOL_FAILURE;
  *out = strtof(text, &end);
  return end != text && *end == '\0' && isfinite(*out) ? TOOL_OK : fail_no_number(t, key, text);
}

/* The number of steps may differ from that of the checkpoint. */
static int read_steps(training *t) {
  char key[MOST_KEY_BYTES];
  const int result = read_number(t, make_key(key, "steps"), &t->resumed_steps);
  if (result != TOOL_OK) return result;
  if (t->resumed_steps == 0 || t->resumed_steps > TRAIN_MOST_STEPS)
    return tool_fail("%s: the '%s' in its metadata is not from 1 to %d", t->settings.resume, key, TRAIN_MOST_STEPS);
  if (t->settings.steps == 0) t->settings.steps = t->resumed_steps;
  return TOOL_OK;
}

static int read_best(const training *t, train_best *out) {
  int result = read_number(t, "best_step", &out->step);
  if (result == TOOL_OK) result = read_number(t, "validations_since", &out->since);
  return result == TOOL_OK ? read_loss(t, "best_loss", &out->loss) : result;
}

static bool read_bits(const char *text, float *out) {
  uint32_t bits = 0;
  for (int i = 0; i < LOSS_DIGITS; i++) {
    const char *digit = strchr(hex_digits, text[i]);
    if (text[i] == '\0' || !digit) return false;
    bits = bits << 4 | (uint32_t)(digit - hex_digits);
  }
  memcpy(out, &bits, sizeof bits);
  return isfinite(*out);
}

/* Reads the losses of the last steps before `step`, and which of them is the first. out, by step: NULL to check only.
 * Checkpoints of Rondo 0.2 and before have none. */
static int read_losses(const training *t, uint64_t step, float *out, uint64_t *out_from) {
  const char *text = rondo_weights_get_metadata(t->resumed, "losses");
  const uint64_t length = text ? strlen(text) : 0, count = length / LOSS_DIGITS;
  bool is_right = length % LOSS_DIGITS == 0 && count <= step;
  *out_from = step - (is_right ? count : 0);
  for (uint64_t i = 0; i < count && is_right; i++) {
    float loss = 0;
    is_right = read_bits(text + i * LOSS_DIGITS, &loss);
    if (out) out[*out_from + i] = loss;
  }
  return is_right ? TOOL_OK
                  : tool_fail("%s: the 'losses' in its metadata are not those of %" PRIu64 " steps", t->settings.resume,
                              step);
}

static int read_progress(training *t, train_progress *out) {
  const char *path = t->settings.resume;
  const uint64_t steps = t->settings.steps, stop_after = t->settings.stop_after, patience = t->settings.patience;
  uint64_t from;
  int result = read_number(t, "step", &out->step);
  if (result == TOOL_OK) result = read_number(t, "batches", &out->batches.state);
  if (result == TOOL_OK) result = read_number(t, "loss_history", &out->loss_history);
  if (result == TOOL_OK) result = read_loss(t, "first_loss", &out->first_loss);
  if (result == TOOL_OK) result = read_losses(t, out->step, NULL, &from);
  if (result == TOOL_OK && t->settings.validation > 0) result = read_best(t, &out->best);
  if (result != TOOL_OK) return result;
  if (patience > 0 && out->best.since >= patience)
    return tool_fail("%s: its training stopped after %" PRIu64
                     " validations without a lower loss; raise or leave out --patience",
                     path, out->best.since);
  if (out->step >= steps)
    return tool_fail("%s: %" PRIu64 " steps of its training are done; --steps must be larger", path, out->step);
  if (stop_after == 0 || out->step < stop_after) return TOOL_OK;
  return tool_fail("%s: %" PRIu64 " steps of its training are done; --stop-after must be larger", path, out->step);
}

static bool is_no_best(const char *name, void *user) {
  (void)user;
  return strncmp(name, BEST_PREFIX, strlen(BEST_PREFIX)) != 0;
}

/* Moves the model with the least loss out of the checkpoint, which then has the states of the program alone. */
static rondo_status take_best(training *t) {
  const rondo_weights_options options = {RONDO_WEIGHTS_OPTIONS_INIT, .wanted = is_no_best};
  rondo_weights *states = NULL;
  TOOL_TRY(rondo_weights_create(NULL, &t->validation.best));
  TOOL_TRY(model_describe(&t->model, t->validation.best));
  TOOL_TRY(copy_parameters(&t->model, t->resumed, BEST_PREFIX, t->validation.best, ""));
  TOOL_TRY(rondo_weights_load(t->settings.resume, &options, &states));
  rondo_weights_destroy(t->resumed);
  t->resumed = states;
  return RONDO_OK;
}

int train_checkpoint_load(training *t) {
  const char *path = t->settings.resume;
  train_progress progress = {0};
  if (rondo_checkpoint_load(path, NULL, &t->resumed)) return tool_fail_status("--resume");
  if (train_checkpoint_check(t) != TOOL_OK || read_progress(t, &progress) != TOOL_OK) return TOOL_FAILURE;
  if (!has_other_best(&progress)) return TOOL_OK;
  if (take_best(t)) return tool_fail_status("%s: the model of step %" PRIu64, path, progress.best.step);
  return model_check(path, t->validation.best, &t->model);
}

int train_checkpoint_check(training *t) {
  const char *path = t->settings.resume;
  train_progress progress;
  const char *command = rondo_weights_get_metadata(t->resumed, "command");
  if (!command || strcmp(command, COMMAND) != 0) return tool_fail("%s: it is not a checkpoint of " COMMAND, path);
  if (check_traits(t) != TOOL_OK || read_steps(t) != TOOL_OK || read_progress(t, &progress) != TOOL_OK)
    return TOOL_FAILURE;
  if (t->settings.checkpoint && strcmp(t->settings.checkpoint, path) == 0) t->kept_step = progress.step;
  return TOOL_OK;
}

int train_checkpoint_apply(training *t) {
  const train_best *best = &t->progress.best;
  if (read_progress(t, &t->progress) != TOOL_OK) return TOOL_FAILURE;
  if (read_losses(t, t->progress.step, t->losses, &t->losses_from) != TOOL_OK) return TOOL_FAILURE;
  if (rondo_checkpoint_apply(t->resumed, t->compiled)) return tool_fail_status("%s", t->settings.resume);
  if (best->step == 0 || t->validation.best) return TOOL_OK;
  return model_gather(&t->model, t->compiled, &t->validation.best) ? tool_fail_status("the model to save") : TOOL_OK;
}
