/* SPDX-License-Identifier: MIT
 * The language models that train creates and generate runs. A table has the kinds of models: the name, sizes and
 * parameters of each, and the function that builds its program. A new kind needs a file and a row in model.c.
 *
 * - character: embeddings of the last `context` bytes are concatenated. One hidden layer with tanh computes a score for
 *   each possible next byte (Bengio et al., A neural probabilistic language model, JMLR
 *   2003, without its direct connections).
 * - gpt: a transformer that computes a score for the byte after each of the `context` bytes (Radford et al., Language
 *   models are unsupervised multitask learners, 2019).
 *
 * The file of a model has its parameters and, as metadata, the format, version and sizes, and in hexadecimal the
 * vocabulary and the opening: the first bytes of the text, which fill up short prompts.
 */
#ifndef RONDO_TOOL_MODEL_H
#define RONDO_TOOL_MODEL_H

#include <stdbool.h>

#include <rondo/rondo.h>
#include <rondo/session.h>

#include "train/corpus.h"

#define MODEL_MAX_CONTEXT 1024
#define MODEL_SCALES 1024                       /* the scales of states[i] are states[i + MODEL_SCALES] */
#define MODEL_MAX_PARAMETERS (2 * MODEL_SCALES) /* entries of an array of states */
#define MODEL_WHY_BYTES 120

typedef enum model_size {
  MODEL_CONTEXT,   /* number of bytes that the model sees */
  MODEL_EMBEDDING, /* width of the embedding of a byte */
  MODEL_HIDDEN,    /* width of the hidden layer */
  MODEL_LAYERS,
  MODEL_WIDTH, /* width of every layer, and of the embedding of a byte */
  MODEL_HEADS, /* attention heads in every layer */
  MODEL_SIZES
} model_size;

typedef struct model_size_row {
  const char *name;
  uint32_t most;
} model_size_row;
extern const model_size_row model_size_rows[MODEL_SIZES];

typedef struct model_kind model_kind;

/* How the weights are stored (model_quantized.h). */
typedef struct model_quantization {
  uint32_t bits; /* 0: F32 */
  size_t group;
  rondo_quantized_activations activations;
} model_quantization;

typedef struct language_model {
  const model_kind *kind;
  rondo_type type; /* for computation; parameters are F32, unless they are quantised */
  model_quantization quantization;
  uint32_t sizes[MODEL_SIZES];
  vocabulary vocabulary;
  unsigned char opening[MODEL_MAX_CONTEXT]; /* `context` bytes */
} language_model;

typedef struct model_parameter {
  char name[40];
  size_t rank, shape[2];
  float center, range; /* initial values are uniform in center - range to center + range */
} model_parameter;

struct model_kind {
  const char *name;
  const char *format;          /* "format" in the metadata of its files */
  uint32_t sizes[MODEL_SIZES]; /* defaults; 0: it has no such size */
  uint32_t batch, steps;       /* defaults for training */
  double learning_rate;
  float weight_decay;
  uint32_t tables;      /* the first parameters, which are looked up by rows. Other matrices are factors of products, */
  uint32_t unquantized; /* except for this many after the tables, which are never quantised */
  bool predicts_each;   /* predicts the byte after each position of the context; false: only after the last one */

  /* The parameter at the index; false past the last. */
  bool (*parameter)(const language_model *model, size_t index, model_parameter *out);
  /* About how many numbers a training step keeps for one position of the text. */
  double (*activations)(const language_model *model);
  /* See model_sizes_fit; NULL: all sizes are valid. */
  bool (*sizes_fit)(const language_model *model, char why[MODEL_WHY_BYTES]);
  /* See model_build; `states` are the parameters, which model_multiply and model_look_up read (model_quantized.h). */
  rondo_status (*build)(const language_model *model, rondo_program *program, const rondo_value *states,
                        rondo_value tokens, size_t batch, rondo_value *out_logits);
  /* See model_build_prompt and model_build_next; NULL: the kind has no caches. */
  rondo_status (*build_prompt)(const language_model *model, rondo_program *program, const rondo_value *states,
                               size_t length);
  rondo_status (*build_next)(const language_model *model, rondo_program *program, const rondo_value *states);
  rondo_status (*build_steps)(const language_model *model, rondo_program *program, const rondo_value *states,
                              const rondo_model_size *size);
};

extern const model_kind model_character, model_gpt;

/* Finds a kind by its name, or by the format of its files. NULL if there is none. */
const model_kind *model_kind_named(const char *name);
const model_kind *model_kind_of_format(const char *format);
/* "character or gpt", for messages. */
const char *model_kind_names(void);

/* Whether the sizes are consistent; if not, `why` explains it. */
bool model_sizes_fit(const language_model *model, char why[MODEL_WHY_BYTES]);

/* The number of labels of one sample. */
size_t model_labels(const language_model *model);
/* Number of elements of all parameters. */
double model_parameter_elements(const language_model *model);
/* Whether a state of this name is a parameter of any model, or its scales; `user` is not used. */
bool model_is_parameter(const char *name, void *user);

/* Adds the model to a program: parameters as states, the input "tokens" [batch, context] of type I32, and the scores
 * ("logits") [batch, labels, vocabulary]. Kinds with one label for each sample have no second dimension. */
rondo_status model_build(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_logits);

/* Programs that continue a text, for kinds with caches. The caches are states that both programs share. A prompt
 * program starts a text: it has the inputs "tokens" [1, length] and "last" [1], the position of the last valid token,
 * and writes all tokens up to it to the caches. A next program continues it: it has the input "tokens" [1, 1] and the
 * scalar "length", the number of tokens in the caches. All inputs are I32. Both have the output "logits": `vocabulary`
 * scores after the last token. */
rondo_status model_build_prompt(const language_model *model, rondo_program *program, size_t length);
rondo_status model_build_next(const language_model *model, rondo_program *program);

/* A rondo_model_build_sized callback for the same kinds; `user` is the model. Each row continues a sequence. The input
 * "tokens" [rows, length] is given by requests, and so are "seed" [rows], I64, and "temperature" [rows], F32, by which
 * the output "token" [rows], I32, is drawn after the last valid token; 0 draws the most likely one. model_row_inputs
 * are those that the session writes. */
rondo_status model_build_steps(void *user, const rondo_model_size *size, rondo_program *program);
extern const rondo_row_inputs model_row_inputs;

/* Adds the model and its mean loss over the input "labels", which becomes the output "loss". out_loss may be NULL. */
rondo_status model_build_loss(const language_model *model, rondo_program *program, size_t batch, rondo_value *out_loss);

/* Builds a training step: the model, its mean loss over the input "labels" as the output "loss", gradients and Adam
 * with the kind's weight decay. The learning rate follows the schedule or, if that is NULL, the cell "learning_rate".
 * If the program is data-parallel, each rank has `batch` samples of its own. */
rondo_status model_build_step(const language_model *model, rondo_program *program, size_t batch,
                              const rondo_rate_options *schedule);

/* Initializes the parameters with random values from the seed, and sets all other states to zero. This and the
 * following functions return TOOL_OK, or TOOL_FAILURE after a message. */
int model_initialize(const language_model *model, rondo_compiled *compiled, uint64_t seed);

/* Makes the set of weights that a model's file has: the parameters of a compiled program, which model_build built, with
 * the metadata. Of a data-parallel program, all ranks call it. model_describe adds the metadata to a set. */
rondo_status model_gather(const language_model *model, rondo_compiled *compiled, rondo_weights **out);
rondo_status model_describe(const language_model *model, rondo_weights *weights);

/* Reads a file. The caller destroys the weights, whose tensors have the model's shapes. */
int model_load(const char *path, language_model *out, rondo_weights **out_weights);

/* Whether the weights have the model's parameters. `path` is for messages. */
int model_check(const char *path, const rondo_weights *weights, const language_model *model);

/* Reads the model from the metadata of a file's weights. `path` is for messages. */
int model_read(const char *path, const rondo_weights *weights, language_model *out);

#endif
