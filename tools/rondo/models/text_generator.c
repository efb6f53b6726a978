/* SPDX-License-Identifier: MIT
 * The programs of a writer, and the choice of the program that runs.
 */
#include "models/text_generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

/* Setup ----------------------------------------------------------------------------------------------------------- */

static rondo_status build_whole(const language_model *model, rondo_program *program) {
  rondo_value logits;
  TOOL_TRY(model_build(model, program, 1, &logits));
  return rondo_program_output(program, "logits", logits);
}

/* Builds the program for a prompt of `length` tokens or, if that is 0, for one more token. */
static rondo_status build(const language_model *model, rondo_program *program, size_t length) {
  if (!model->kind->build_prompt) return build_whole(model, program);
  return length > 0 ? model_build_prompt(model, program, length) : model_build_next(model, program);
}

static rondo_status compile(const language_model *model, rondo_device *device, size_t length,
                            const rondo_compile_options *options, rondo_compiled **out) {
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "generate"}, &program));
  rondo_status status = build(model, program, length);
  if (!status) status = rondo_compile(program, device, options, out);
  rondo_program_destroy(program);
  return status;
}

static void choose_lengths(writer *w) {
  const size_t context = w->model->sizes[MODEL_CONTEXT];
  for (size_t length = WRITER_SHORTEST; length < context; length *= 2) w->lengths[w->bucket_count++] = length;
  w->lengths[w->bucket_count++] = context;
}

/* Compiles the largest program first: the others share its arena. */
static rondo_status compile_all(writer *w, rondo_device *device, rondo_compiled *share) {
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .share = share};
  if (!w->model->kind->build_prompt) return compile(w->model, device, 0, &options, &w->whole);
  choose_lengths(w);
  for (size_t i = w->bucket_count; i-- > 0;) {
    TOOL_TRY(compile(w->model, device, w->lengths[i], &options, &w->prompts[i]));
    options.share = w->prompts[w->bucket_count - 1];
  }
  return compile(w->model, device, 0, &options, &w->next);
}

int writer_create(const language_model *model, const rondo_weights *weights, rondo_device *device, const char *path,
                  rondo_compiled *share, writer *out) {
  *out = (writer){.model = model};
  if (compile_all(out, device, share)) return tool_fail_status("the model could not be compiled");
  if (share) return TOOL_OK;
  rondo_compiled *any = out->whole ? out->whole : out->next;
  return rondo_weights_apply(weights, any, model_is_parameter, NULL) ? tool_fail_status("%s", path) : TOOL_OK;
}

int writer_destroy(writer *w) {
  int result = TOOL_OK;
  if (rondo_compiled_destroy(w->whole) || rondo_compiled_destroy(w->next)) result = tool_fail_status("the model");
  for (size_t i = 0; i < w->bucket_count; i++) {
    if (rondo_compiled_destroy(w->prompts[i])) result = tool_fail_status("the model");
  }
  *w = (writer){0};
  return result;
}

/* Windows and tokens ---------------------------------------------------------------------------------------------- */

size_t writer_open(const language_model *model, const char *prompt, int32_t *window) {
  const bool has_caches = model->kind->build_prompt != NULL;
  const size_t length = strlen(prompt), context = model->sizes[MODEL_CONTEXT];
  const size_t taken = length < context ? length : context;
  const size_t fill = !has_caches ? context - taken : taken == 0 ? (context + 1) / 2 : 0;
  const unsigned char *opening = model->opening + (has_caches ? 0 : taken);
  for (size_t i = 0; i < fill; i++) window[i] = model->vocabulary.token_of[opening[i]];
  for (size_t i = 0; i < taken; i++)
    window[fill + i] = model->vocabulary.token_of[(unsigned char)prompt[length - taken + i]];
  return fill + taken;
}

static uint32_t likeliest(const float *scores, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

uint32_t writer_draw(const float *scores, uint32_t count, double temperature, draw_source *source) {
  const uint32_t best = likeliest(scores, count);
  if (temperature == 0) return best;
  const double highest = (double)scores[best];
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += exp(((double)scores[i] - highest) / temperature);
  double left = draw_unit(source) * sum;
  for (uint32_t i = 0; i < count; i++) {
    left -= exp(((double)scores[i] - highest) / temperature);
    if (left < 0) return i;
  }
  return best; /* the two sums were rounded differently */
}

/* Running --------------------------------------------------------------------------------------------------------- */

void writer_begin(writer *w) { w->cached = w->prompt_runs = w->next_runs = 0; }

/* A full window without caches drops its first token. With caches it drops its first half, because each drop refills
 * the caches. */
void writer_push(writer *w, int32_t *window, size_t *count, int32_t token) {
  const size_t context = w->model->sizes[MODEL_CONTEXT];
  if (*count == context) {
    const size_t kept = w->whole ? context - 1 : context / 2;
    memmove(window, window + context - kept, kept * sizeof *window);
    *count = kept;
    w->cached = 0;
  }
  window[(*count)++] = token;
}

static rondo_status run_one(rondo_compiled *compiled, writer_way way, cost *times) {
  return run_timed(compiled, way == WRITER_EAGER ? rondo_compiled_run_eager : rondo_compiled_run, times);
}

static rondo_status read_scores(const writer *w, rondo_compiled *compiled, float *out) {
  return rondo_compiled_read(compiled, "logits", out, w->model->vocabulary.count * sizeof *out);
}

/* A program may be longer than the window: later tokens do not affect the result. */
static rondo_status run_prompt(writer *w, writer_way way, const int32_t *window, size_t count, cost *times,
                               float *out) {
  int32_t tokens[MODEL_MAX_CONTEXT] = {0};
  const int32_t last = (int32_t)count - 1;
  size_t bucket = 0;
  while (w->lengths[bucket] < count) bucket++;
  memcpy(tokens, window, count * sizeof *window);
  rondo_compiled *compiled = w->prompts[bucket];
  TOOL_TRY(rondo_compiled_write(compiled, "tokens", tokens, w->lengths[bucket] * sizeof *tokens));
  TOOL_TRY(rondo_compiled_write(compiled, "last", &last, sizeof last));
  TOOL_TRY(run_one(compiled, way, times));
  w->prompt_runs++;
  return read_scores(w, compiled, out);
}

static rondo_status run_next(writer *w, writer_way way, const int32_t *window, size_t count, cost *times, float *out) {
  const int32_t length = (int32_t)count - 1;
  TOOL_TRY(rondo_compiled_write(w->next, "tokens", &window[count - 1], sizeof *window));
  TOOL_TRY(rondo_compiled_write(w->next, "length", &length, sizeof length));
  TOOL_TRY(run_one(w->next, way, times));
  w->next_runs++;
  return read_scores(w, w->next, out);
}

rondo_status writer_run(writer *w, writer_way way, const int32_t *window, size_t count, cost *times,
                        float *out_scores) {
  if (w->whole) {
    TOOL_TRY(rondo_compiled_write(w->whole, "tokens", window, count * sizeof *window));
    TOOL_TRY(run_one(w->whole, way, times));
    return read_scores(w, w->whole, out_scores);
  }
  const bool goes_on = way != WRITER_RECOMPUTED && w->cached > 0 && w->cached + 1 == count;
  TOOL_TRY(goes_on ? run_next(w, way, window, count, times, out_scores)
                   : run_prompt(w, way, window, count, times, out_scores));
  w->cached = count;
  return RONDO_OK;
}

rondo_status writer_info(const writer *w, rondo_compiled_info *out_next, rondo_compiled_info *out_largest) {
  *out_next = *out_largest = (rondo_compiled_info){.struct_size = sizeof *out_next};
  TOOL_TRY(rondo_compiled_get_info(w->whole ? w->whole : w->next, out_next));
  return rondo_compiled_get_info(w->whole ? w->whole : w->prompts[w->bucket_count - 1], out_largest);
}
