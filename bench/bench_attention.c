/* SPDX-License-Identifier: MIT
 * rondo_bench attention (PR-4): attention of separate q, k and v as a recorded program: evaluation, or with the
 * gradients of the sum of its results, with a mask or a window. --own measures Rondo's kernels where a library would
 * compute it.
 */
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "common/random_numbers.h"
#include "rondo_bench.h"

enum { MOST_ROUNDS = 20000, FEWEST_ROUNDS = 5, WARM_UPS = 3 };

typedef struct attention_bench {
  bench_base base;
  const char *type_name, *mask;
  uint64_t batch, heads, groups, context, size, window;
  bool causal, training, own;
  rondo_type type;
  samples samples;
  summary us;
} attention_bench;

/* A state, because inputs cannot have every type. */
static rondo_value add_input(const attention_bench *b, rondo_program *program, const char *name, size_t heads) {
  const size_t shape[] = {b->batch, heads, b->context, b->size};
  rondo_value x;
  check(rondo_program_state(program, name, b->type, shape, 4, &x));
  return x;
}

static rondo_value add_mask(const attention_bench *b, rondo_program *program) {
  const size_t plane[] = {b->context, b->context}, padding[] = {b->batch, 1, 1, b->context};
  const bool is_padding = strcmp(b->mask, "padding") == 0;
  rondo_value mask = {0};
  if (strcmp(b->mask, "none") == 0) return mask;
  check(rondo_program_state(program, "mask", strcmp(b->mask, "float") == 0 ? b->type : RONDO_BOOL,
                            is_padding ? padding : plane, is_padding ? 4 : 2, &mask));
  return mask;
}

static void build(const attention_bench *b, rondo_program *program) {
  static const char *const names[] = {"dq", "dk", "dv"};
  const rondo_attention_options options = {RONDO_ATTENTION_OPTIONS_INIT, .causal = b->causal, .window = b->window,
                                           .mask = add_mask(b, program)};
  const rondo_value of[] = {add_input(b, program, "q", b->heads), add_input(b, program, "k", b->groups),
                            add_input(b, program, "v", b->groups)};
  rondo_value y, sum, gradients[3];
  check(rondo_op_attention(program, of[0], of[1], of[2], &options, &y));
  check(rondo_program_output(program, "y", y));
  if (!b->training) return;
  check(rondo_op_sum(program, y, NULL, 0, false, &sum));
  check(rondo_op_cast(program, sum, RONDO_F32, &sum));
  check(rondo_program_gradients(program, sum, of, 3, gradients));
  for (size_t i = 0; i < 3; i++) check(rondo_program_output(program, names[i], gradients[i]));
}

/* Numbers between 0.25 and 0.5 and their negatives, of any float type: their sign and mantissa are random. */
static void fill_state(rondo_compiled *compiled, const rondo_compiled_value *value, draw_source *source) {
  const uint32_t random = value->type == RONDO_F32    ? 0x807fffffu
                          : value->type == RONDO_BF16 ? 0x807f807fu
                                                      : 0x83ff83ffu;
  const uint32_t fixed = value->type == RONDO_F32 ? 0x3e800000u : value->type == RONDO_BF16 ? 0x3e803e80u : 0x34003400u;
  const size_t words = value->bytes / sizeof(uint32_t);
  uint32_t *data = bench_allocate(words + 1, sizeof *data);
  for (size_t i = 0; i <= words; i++) data[i] = ((uint32_t)(draw_next(&source->state) >> 32) & random) | fixed;
  check(rondo_compiled_write(compiled, value->name, data, value->bytes));
  free(data);
}

/* The last eighth of the columns is hidden. */
static void fill_mask(const attention_bench *b, rondo_compiled *compiled, const rondo_compiled_value *value) {
  uint8_t *data = bench_allocate(value->bytes, sizeof *data);
  for (size_t i = 0; i < value->bytes; i++) data[i] = i % b->context <= b->context * 7 / 8;
  check(rondo_compiled_write(compiled, value->name, data, value->bytes));
  free(data);
}

static void fill(const attention_bench *b, rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  draw_source source = draw_create(1, DRAW_BATCHES);
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++)
    if (value.kind == 's' && value.type == RONDO_BOOL)
      fill_mask(b, compiled, &value);
    else if (value.kind == 's')
      fill_state(compiled, &value, &source);
}

static int measure(void *bench) {
  attention_bench *b = bench;
  rondo_program *program = bench_program("attention");
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                         .own_kernels = b->own};
  build(b, program);
  rondo_compiled *compiled = bench_compile(program, b->base.device, &options);
  fill(b, compiled);
  bench_samples_create(&b->samples, MOST_ROUNDS);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS + WARM_UPS, MOST_ROUNDS); rounds_next(&r);) {
    const uint64_t begin = clock_ns();
    check(rondo_compiled_run(compiled));
    check(rondo_compiled_synchronize(compiled));
    if (r.done > WARM_UPS) samples_add(&b->samples, (double)(clock_ns() - begin) / 1e3);
  }
  b->us = samples_summarize(&b->samples);
  check(rondo_compiled_destroy(compiled));
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  const attention_bench *b = bench;
  json_text(out, "type", b->type_name);
  json_integer(out, "batch", b->batch);
  json_integer(out, "heads", b->heads);
  json_integer(out, "groups", b->groups);
  json_integer(out, "context", b->context);
  json_integer(out, "size", b->size);
  json_boolean(out, "causal", b->causal);
  json_text(out, "mask", b->mask);
  json_integer(out, "window", b->window);
  json_boolean(out, "training", b->training);
  json_boolean(out, "own", b->own);
  json_summary(out, "total_us", b->us);
}

static int check_settings(void *bench) {
  attention_bench *b = bench;
  static const char *const masks[] = {"none", "bool", "padding", "float"};
  bool is_known = false;
  if (b->groups == 0) b->groups = b->heads;
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) is_known = is_known || strcmp(b->mask, masks[i]) == 0;
  if (!is_known) return tool_fail_usage("--mask is %s: use none, bool, padding or float", b->mask);
  return bench_find_type(b->type_name, &b->type);
}

static const attention_bench defaults = {.base = {.device_name = "cpu", .seconds = 2},
                                         .type_name = "f32",
                                         .mask = "none",
                                         .batch = 1,
                                         .heads = 8,
                                         .context = 1024,
                                         .size = 64};

#define OFFSET(member) offsetof(attention_bench, member)

static const option_row rows[] = {
    {"type", "TYPE", OPTION_TEXT, OFFSET(type_name), 0, 0, "f32, bf16 or f16"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 65536, "sequences"},
    {"heads", "N", OPTION_COUNT, OFFSET(heads), 1, 65536, "heads of q"},
    {"groups", "N", OPTION_COUNT, OFFSET(groups), 0, 65536, "heads of k and v; 0: as many as of q"},
    {"context", "N", OPTION_COUNT, OFFSET(context), 1, 65536, "rows of q, k and v in a sequence"},
    {"size", "N", OPTION_COUNT, OFFSET(size), 1, 256, "elements of a head"},
    {"causal", NULL, OPTION_FLAG, OFFSET(causal), 0, 0, "a row sees only the rows up to its own"},
    {"mask", "KIND", OPTION_TEXT, OFFSET(mask), 0, 0, "bool [t, s], padding [b, 1, 1, s], float [t, s], or none"},
    {"window", "N", OPTION_COUNT, OFFSET(window), 0, 65536, "rows that a row sees on a side; 0: all"},
    {"training", NULL, OPTION_FLAG, OFFSET(training), 0, 0, "compute the gradients of q, k and v, too"},
    {"own", NULL, OPTION_FLAG, OFFSET(own), 0, 0, "use Rondo's kernels alone, no library"},
};

const benchmark bench_attention = {
    .name = "attention",
    .summary = "attention of whole sequences",
    .description =
        "Measures attention as a recorded program; with --training, it also computes the gradients of q, k and v.\n"
        "Times are microseconds of a run until it is complete.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check_settings,
    .measure = measure,
    .report = report,
};
