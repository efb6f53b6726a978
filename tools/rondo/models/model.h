/* SPDX-License-Identifier: MIT
 * The language models that train makes and generate runs, as a table of kinds: what each is called, its sizes, its
 * parameters and how it becomes a program. A new kind is a file that defines one, and a row in model.c.
 *
 * - character: the last `context` bytes are looked up in an embedding, put side by side, and go through one hidden
 *   layer with tanh to a score for each possible next byte (Bengio et al., A neural probabilistic language model, JMLR
 *   2003, without its direct connections).
 * - gpt: a transformer that has a score for the byte after each of the `context` bytes (Radford et al., Language
 *   models are unsupervised multitask learners, 2019).
 *
 * In a file a model is its parameters and, as metadata, format, version, its sizes, and in hexadecimal the vocabulary
 * and the opening: the first bytes of the text, with which short prompts are filled.
 */
#ifndef RONDO_TOOL_MODEL_H
#define RONDO_TOOL_MODEL_H

#include <stdbool.h>

#include <rondo/rondo.h>

#include "train/corpus.h"

#define MODEL_MAX_CONTEXT 1024
#define MODEL_MAX_PARAMETERS 1024
#define MODEL_WHY_BYTES 120

typedef enum model_size {
  MODEL_CONTEXT,   /* bytes that the model sees */
  MODEL_EMBEDDING, /* numbers that stand for a byte */
  MODEL_HIDDEN,    /* width of the hidden layer */
  MODEL_LAYERS,
  MODEL_WIDTH, /* numbers that stand for a byte in every layer */
  MODEL_HEADS, /* of attention, in every layer */
  MODEL_SIZES
} model_size;

typedef struct model_size_row {
  const char *name;
  uint32_t most;
} model_size_row;
extern const model_size_row model_size_rows[MODEL_SIZES];

typedef struct model_kind model_kind;

typedef struct language_model {
  const model_kind *kind;
  rondo_type type; /* of what is computed; parameters are F32 in any case */
  uint32_t sizes[MODEL_SIZES];
  vocabulary vocabulary;
  unsigned char opening[MODEL_MAX_CONTEXT]; /* `context` bytes */
} language_model;

typedef struct model_parameter {
  char name[40];
  size_t rank, shape[2];
  float center, range; /* starts evenly drawn from center - range to center + range */
} model_parameter;

struct model_kind {
  const char *name;
  const char *format;          /* of its files */
  uint32_t sizes[MODEL_SIZES]; /* where nothing else is asked for; 0: it has no such size */
  uint32_t batch, steps;       /* likewise, to train with */
  double learning_rate;
  float weight_decay;
  bool predicts_each; /* what follows each byte of the context; false: what follows the last one */

  /* The parameter at the index; false past the last. */
  bool (*parameter)(const language_model *model, size_t index, model_parameter *out);
  /* What a step keeps of one place of the text, in numbers, about. */
  double (*activations)(const language_model *model);
  /* See model_sizes_fit; NULL: any sizes do. */
  bool (*sizes_fit)(const language_model *model, char why[MODEL_WHY_BYTES]);
  /* See model_build; `states` are the parameters. */
  rondo_status (*build)(const language_model *model, rondo_program *program, const rondo_value *states,
                        rondo_value tokens, size_t batch, rondo_value *out_logits);
  /* See model_build_prompt and model_build_next; NULL: the kind has no caches. */
  rondo_status (*build_prompt)(const language_model *model, rondo_program *program, const rondo_value *states,
                               size_t length);
  rondo_status (*build_next)(const language_model *model, rondo_program *program, const rondo_value *states);
};

extern const model_kind model_character, model_gpt;

/* By its name, or by the format of its files; NULL: there is none. */
const model_kind *model_kind_named(const char *name);
const model_kind *model_kind_of_format(const char *format);
/* "character or gpt", for messages. */
const char *model_kind_names(void);

/* Whether the sizes go together; where they do not, `why` says it. */
bool model_sizes_fit(const language_model *model, char why[MODEL_WHY_BYTES]);

/* How many labels stand beside a place of the text. */
size_t model_labels(const language_model *model);
/* Elements of all parameters. */
double model_parameter_elements(const language_model *model);
/* Whether a state of this name is a parameter of any model. */
bool model_is_parameter(const char *name);

/* Adds the model to a program: parameters as states, the input "tokens" [batch, context] of type I32, and the scores
 * ("logits") [batch, labels, vocabulary], without the second dimension where a place has one label. */
rondo_status model_build(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_logits);

/* Programs that write on, of a kind with caches of what was seen, states that they have in common. A prompt begins: the
 * inputs "tokens" [1, length] and "last" [1], the place of the last token that counts, up to which all goes into the
 * caches. Next goes on: the input "tokens" [1, 1] after "length" tokens in the caches, a scalar. All inputs are I32;
 * the output "logits" of both, `vocabulary` numbers, are the scores after the last token. */
rondo_status model_build_prompt(const language_model *model, rondo_program *program, size_t length);
rondo_status model_build_next(const language_model *model, rondo_program *program);

/* A training step: the model, its mean loss over the input "labels" as the output "loss", gradients and Adam, with the
 * rate of the schedule, or, where that is NULL, in the cell "learning_rate", and the kind's weight decay. */
rondo_status model_build_step(const language_model *model, rondo_program *program, size_t batch,
                              const rondo_rate_options *schedule);

/* Gives the parameters their first values, drawn from the seed, and sets all other states to zero. This and what
 * follows return TOOL_OK, or TOOL_FAILURE after a message. */
int model_initialize(const language_model *model, rondo_compiled *compiled, uint64_t seed);

/* Writes the parameters of a compiled program that model_build made to a file. */
int model_save(const language_model *model, rondo_compiled *compiled, const char *path);

/* Reads a file. The caller destroys the weights, whose tensors have the model's shapes. */
int model_load(const char *path, language_model *out, rondo_weights **out_weights);

/* Reads what a file's weights say of the model; `path` is for messages. */
int model_read(const char *path, const rondo_weights *weights, language_model *out);

#endif
