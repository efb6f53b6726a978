/* SPDX-License-Identifier: MIT
 * The language model that train makes and generate runs: the last `context` bytes are looked up in an embedding, put
 * side by side, and go through one hidden layer with tanh to a score for each possible next byte (Bengio et al., A
 * neural probabilistic language model, JMLR 2003, without its direct connections).
 *
 * In a file it is the five tensors of model_parameters and, as metadata, format, version, context, embedding, hidden,
 * and in hexadecimal the vocabulary and the opening: the first bytes of the text, with which short prompts are filled.
 */
#ifndef RONDO_TOOL_MODEL_H
#define RONDO_TOOL_MODEL_H

#include <rondo/rondo.h>

#include "corpus.h"

#define MODEL_MAX_CONTEXT 256
#define MODEL_MAX_EMBEDDING 1024
#define MODEL_MAX_HIDDEN 16384

typedef struct language_model {
  uint32_t context, embedding, hidden;
  vocabulary vocabulary;
  unsigned char opening[MODEL_MAX_CONTEXT]; /* `context` bytes */
} language_model;

typedef struct model_parameter {
  const char *name;
  size_t rank, shape[2];
  double range; /* starts evenly drawn from -range to range */
} model_parameter;

#define MODEL_PARAMETERS 5
void model_parameters(const language_model *model, model_parameter out[MODEL_PARAMETERS]);

/* Adds the model to a program: parameters as states, the input "tokens" [batch, context] of type I32, and the scores
 * ("logits") [batch, vocabulary]. */
rondo_status model_build(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_logits);

/* Gives the parameters their first values, drawn from the seed, and sets all other states to zero. This and what
 * follows return TOOL_OK, or TOOL_FAILURE having said why. */
int model_initialize(const language_model *model, rondo_compiled *compiled, uint64_t seed);

/* Writes the parameters of a compiled program that model_build made to a file. */
int model_save(const language_model *model, rondo_compiled *compiled, const char *path);

/* Reads a file. The caller destroys the weights, whose tensors have the model's shapes. */
int model_load(const char *path, language_model *out, rondo_weights **out_weights);

#endif
