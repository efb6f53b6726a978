/* SPDX-License-Identifier: MIT
 * A model in an ONNX file, its inputs, and the compiled program that runs it: what `rondo run`, `rondo info` and
 * `rondo bench model` share.
 *
 * Functions return TOOL_OK, or TOOL_FAILURE or TOOL_USAGE after a message. One thread at a time.
 */
#ifndef RONDO_TOOL_ONNX_PROGRAM_H
#define RONDO_TOOL_ONNX_PROGRAM_H

#include <rondo/rondo.h>

#include "common/host_tensor.h"
#include "common/json.h"
#include "common/options.h"

/* An input of the model that is a tensor, or an element of one that is a sequence, or an optional with a value. */
typedef struct onnx_input {
  rondo_onnx_value value; /* its own name is "x[1]" for an element */
  size_t value_index;     /* of the model's input */
  char *element_name;     /* owned; NULL: the name is the model's */
  const char *source;     /* the path of a file, "random" or "zeros" */
  bool is_file;
  bool has_tensor; /* its type and shape are known, and `tensor` is its value, of the model's type */
  bool has_shape;  /* the shape of `tensor` is known, but programs do not have the type */
  host_tensor tensor;
} onnx_input;

/* Where inputs come from. */
typedef struct onnx_input_settings {
  option_list
      inputs; /* NAME=FILE, NAME=random, NAME=zeros, also NAME[INDEX]=...; tensors that are not listed are random */
  option_list sizes; /* NAME=N: dynamic dimensions; those that no file and no entry gives are 1; NAME[]=N: elements */
  uint64_t seed;
} onnx_input_settings;

/* Rows of options for settings with a member `source` of that type. */
#define ONNX_INPUT_ROWS(settings)                                                                                   \
  {"input",                                                                                                         \
   "NAME=VALUE",                                                                                                    \
   OPTION_LIST,                                                                                                     \
   offsetof(settings, source.inputs),                                                                               \
   0,                                                                                                               \
   0,                                                                                                               \
   "an input: a file (.npy of NumPy, .pb of ONNX), 'random' or 'zeros'; can be given for each input, and for each " \
   "element of a sequence x: 'x[0]', 'x[1]'. Others are random: floats between -1 and 1, integers 0 or 1"},         \
      {"size",                                                                                                      \
       "NAME=N",                                                                                                    \
       OPTION_LIST,                                                                                                 \
       offsetof(settings, source.sizes),                                                                            \
       0,                                                                                                           \
       0,                                                                                                           \
       "the size of a dynamic dimension; can be given for each, and 'x[]' is how many elements a sequence x has. "  \
       "Others have that of a file, or 1"},                                                                         \
  {                                                                                                                 \
    "seed", "N", OPTION_COUNT, offsetof(settings, source.seed), 0, 0, "seed of random inputs"                       \
  }

/* A row for settings with a member `without_patterns`, a text. */
#define ONNX_PATTERNS_ROW(settings)                                                                                  \
  {                                                                                                                  \
    "without-patterns", "NAMES", OPTION_TEXT, offsetof(settings, without_patterns), 0, 0,                            \
        "patterns of operators that are not replaced by one operator: \"attention,gelu\", or \"all\"; 'rondo info' " \
        "lists those that are"                                                                                       \
  }

typedef struct onnx_program {
  const char *path;
  rondo_onnx_model *model;
  rondo_onnx_info info;
  onnx_input *inputs; /* of onnx_program_take_inputs */
  size_t input_count;
  rondo_onnx_dimension_size *lengths; /* of sequences that are inputs: the dimension "x[]" */
  size_t length_count;
  rondo_program *program;
  rondo_onnx_build *build; /* also if nodes are not supported */
  rondo_onnx_build_info built;
  rondo_compiled *compiled; /* NULL if no output depends on a run, or the model runs in parts */
  bool needs_parts;         /* shapes depend on data, and nothing else is unsupported: it runs in parts */
  struct onnx_parts *parts; /* that were opened (onnx_parts.h); NULL: none */
  rondo_compiled_info memory;
  double load_seconds, build_seconds, compile_seconds;
  char hint[300]; /* "; ...": that sizes of dimensions are not given, for messages of failures; or "" */
} onnx_program;

int onnx_program_load(const char *path, onnx_program *out);

/* The library's message after `what`, with the hint. Returns TOOL_FAILURE. */
int onnx_program_fail(const onnx_program *of, const char *what);

/* Reads and makes the inputs. `folder` may have files for inputs that the settings do not list: input_0.pb and so on,
 * as ONNX's own tests have, or NAME.npy. NULL: none. */
int onnx_program_take_inputs(onnx_program *of, const onnx_input_settings *settings, const char *folder);
void onnx_program_free_inputs(onnx_program *of);

/* An input whose shape is known, for the options of a build. Values of files are given, because the program may need
 * them; those that are made up are not, nor those of types that programs hold in wider ones. *inout_values counts those
 * with a value: a build takes 63. */
rondo_onnx_given_input onnx_program_give_input(const onnx_input *input, size_t *inout_values);

/* Makes the program, for this device. Nodes that are not supported are no failure if `lists_unsupported`, nor if they
 * only need data (needs_parts). */
int onnx_program_build(onnx_program *of, const rondo_device *device, bool lists_unsupported);

/* Compiles it for a device, and writes weights and inputs. NULL: the default options. If it needs parts, they are
 * compiled by the first run. */
int onnx_program_compile(onnx_program *of, rondo_device *device, const rondo_compile_options *options);
int onnx_program_write_inputs(const onnx_program *of);

/* Runs and waits, if there is something to run. Parts run eagerly the first time, and only then. */
int onnx_program_run(const onnx_program *of, bool eager);

/* How many outputs there are: with elements of sequences. */
size_t onnx_program_outputs(const onnx_program *of);

/* Reads an output, with its name. The tensor has no type, and no data, if programs do not have the type: `is_shown` is
 * then false. The caller destroys it. */
typedef struct onnx_output {
  const char *name, *type_name;
  size_t value_index, element_index; /* as of rondo_onnx_built_value */
  bool is_shown;
  host_tensor tensor;
} onnx_output;
int onnx_program_read_output(const onnx_program *of, size_t index, onnx_output *out);

/* Writes an output that was read to FOLDER/NAME.npy, if it has data. The folder is made if it does not exist. */
int onnx_program_write_output(const onnx_program *of, size_t index, const onnx_output *output, const char *folder);

/* NULL: not. */
bool onnx_program_is_cuda(const rondo_device *device);

int onnx_program_destroy(onnx_program *of);

/* The name of a file for a value: characters other than letters, digits, '.', '_' and '-' become '_'. */
#define ONNX_FILE_NAME 256
const char *onnx_file_name(const char *value, char out[ONNX_FILE_NAME]);

/* Finds the file of an input or output ("input", "output") in a folder: NAME.npy or input_INDEX.pb. Returns whether
 * there is one. */
#define ONNX_PATH 4096
bool onnx_find_file(const char *folder, const char *kind, const char *name, size_t index, char out[ONNX_PATH]);

/* "float", "optional(sequence(float))". */
#define ONNX_TYPE_TEXT 128
const char *onnx_write_type(const rondo_onnx_value *value, char out[ONNX_TYPE_TEXT]);

/* "[batch, 3, ?, 224]": dynamic dimensions by their names; those of elements of sequences. */
const char *onnx_write_dimensions(const rondo_onnx_value *value, char out[SHAPE_TEXT]);

/* Writes members that several commands have: the model with its times, and its memory. */
void onnx_program_to_json(const onnx_program *of, json *out);

#endif
