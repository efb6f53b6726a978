/* SPDX-License-Identifier: MIT
 * Reading a model in `rondo generate`: any bytes either fail with a message that names the file, or give a model with
 * consistent sizes, whose vocabulary and opening agree, and whose tensors have its shapes. A small model becomes a
 * program. The input is a safetensors file without the length at its beginning, and with a NUL after its header.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/tool_messages.h"
#include "models/model_quantized.h"

static void require_vocabulary(const language_model *model) {
  const vocabulary *v = &model->vocabulary;
  uint32_t known = 0;
  REQUIRE(v->count >= 2 && v->count <= 256);
  for (int byte = 0; byte < 256; byte++) {
    if (v->token_of[byte] < 0) continue;
    REQUIRE((uint32_t)v->token_of[byte] < v->count && v->byte_of[v->token_of[byte]] == byte);
    known++;
  }
  REQUIRE(known == v->count);
  for (uint32_t i = 0; i < model->sizes[MODEL_CONTEXT]; i++) REQUIRE(v->token_of[model->opening[i]] >= 0);
}

static void require_sizes(const language_model *model) {
  char why[MODEL_WHY_BYTES];
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    REQUIRE(model->sizes[i] <= model_size_rows[i].most);
    REQUIRE((model->sizes[i] > 0) == (model->kind->sizes[i] > 0));
  }
  REQUIRE(model_sizes_fit(model, why));
}

static void require_tensors(const language_model *model, const rondo_weights *weights) {
  model_parameter p;
  for (size_t i = 0; model->kind->parameter(model, i, &p); i++) {
    rondo_weight found;
    stored_parameter stored;
    char scales[MODEL_SCALES_NAME];
    REQUIRE(model_stored_parameter(model, i, &p, &stored) == RONDO_OK);
    REQUIRE(rondo_weights_find(weights, p.name, &found) == RONDO_OK);
    REQUIRE(found.type == stored.type && found.rank == stored.rank);
    REQUIRE(memcmp(found.shape, stored.shape, stored.rank * sizeof *stored.shape) == 0);
    if (stored.scales[0] == 0) continue;
    model_scales_name(p.name, scales);
    REQUIRE(rondo_weights_find(weights, scales, &found) == RONDO_OK);
    REQUIRE(found.type == RONDO_F32 && memcmp(found.shape, stored.scales, sizeof stored.scales) == 0);
  }
}

static void require_program(const language_model *model) {
  rondo_program *program = NULL;
  rondo_value logits;
  REQUIRE(rondo_program_create(NULL, &program) == RONDO_OK);
  REQUIRE(model_build(model, program, 1, &logits) == RONDO_OK);
  REQUIRE(rondo_program_output(program, "logits", logits) == RONDO_OK);
  rondo_program_destroy(program);
}

/* The file; the caller frees it. */
static uint8_t *make_file(const uint8_t *data, size_t size, size_t *out_bytes) {
  const uint8_t *nul = memchr(data, 0, size);
  const uint64_t header = nul ? (uint64_t)(nul - data) : size;
  const size_t rest = nul ? size - (size_t)header - 1 : 0;
  *out_bytes = 8 + (size_t)header + rest;
  uint8_t *file = malloc(*out_bytes);
  REQUIRE(file != NULL);
  for (int i = 0; i < 8; i++) file[i] = (uint8_t)(header >> 8 * i);
  memcpy(file + 8, data, (size_t)header);
  memcpy(file + 8 + header, data + size - rest, rest);
  return file;
}

static void read_model(const rondo_weights *weights) {
  language_model model;
  tool_message[0] = '\0';
  const int result = model_read("in", weights, &model);
  REQUIRE((result == TOOL_OK) == (tool_message[0] == '\0'));
  if (result != TOOL_OK) {
    REQUIRE(strncmp(tool_message, "in: ", 4) == 0 || strcmp(tool_message, "in cannot be used") == 0);
    return;
  }
  require_sizes(&model);
  require_vocabulary(&model);
  require_tensors(&model, weights);
  require_program(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rondo_weights *weights = NULL;
  size_t bytes = 0;
  if (size == 0) return 0;
  uint8_t *file = make_file(data, size, &bytes);
  if (rondo_weights_parse(file, bytes, NULL, &weights) == RONDO_OK) read_model(weights);
  rondo_weights_destroy(weights);
  free(file);
  return 0;
}
