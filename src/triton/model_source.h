/* SPDX-License-Identifier: MIT
 * What the folder of a model's version holds: an ONNX file, a model that `rondo train --save` wrote, or a shared
 * object. It becomes the options of a session's model, and the description of its inputs and outputs.
 */
#ifndef RONDO_TRITON_MODEL_SOURCE_H
#define RONDO_TRITON_MODEL_SOURCE_H

#include <rondo/onnx.h>
#include <rondo/triton.h>

#include "triton/model_config.h"

typedef struct rondo_triton_source {
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_model_options options; /* of the session's model; the caller adds the history */
  rondo_triton_tensors inputs, outputs;
  size_t step_inputs;             /* the first of `inputs`; the others are those of sources */
  bool changes_states;            /* other than caches; false of a function, whose states are its own */
  bool generates;                 /* a step's output is the next step's input: */
  size_t next_output, next_input; /* indices of `outputs` and `inputs` */
  rondo_onnx_model *onnx;         /* of model.onnx, as is the next */
  rondo_onnx_builder *builder;
  void *library; /* of model.so, or language_model.so; as is the next */
  rondo_triton_description described;
} rondo_triton_source;

/* Loads a model. `folder` is that of the version; the configuration has the parameters `rows`, `dimensions`,
 * `length`, `lengths`, `mask` and `causal` of ONNX files. The caller frees the source, also after a failure. Errors,
 * naming the file: NOT_FOUND/NONE (no file of a kind that is known); those of rondo_onnx_load,
 * rondo_onnx_builder_create, rondo_triton_model and rondo_triton_describe; UNAVAILABLE/NONE (a shared object that does
 * not load), NOT_FOUND/UNKNOWN_NAME (one without the function). */
RONDO_MUST_USE rondo_status rondo_triton_source_load(const char *folder, const rondo_triton_config *config,
                                                     rondo_triton_source *out);
/* A zeroed one is allowed. */
void rondo_triton_source_free(rondo_triton_source *source);

#endif
