/* SPDX-License-Identifier: MIT
 * The recommender: its layers, and its states and inputs. Both are drawn from seeds, so that two runs serve the same
 * requests. Ids are rows of one table, which is the concatenation of all tables.
 */
#include "models/recommender.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random_numbers.h"
#include "common/tool.h"

enum { VECTORS = RECOMMENDER_TABLES + 1, PAIRS = VECTORS * VECTORS };

static const size_t bottom[] = {RECOMMENDER_NUMBERS, 512, 256, 64, RECOMMENDER_WIDTH};
static const size_t top[] = {RECOMMENDER_WIDTH + PAIRS, 512, 256, 1};

bool recommender_find(const char *name, recommender *out) {
  out->has_tables = strcmp(name, "recommender") == 0;
  return out->has_tables || strcmp(name, "dense") == 0;
}

/* The network ------------------------------------------------------------------------------------------------------ */

static rondo_status add_layer(rondo_program *program, const char *part, size_t layer, const size_t *widths,
                              bool is_last, rondo_value *inout) {
  char name[32];
  const size_t w_shape[] = {widths[layer], widths[layer + 1]};
  rondo_value w, bias;
  snprintf(name, sizeof name, "%s.%zu.w", part, layer);
  TOOL_TRY(rondo_program_state(program, name, RONDO_F32, w_shape, 2, &w));
  snprintf(name, sizeof name, "%s.%zu.b", part, layer);
  TOOL_TRY(rondo_program_state(program, name, RONDO_F32, w_shape + 1, 1, &bias));
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = bias,
                                        .activation = is_last ? RONDO_ACTIVATION_NONE : RONDO_ACTIVATION_RELU};
  return rondo_op_matmul_with(program, *inout, w, &options, inout);
}

static rondo_status add_layers(rondo_program *program, const char *part, const size_t *widths, size_t layers,
                               bool ends_plain, rondo_value *inout) {
  for (size_t i = 0; i < layers; i++)
    TOOL_TRY(add_layer(program, part, i, widths, ends_plain && i + 1 == layers, inout));
  return RONDO_OK;
}

/* [rows, tables, width], from a look-up or from an input. */
static rondo_status add_vectors(const recommender *model, size_t rows, rondo_program *program, rondo_value *out) {
  const size_t shape[] = {rows, RECOMMENDER_TABLES, RECOMMENDER_WIDTH};
  const size_t table_shape[] = {RECOMMENDER_TABLES * model->table_rows, RECOMMENDER_WIDTH};
  rondo_value ids, tables;
  if (!model->has_tables) return rondo_program_input(program, "vectors", RONDO_F32, shape, 3, out);
  TOOL_TRY(rondo_program_input(program, "ids", RONDO_I32, shape, 2, &ids));
  TOOL_TRY(rondo_program_state(program, "tables", RONDO_F32, table_shape, 2, &tables));
  return rondo_op_embedding(program, tables, ids, out);
}

/* The dot products of all pairs of vectors, concatenated with the first vector. */
static rondo_status add_pairs(rondo_program *program, size_t rows, rondo_value first, rondo_value vectors,
                              rondo_value *out) {
  const size_t one[] = {rows, 1, RECOMMENDER_WIDTH}, flat[] = {rows, PAIRS};
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  rondo_value both[2] = {{0}, vectors}, all, pairs;
  TOOL_TRY(rondo_op_reshape(program, first, one, 3, &both[0]));
  TOOL_TRY(rondo_op_concat(program, both, 2, 1, &all));
  TOOL_TRY(rondo_op_matmul_with(program, all, all, &transposed, &pairs));
  TOOL_TRY(rondo_op_reshape(program, pairs, flat, 2, &pairs));
  const rondo_value joined[] = {first, pairs};
  return rondo_op_concat(program, joined, 2, 1, out);
}

rondo_status recommender_build(void *user, size_t rows, rondo_program *program) {
  const recommender *model = user;
  const size_t shape[] = {rows, RECOMMENDER_NUMBERS};
  rondo_value x, vectors, score;
  TOOL_TRY(rondo_program_input(program, "numbers", RONDO_F32, shape, 2, &x));
  TOOL_TRY(add_vectors(model, rows, program, &vectors));
  TOOL_TRY(add_layers(program, "bottom", bottom, 4, false, &x));
  TOOL_TRY(add_pairs(program, rows, x, vectors, &score));
  TOOL_TRY(add_layers(program, "top", top, 3, true, &score));
  TOOL_TRY(rondo_op_sigmoid(program, score, &score));
  return rondo_program_output(program, "score", score);
}

/* States ---------------------------------------------------------------------------------------------------------- */

static float draw_real(uint64_t *state, double range) {
  return (float)(((double)(draw_next(state) >> 11) / 4503599627370496.0 - 1) * range);
}

static rondo_status add_state(rondo_weights *weights, const char *name, size_t rank, size_t rows, size_t columns,
                              uint64_t *random) {
  const size_t count = rows * (rank == 2 ? columns : 1);
  float *data = malloc(count * sizeof *data);
  if (data == NULL) {
    tool_fail_memory("the %zu values of '%s'", count, name); /* the status alone has no message */
    return RONDO_OUT_OF_MEMORY;
  }
  const double range = rank == 2 ? sqrt(3.0 / (double)rows) : 0.1;
  for (size_t i = 0; i < count; i++) data[i] = draw_real(random, range);
  const rondo_weight weight = {.name = name,
                               .type = RONDO_F32,
                               .rank = rank,
                               .shape = {rows, columns},
                               .data = data,
                               .bytes = count * sizeof *data};
  const rondo_status status = rondo_weights_add(weights, &weight);
  free(data);
  return status;
}

static rondo_status add_states(rondo_weights *weights, const char *part, const size_t *widths, size_t layers,
                               uint64_t *random) {
  char name[32];
  for (size_t i = 0; i < layers; i++) {
    snprintf(name, sizeof name, "%s.%zu.w", part, i);
    TOOL_TRY(add_state(weights, name, 2, widths[i], widths[i + 1], random));
    snprintf(name, sizeof name, "%s.%zu.b", part, i);
    TOOL_TRY(add_state(weights, name, 1, widths[i + 1], 0, random));
  }
  return RONDO_OK;
}

rondo_status recommender_weights(const recommender *model, uint64_t seed, rondo_weights **out) {
  uint64_t random = seed;
  TOOL_TRY(rondo_weights_create(NULL, out));
  rondo_status status = add_states(*out, "bottom", bottom, 4, &random);
  if (!status) status = add_states(*out, "top", top, 3, &random);
  if (!status && model->has_tables)
    status = add_state(*out, "tables", 2, RECOMMENDER_TABLES * model->table_rows, RECOMMENDER_WIDTH, &random);
  if (!status) return RONDO_OK;
  rondo_weights_destroy(*out);
  *out = NULL;
  return status;
}

/* Inputs ---------------------------------------------------------------------------------------------------------- */

static void fill_inputs(const recommender *model, size_t rows, uint64_t seed, recommender_inputs *in) {
  uint64_t random = seed;
  for (size_t i = 0; i < rows * RECOMMENDER_NUMBERS; i++) in->numbers[i] = draw_real(&random, 1);
  for (size_t i = 0; model->has_tables && i < rows * RECOMMENDER_TABLES; i++)
    ((int32_t *)in->looked_up)[i] =
        (int32_t)(i % RECOMMENDER_TABLES * model->table_rows + draw_next(&random) % model->table_rows);
  for (size_t i = 0; !model->has_tables && i < rows * RECOMMENDER_TABLES * RECOMMENDER_WIDTH; i++)
    ((float *)in->looked_up)[i] = draw_real(&random, 1);
}

/* Bytes of one row of ids, or of one row of vectors. */
static size_t row_bytes_of(const recommender *model) {
  return RECOMMENDER_TABLES * (model->has_tables ? sizeof(int32_t) : RECOMMENDER_WIDTH * sizeof(float));
}

void recommender_inputs_from(const recommender *model, const recommender_inputs *inputs, size_t first,
                             const void *out[2]) {
  out[0] = inputs->numbers + first * RECOMMENDER_NUMBERS;
  out[1] = (const char *)inputs->looked_up + first * row_bytes_of(model);
}

int recommender_inputs_create(const recommender *model, rondo_device *device, size_t rows, uint64_t seed,
                              recommender_inputs *out) {
  const size_t row_bytes = row_bytes_of(model);
  void *numbers = NULL;
  *out = (recommender_inputs){.device = device};
  if (rondo_host_malloc(device, rows * RECOMMENDER_NUMBERS * sizeof(float), &numbers) != RONDO_OK ||
      rondo_host_malloc(device, rows * row_bytes, &out->looked_up) != RONDO_OK) {
    out->numbers = numbers;
    return tool_fail_status("memory for %zu rows of inputs", rows);
  }
  out->numbers = numbers;
  fill_inputs(model, rows, seed, out);
  out->inputs[0] = out->numbers;
  out->inputs[1] = out->looked_up;
  return TOOL_OK;
}

int recommender_inputs_destroy(recommender_inputs *inputs) {
  if (inputs->device == NULL) return TOOL_OK;
  const rondo_status numbers = rondo_host_free(inputs->device, inputs->numbers);
  const rondo_status looked_up = rondo_host_free(inputs->device, inputs->looked_up);
  *inputs = (recommender_inputs){0};
  if (numbers == RONDO_OK && looked_up == RONDO_OK) return TOOL_OK;
  return tool_fail_status("freeing the inputs");
}
