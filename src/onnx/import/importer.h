/* SPDX-License-Identifier: MIT
 * The state of one import, from rondo_onnx_build_program's begin to its end. What lives as long as the result (texts,
 * shapes) is memory of `kept`. Elements of constants that become weights belong to the set of weights. Copies of
 * elements of the file that cannot stay there, which the caller may free earlier, are memory of build->elements.
 * Everything else is memory of `scratch`.
 *
 * Names of values are those of the open scopes: the main graph, and graphs of If, Loop and Scan inside it. A call of a
 * function has names of its own. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_IMPORTER_H
#define RONDO_ONNX_IMPORT_IMPORTER_H

#include "onnx/format/name_table.h"
#include "onnx/format/onnx_model.h"
#include "onnx/import/import_value.h"
#include "onnx/import/input_list.h"
#include "tensor/program/program_internal.h"

/* The dimensions of an input or output of the model that come first in the program, in this order. */
typedef struct rondo_onnx_row_dimensions {
  size_t rows, length; /* RONDO_ONNX_NO_DIMENSION: none */
} rondo_onnx_row_dimensions;
#define RONDO_ONNX_NO_DIMENSION SIZE_MAX

/* What a program has in common with those of other numbers of rows, in a session, or of other forms, in a tree. */
typedef struct rondo_onnx_sharing {
  const rondo_weights *states;         /* the only ones that it may have: other constants, such as numbers of rows, are
                                          constants of the program; NULL: any */
  const rondo_onnx_input_list *listed; /* the inputs; they live longer than the result */
  const rondo_onnx_row_dimensions *inputs;  /* by the same indices: dimensions that move; NULL: none */
  const rondo_onnx_row_dimensions *outputs; /* by index in the model: likewise */
  bool divides;                        /* the program is that of a part where the model must be cut (model_part.h); */
  const rondo_onnx_model_part *before; /* ... the part before it; NULL: it is the first, */
  const void *known;                   /* ... and the values of the cuts of that part, with cut_bytes bytes */
} rondo_onnx_sharing;

/* Where nodes are: in the model's graphs, or in a function that a node calls. */
typedef struct rondo_onnx_scope {
  const RondoOnnx__Function *function;  /* NULL: the model's graphs */
  const RondoOnnx__Node *call;          /* the node that calls the function, */
  const struct rondo_onnx_scope *outer; /* which is in this scope */
} rondo_onnx_scope;

/* Where an import is, among what it traces (model_part.h). */
typedef struct rondo_onnx_trace {
  struct rondo_onnx_traced_graph *graph;         /* NULL: the model is not divided, or no node was imported */
  const struct rondo_onnx_traced_graph *earlier; /* the same graph in the part before; NULL: that did not come here */
  size_t node;
  struct rondo_onnx_traced_graph *last_child;       /* of the node, */
  const struct rondo_onnx_traced_graph *next_child; /* ... and the next one of it in the part before */
} rondo_onnx_trace;

/* Why the current node is refused: it needs to know a value, or the count of it. */
typedef struct rondo_onnx_need {
  bool is_set, is_count;
  rondo_onnx_handed *handed; /* NULL: the model is not divided */
} rondo_onnx_need;

typedef struct rondo_onnx_importer {
  const rondo_onnx_model *model;
  const rondo_onnx_build_options *options;
  rondo_program *program;
  rondo_onnx_build *build; /* what the caller gets */
  rondo_allocator allocator;
  rondo_scratch scratch;
  rondo_scratch *kept;
  rondo_onnx_data_source source; /* of the model's tensors */
  size_t kept_bytes;             /* of constants */
  uint64_t folded_work;          /* bytes that folding programs computed or copied, for the limit */
  rondo_onnx_elements *elements; /* the last of those that were made */

  const rondo_onnx_scope *scope;
  rondo_onnx_name_table names;
  RONDO_ARRAY(rondo_onnx_import_value) values; /* by the indices in `names` */
  size_t nodes, node_values;                   /* that were imported, and their inputs and outputs, for limits */

  rondo_onnx_name_table reader_names;  /* of the model's graphs: how often nodes and outputs read a name, */
  RONDO_ARRAY(uint32_t) reader_counts; /* by the indices in `reader_names` */

  rondo_onnx_input_list listed;    /* the inputs, */
  rondo_onnx_import_input *inputs; /* ... by the same indices */
  size_t input_count;
  RONDO_ARRAY(rondo_onnx_constant *) states; /* constants that became states of the program */
  const rondo_onnx_sharing *sharing;         /* NULL: the program is for itself */

  rondo_onnx_model_part *part; /* that is imported; NULL: the model is not divided */
  rondo_onnx_trace trace;
  rondo_onnx_need need;
  rondo_onnx_import_value *input_values;                /* of a divided model, by the indices in `listed` */
  RONDO_ARRAY(rondo_onnx_import_input *) handed_inputs; /* of earlier parts, that nodes of this one may read */

  rondo_device *device;             /* that folds; NULL: not opened yet */
  rondo_onnx_folding *foldings[2];  /* to which operators are added, of large constants the second; NULL: the next one
                                       begins another */
  rondo_onnx_folding *last_folding; /* all, as a list */
} rondo_onnx_importer;

/* As rondo_onnx_build_program. `sharing` may be NULL. */
RONDO_MUST_USE rondo_status rondo_onnx_build_sharing(const rondo_onnx_model *model,
                                                     const rondo_onnx_build_options *options,
                                                     const rondo_onnx_sharing *sharing, rondo_program *program,
                                                     rondo_onnx_build **out_build);

#endif
