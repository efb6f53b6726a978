/* SPDX-License-Identifier: MIT
 * The model that `rondo serve` serves: a built-in one, or one of an ONNX file (onnx/served_onnx.h). And inputs for its
 * requests: memory of the device with the rows of the largest request, of which each request uses the first ones.
 */
#ifndef RONDO_TOOL_SERVED_MODEL_H
#define RONDO_TOOL_SERVED_MODEL_H

#include <rondo/session.h>

#include "common/host_tensor.h"
#include "models/recommender.h"

typedef struct served_model {
  const char *name;     /* in the session */
  recommender built_in; /* where `build` is recommender_build */
  struct served_onnx *file;
  const char *hint; /* what a failure's message ends with, or "" */
  /* What the session gets. */
  rondo_model_build build;
  rondo_model_build_sized build_sized; /* in place of build, for requests of several lengths */
  bool exact_lengths;
  void *user;
  const rondo_weights *weights; /* until served_model_drop_weights */
  rondo_weights *own_weights;   /* of a built-in model */
  /* Of the session's model, once it was added. */
  rondo_model_value values[2][RONDO_SESSION_MAX_VALUES]; /* SERVED_INPUTS, SERVED_OUTPUTS */
  size_t counts[2];
  size_t longest;       /* request; 0: the model has no lengths */
  rondo_device *device; /* whose memory the inputs are; NULL: there are none yet */
  recommender_inputs built_in_inputs;
  void *memory[RONDO_SESSION_MAX_VALUES]; /* of a file's model */
  const void *inputs[RONDO_SESSION_MAX_VALUES];
} served_model;

enum { SERVED_INPUTS, SERVED_OUTPUTS };

/* The model that recommender_find has found, with weights from the seed. Returns TOOL_OK, or TOOL_FAILURE after a
 * message, as the others do. */
int served_model_open_built_in(const char *name, const recommender *built_in, uint64_t seed, served_model *out);

/* Frees the weights of a built-in model, when the session has them. */
void served_model_drop_weights(served_model *model);

/* Finds the inputs and outputs of the model in the session. */
int served_model_find_values(served_model *model, rondo_session *session);

/* Makes inputs for so many rows, from the seed or from files. */
int served_model_make_inputs(served_model *model, rondo_device *device, size_t rows, uint64_t seed);

/* Bytes of an input or output for so many rows of a length. */
size_t served_model_bytes(const rondo_model_value *value, size_t rows, size_t length);

/* Before the device is closed. */
int served_model_close(served_model *model);

/* Memory for the outputs of so many rows of the longest length, which the caller frees, and pointers into it. NULL
 * without a message: there is not enough memory. */
void *served_model_make_outputs(const served_model *model, size_t rows, void *out[RONDO_SESSION_MAX_VALUES]);

#endif
