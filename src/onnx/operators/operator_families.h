/* SPDX-License-Identifier: MIT
 * The families of operators. Each is the table of one file; operator_families.c lists them.
 */
#ifndef RONDO_ONNX_OPERATORS_OPERATOR_FAMILIES_H
#define RONDO_ONNX_OPERATORS_OPERATOR_FAMILIES_H

#include "onnx/import/operator_row.h"

extern const rondo_onnx_family rondo_onnx_attention;      /* onnx_attention.c */
extern const rondo_onnx_family rondo_onnx_classical;      /* onnx_classical.c */
extern const rondo_onnx_family rondo_onnx_constants;      /* onnx_constants.c */
extern const rondo_onnx_family rondo_onnx_control_flow;   /* onnx_control_flow.c */
extern const rondo_onnx_family rondo_onnx_convolution;    /* onnx_convolution.c */
extern const rondo_onnx_family rondo_onnx_data_dependent; /* onnx_data_dependent.c */
extern const rondo_onnx_family rondo_onnx_dropout;        /* onnx_dropout.c */
extern const rondo_onnx_family rondo_onnx_elementwise;    /* onnx_elementwise.c */
extern const rondo_onnx_family rondo_onnx_flex_attention; /* onnx_flex_attention.c */
extern const rondo_onnx_family rondo_onnx_indexing;       /* onnx_indexing.c */
extern const rondo_onnx_family rondo_onnx_losses;         /* onnx_losses.c */
extern const rondo_onnx_family rondo_onnx_ngrams;         /* onnx_ngrams.c */
extern const rondo_onnx_family rondo_onnx_normalization;  /* onnx_normalization.c */
extern const rondo_onnx_family rondo_onnx_pooling;        /* onnx_pooling.c */
extern const rondo_onnx_family rondo_onnx_products;       /* onnx_products.c */
extern const rondo_onnx_family rondo_onnx_quantization;   /* onnx_quantization.c */
extern const rondo_onnx_family rondo_onnx_rearrangement;  /* onnx_rearrangement.c */
extern const rondo_onnx_family rondo_onnx_recurrent;      /* onnx_recurrent.c */
extern const rondo_onnx_family rondo_onnx_reductions;     /* onnx_reductions.c */
extern const rondo_onnx_family rondo_onnx_resize;         /* onnx_resize.c */
extern const rondo_onnx_family rondo_onnx_sampling;       /* onnx_sampling.c */
extern const rondo_onnx_family rondo_onnx_sequences;      /* onnx_sequences.c */
extern const rondo_onnx_family rondo_onnx_shapes;         /* onnx_shapes.c */
extern const rondo_onnx_family rondo_onnx_signal;         /* onnx_signal.c */
extern const rondo_onnx_family rondo_onnx_state_space;    /* onnx_state_space.c */

/* Defines a family of ONNX's own domain, whose table is `rows`. */
#define RONDO_ONNX_FAMILY(name, table) \
  const rondo_onnx_family name = {.domain = "", .rows = (table), .count = sizeof(table) / sizeof *(table)}

#endif
