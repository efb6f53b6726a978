/* SPDX-License-Identifier: MIT
 * What the functions of operators (onnx/operators/) use: a node with its inputs and results. Its operators are added
 * to the model's program, or, if all inputs are constants, to a folding program; a function does not see which.
 *
 * Ask for the values of constants before operands: computing one ends the current folding program.
 * Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_IMPORT_NODE_H
#define RONDO_ONNX_IMPORT_IMPORT_NODE_H

#include "onnx/import/importer.h"
#include "onnx/import/operator_row.h"

struct rondo_onnx_node {
  rondo_onnx_importer *importer;
  const RondoOnnx__Node *message;
  const rondo_onnx_row *row;
  int64_t opset;
  bool folds;                                /* operators are added to `folding` */
  rondo_onnx_folding *folding;               /* NULL: not opened yet */
  uint64_t given;                            /* of its constants (rondo_onnx_constant.given) */
  rondo_onnx_import_value *inputs, *outputs; /* as many as the message has; one that is left out is NOTHING */
  uint64_t read_attributes;                  /* bit i: attribute i of the message */
  const char *refused_attribute;             /* the reason of a refusal; NULL: none */
  bool is_unknown; /* its results are unknown: it cannot be imported, or others that it depends on cannot, or nodes in
                      its graphs. They are reported, or come after a cut */
};

/* Refusals -------------------------------------------------------------------------------------------------------- */

/* UNSUPPORTED with this reason, which follows the node's name. The second is about an attribute. */
rondo_status rondo_onnx_refuse(rondo_onnx_node *node, const char *format, ...) RONDO_PRINTF(2, 3);
rondo_status rondo_onnx_refuse_attribute(rondo_onnx_node *node, const char *attribute, const char *format, ...)
    RONDO_PRINTF(3, 4);

/* Inputs ---------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_input_count(const rondo_onnx_node *node);
bool rondo_onnx_has_input(const rondo_onnx_node *node, size_t index);
/* The shape of an input, which is there. */
const rondo_onnx_shape *rondo_onnx_input_shape(const rondo_onnx_node *node, size_t index);
/* UNSUPPORTED if the size of an input depends on data, and the row cannot have such inputs. */
RONDO_MUST_USE rondo_status rondo_onnx_check_counted(rondo_onnx_node *node, size_t index);
bool rondo_onnx_is_constant(const rondo_onnx_node *node, size_t index);

/* An input as a value of the program. Its shape has no size 0. Types that programs lack are held in wider ones if the
 * row has RONDO_ONNX_ROW_WIDE. Errors: UNSUPPORTED (a type or rank that programs do not have). */
RONDO_MUST_USE rondo_status rondo_onnx_operand(rondo_onnx_node *node, size_t index, rondo_value *out);

/* The same with any number of dimensions, in this shape of as many elements. */
RONDO_MUST_USE rondo_status rondo_onnx_operand_as(rondo_onnx_node *node, size_t index, const size_t *dims, size_t rank,
                                                  rondo_value *out);

/* The same of a constant that the function made itself. */
RONDO_MUST_USE rondo_status rondo_onnx_constant_operand(rondo_onnx_node *node, rondo_onnx_constant *constant,
                                                        rondo_value *out);

/* A held constant: for inputs that decide what is imported. Errors: UNSUPPORTED if its value is not known at import. */
RONDO_MUST_USE rondo_status rondo_onnx_known_input(rondo_onnx_node *node, size_t index,
                                                   const rondo_onnx_constant **out);

/* The same of a value that is no input of the node; messages call it `name`. */
RONDO_MUST_USE rondo_status rondo_onnx_known_value(rondo_onnx_node *node, const rondo_onnx_import_value *value,
                                                   const char *name, const rondo_onnx_constant **out);

/* The same for integers of any type, and for numbers of any type; *out is the scratch's. */
RONDO_MUST_USE rondo_status rondo_onnx_known_integers(rondo_onnx_node *node, size_t index, const int64_t **out,
                                                      size_t *out_count);
RONDO_MUST_USE rondo_status rondo_onnx_known_numbers(rondo_onnx_node *node, size_t index, const double **out,
                                                     size_t *out_count);

/* The program to which the node's operators are added. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_node_program(rondo_onnx_node *node, rondo_program **out);

/* How many results there is memory for, of an operator that can select `most`: these, or the bound of the options. */
size_t rondo_onnx_bound_of(const rondo_onnx_node *node, size_t most);

/* Results --------------------------------------------------------------------------------------------------------- */

size_t rondo_onnx_output_count(const rondo_onnx_node *node);
bool rondo_onnx_wants_output(const rondo_onnx_node *node, size_t index);

/* Set a result, which may be one that the model does not use: a value of the program; the same with the type that the
 * model gives it, where F32 stands for double; a constant; one without elements, of this shape; an input itself. */
RONDO_MUST_USE rondo_status rondo_onnx_set_result(rondo_onnx_node *node, size_t index, rondo_value value);
RONDO_MUST_USE rondo_status rondo_onnx_set_typed(rondo_onnx_node *node, size_t index, rondo_value value,
                                                 rondo_onnx_type type);
/* A result of the type in which `type` is held, which is rounded to the numbers that it has. */
RONDO_MUST_USE rondo_status rondo_onnx_set_fitted(rondo_onnx_node *node, size_t index, rondo_value value,
                                                  rondo_onnx_type type);
/* A result with as many indices of dimension `axis` as memory is for, of which the first `count`, an integer of the
 * program, are used; and the count of input 0, if it has one, for result 0. */
RONDO_MUST_USE rondo_status rondo_onnx_set_counted(rondo_onnx_node *node, size_t index, rondo_value value,
                                                   rondo_onnx_type type, size_t axis, rondo_value count);
void rondo_onnx_keep_count(rondo_onnx_node *node, size_t axis);
/* A result of this shape, which may have more dimensions than values of programs; the value has as many elements. */
RONDO_MUST_USE rondo_status rondo_onnx_set_shaped(rondo_onnx_node *node, size_t index, rondo_value value,
                                                  const rondo_onnx_shape *shape);
void rondo_onnx_set_constant(rondo_onnx_node *node, size_t index, rondo_onnx_constant *constant);
RONDO_MUST_USE rondo_status rondo_onnx_set_empty(rondo_onnx_node *node, size_t index, const rondo_onnx_shape *shape);
void rondo_onnx_set_input(rondo_onnx_node *node, size_t index, size_t input);
void rondo_onnx_set_value(rondo_onnx_node *node, size_t index, const rondo_onnx_import_value *value);

/* A node inside another one, for operators that consist of several: it has these inputs and one output, outputs[0] of
 * it, and folds if they all are constants. */
typedef struct rondo_onnx_inner_node {
  rondo_onnx_node node;
  RondoOnnx__Node message;
  rondo_onnx_import_value output;
} rondo_onnx_inner_node;

RONDO_MUST_USE rondo_status rondo_onnx_inner_begin(const rondo_onnx_node *node, rondo_onnx_import_value *inputs,
                                                   size_t count, rondo_onnx_inner_node *out);

/* Its output as a value of the outer node's program. */
RONDO_MUST_USE rondo_status rondo_onnx_inner_operand(rondo_onnx_node *node, const rondo_onnx_inner_node *inner,
                                                     rondo_value *out);

/* Sizes ----------------------------------------------------------------------------------------------------------- */

/* An axis of `rank` dimensions, which counts from the end if it is negative. Errors: INVALID_ARGUMENT/OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo_onnx_axis(int64_t axis, size_t rank, size_t *out);

/* The shape of several shapes that are broadcast as in NumPy, with the type of the first. Errors:
 * INVALID_ARGUMENT/SHAPE.
 */
RONDO_MUST_USE rondo_status rondo_onnx_broadcast(const rondo_onnx_shape *const *shapes, size_t count,
                                                 rondo_onnx_shape *out);

/* Reshapes a value of the node's program; returns it unchanged if it has the shape. */
RONDO_MUST_USE rondo_status rondo_onnx_reshape(rondo_onnx_node *node, rondo_value value, const size_t *dims,
                                               size_t rank, rondo_value *out);

#endif
