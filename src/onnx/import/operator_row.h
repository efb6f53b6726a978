/* SPDX-License-Identifier: MIT
 * The table of ONNX's operators, in families (onnx/operators/). A row says from which operator set to which it holds,
 * and which function adds the operator of a node to the program.
 */
#ifndef RONDO_ONNX_IMPORT_OPERATOR_ROW_H
#define RONDO_ONNX_IMPORT_OPERATOR_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rondo/status.h>

typedef struct rondo_onnx_node rondo_onnx_node;

/* Reads the node's attributes and inputs, adds operators, and sets all results (import_node.h). `data` is that of the
 * row. What it cannot do, it refuses with UNSUPPORTED or INVALID_ARGUMENT; it is then reported with the node. Other
 * errors end the import. It may be called twice for a node, with different programs. */
typedef rondo_status (*rondo_onnx_handler)(rondo_onnx_node *node, const void *data);

#define RONDO_ONNX_ANY_NUMBER 255

typedef struct rondo_onnx_row {
  const char *name;
  int first_opset, last_opset;             /* last 0: the newest */
  unsigned char least_inputs, most_inputs; /* the first `least` may not be left out; ANY_NUMBER: none may, and there is
                                              at least one. Most: or ANY_NUMBER */
  unsigned char flags;                     /* rondo_onnx_row_flag */
  rondo_onnx_handler handler;
  const void *data;
} rondo_onnx_row;

typedef enum rondo_onnx_row_flag {
  RONDO_ONNX_ROW_ONCE = 1,    /* the handler imports graphs, or handles values of any kind: it is called once */
  RONDO_ONNX_ROW_COUNTED = 2, /* input 0 may have a size that depends on data: the handler keeps the count */
  RONDO_ONNX_ROW_WIDE = 4,    /* inputs may have types that programs lack, and are held in wider ones; a result of such
                                 a wider type that is set without a type has the type of the first of these inputs */
  RONDO_ONNX_ROW_MERGED = 8,  /* element-wise: the shape of the result is that of all inputs, broadcast, and they may
                                 have more dimensions than values of programs */
} rondo_onnx_row_flag;

typedef struct rondo_onnx_family {
  const char *domain;
  const rondo_onnx_row *rows;
  size_t count;
} rondo_onnx_family;

/* The row of an operator in an operator set. Errors: UNSUPPORTED, saying whether the operator or this version of it is
 * missing. */
RONDO_MUST_USE rondo_status rondo_onnx_find_row(const char *domain, const char *name, int64_t opset,
                                                const rondo_onnx_row **out);

#endif
