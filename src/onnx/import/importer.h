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

/* What a program has in common with those of other numbers of rows, in a session, or of other forms, in a tree. */
typedef struct rondo_onnx_sharing {
  const rondo_weights *states;         /* the only ones that it may have: other constants, such as numbers of rows, are
                                          constants of the program; NULL: any */
  const rondo_onnx_input_list *listed; /* the inputs; they live longer than the result */
  const size_t *input_rows;            /* by the same indices: the dimension that is the first one in the program */
  const size_t *output_rows;           /* by index in the model: likewise; NULL for both: no dimension moves */
} rondo_onnx_sharing;

/* Where nodes are: in the model's graphs, or in a function that a node calls. */
typedef struct rondo_onnx_scope {
  const RondoOnnx__Function *function;  /* NULL: the model's graphs */
  const RondoOnnx__Node *call;          /* the node that calls the function, */
  const struct rondo_onnx_scope *outer; /* which is in this scope */
} rondo_onnx_scope;

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

  rondo_device *device;             /* that folds; NULL: not opened yet */
  rondo_onnx_folding *folding;      /* to which operators are added; NULL: the next one begins another */
  rondo_onnx_folding *last_folding; /* all, as a list */
} rondo_onnx_importer;

/* As rondo_onnx_build_program. `sharing` may be NULL. */
RONDO_MUST_USE rondo_status rondo_onnx_build_sharing(const rondo_onnx_model *model,
                                                     const rondo_onnx_build_options *options,
                                                     const rondo_onnx_sharing *sharing, rondo_program *program,
                                                     rondo_onnx_build **out_build);

#endif
