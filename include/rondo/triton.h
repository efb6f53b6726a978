/* SPDX-License-Identifier: MIT
 * Models in shared objects, for Triton Inference Server. The backend `rondo` (libtriton_rondo.so) serves what it finds
 * in the folder of a model's version: `model.onnx`, `model.safetensors` that `rondo train --save` wrote, or `model.so`,
 * a shared object with this function:
 *
 *   #include <rondo/triton.h>
 *
 *   RONDO_TRITON_EXPORT rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out) {
 *     static const size_t rows[] = {1, 2, 8};
 *     out->model.build = build_ranker;       // a program for a number of rows, as for rondo_session_add_model
 *     out->model.weights = load(folder);
 *     out->model.history = rows;
 *     out->model.history_count = 3;
 *     return RONDO_OK;
 *   }
 *
 * The shared object links to the Rondo libraries that the backend uses, librondo_session.so for instance.
 *
 * Models with lengths, sequences and sources (<rondo/session.h>) are served too. A value with the
 * dimension of the length has the shape [rows, length, ...] in requests as well. Each sequence of requests, by its
 * correlation id, has a cache slot from the request with the start flag to the one with the end flag; a request without
 * a correlation id is a sequence of its own. If the description says which output is the next input, a request may have
 * the parameter max_tokens, and is answered with a response for each token. The inputs of the network that reads
 * sources are optional inputs of requests: one that has them reads the source, and then runs its step.
 *
 * Component: rondo-triton.
 */
#ifndef RONDO_TRITON_H
#define RONDO_TRITON_H

#include <rondo/session.h>

RONDO_EXTERN_C_BEGIN

/* A model, which the backend adds to a session for each device that it is served on. */
typedef struct rondo_triton_description {
  uint32_t struct_size; /* of the backend; fields beyond it are not read */
  uint32_t reserved;
  /* The text of a parameter of the model's configuration, by its key; NULL if it is not given:
   * description->parameter(description->configuration, "width"). During the call of rondo_triton_model only. */
  const char *(*parameter)(const void *configuration, const char *key);
  const void *configuration;
  rondo_model_options model; /* struct_size is set; all else is zero */
  /* In a model with sequences: the output [rows] that becomes the input [rows, length] of the next step, with length 1.
   * Both are of type I32 or I64. NULL: the model does not generate tokens. */
  const char *next_output, *next_input;
  void (*release)(struct rondo_triton_description *itself); /* called when the model is unloaded; may be NULL */
  void *user;                                               /* the shared object's own */
} rondo_triton_description;

/* Exports the function of a shared object, also if it is compiled with hidden visibility. */
#ifdef __GNUC__
#define RONDO_TRITON_EXPORT __attribute__((visibility("default")))
#else
#define RONDO_TRITON_EXPORT
#endif

/* Defined by the shared object, not by Rondo: describes its model, whose files are in `folder`. Called once when the
 * model is loaded. What the description refers to must live until `release` is called, weights included. The
 * sessions of several devices use a description at the same time, and so do two sessions of one device while sizes are
 * chosen again. `build` and `body` are called in threads of the backend until `release`, so they must be thread-safe. A
 * failure, with the message of rondo_last_error(), is why the model does not load; `release` is then not called. */
RONDO_TRITON_EXPORT rondo_status rondo_triton_model(const char *folder, rondo_triton_description *out_description);

RONDO_EXTERN_C_END

#endif
