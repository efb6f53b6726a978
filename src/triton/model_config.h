/* SPDX-License-Identifier: MIT
 * The configuration of a model, as the server gives it (JSON of ModelConfig, version 1): what the backend reads of it,
 * how it is completed from the model, and whether it agrees with the model.
 */
#ifndef RONDO_TRITON_MODEL_CONFIG_H
#define RONDO_TRITON_MODEL_CONFIG_H

#include "base/json_parse.h"
#include "triton/tensor_description.h"

typedef struct rondo_triton_config {
  rondo_json_document document;
  size_t max_batch_size;          /* 0: the first dimension of a tensor is in the configuration */
  bool is_decoupled;              /* a request may have several responses */
  bool is_direct;                 /* the server gives each sequence a row of the batch */
  const rondo_json_value *inputs; /* arrays; NULL or empty: not given */
  const rondo_json_value *outputs;
} rondo_triton_config;

/* Reads a configuration. The caller frees it; after a failure there is nothing to free. Errors: INVALID_DATA with
 * MALFORMED; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_triton_config_read(const char *text, size_t bytes, rondo_triton_config *out);
void rondo_triton_config_free(rondo_triton_config *config);

/* The text of a parameter (parameters { key: "..." value: { string_value: "..." } }); NULL: not given. */
const char *rondo_triton_config_parameter(const rondo_triton_config *config, const char *key);

/* Reads a text that is a whole number from `least` to `most` and nothing else. Returns false, and leaves *out, if it is
 * not one. */
bool rondo_triton_parse_number(const char *text, size_t least, size_t most, size_t *out);

/* A parameter that is a number from `least` to `most`; not given: `otherwise`. Errors: INVALID_ARGUMENT with
 * OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo_triton_config_number(const rondo_triton_config *config, const char *key, size_t least,
                                                       size_t most, size_t otherwise, size_t *out);

/* Whether a group has instances on devices of a kind. */
bool rondo_triton_config_has_instances(const rondo_triton_config *config, const char *kind);

/* How many instances the groups have on devices of a kind ("KIND_CPU", "KIND_GPU"); at least 1. */
size_t rondo_triton_config_instances(const rondo_triton_config *config, const char *kind);

/* Whether inputs or outputs are not given. */
bool rondo_triton_config_is_incomplete(const rondo_triton_config *config);

/* Writes what the server takes of a completed configuration: the batch size, inputs, outputs, and the choice of a
 * scheduler. What was given stays. If neither inputs nor outputs were given and max_batch_size is 0, it becomes
 * `default_batch_size`. The caller frees *out_text with rondo_release_text. */
RONDO_MUST_USE rondo_status rondo_triton_config_complete(const rondo_triton_config *config,
                                                         const rondo_triton_tensors *inputs,
                                                         const rondo_triton_tensors *outputs, size_t default_batch_size,
                                                         char **out_text);

/* Checks that the inputs and outputs are those of the model: all inputs, and any of the outputs. Errors, naming the
 * value: INVALID_ARGUMENT with UNKNOWN_NAME, TYPE, SHAPE. */
RONDO_MUST_USE rondo_status rondo_triton_config_check(const rondo_triton_config *config,
                                                      const rondo_triton_tensors *inputs,
                                                      const rondo_triton_tensors *outputs);

#endif
