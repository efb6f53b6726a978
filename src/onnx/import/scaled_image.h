/* SPDX-License-Identifier: MIT
 * Convolutions and images that are multiplied by a factor for each channel, plus an offset: batch normalization with
 * known statistics, and products and sums with one number for each channel. They are added to the program when they are
 * first read. Until then, a node that alone reads one can scale it further, and the weights and the bias of a
 * convolution are scaled here, once, and not in each run.
 *
 * Only FLOAT and only in the model's own graphs, not in functions. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_SCALED_IMAGE_H
#define RONDO_ONNX_IMPORT_SCALED_IMAGE_H

#include <rondo/operators.h>

#include "onnx/import/import_node.h"

/* Counts how often the nodes and outputs of the model read each name. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_count_readers(rondo_onnx_importer *importer);
void rondo_onnx_free_readers(rondo_onnx_importer *importer);

/* Makes result 0 a convolution of x that is added later, if the weights (input 1) and the bias (input 2) are constants.
 * Otherwise nothing changes, and *out_is_made is false. */
RONDO_MUST_USE rondo_status rondo_onnx_make_scaled_conv(rondo_onnx_node *node, const rondo_conv_options *options,
                                                        rondo_value x, bool *out_is_made);

/* Makes result 0 input 0 with the batch normalization of the constants that are inputs 1 to 4; likewise. */
RONDO_MUST_USE rondo_status rondo_onnx_make_scaled_norm(rondo_onnx_node *node, float epsilon, bool *out_is_made);

/* Makes result 0 the product or the sum of a scaled image, which nothing else reads, and a constant with a number for
 * each channel; likewise. */
RONDO_MUST_USE rondo_status rondo_onnx_make_scaled_product(rondo_onnx_node *node, bool *out_is_made);
RONDO_MUST_USE rondo_status rondo_onnx_make_scaled_sum(rondo_onnx_node *node, bool *out_is_made);

/* The image as a value of the model's program. */
RONDO_MUST_USE rondo_status rondo_onnx_add_scaled(rondo_onnx_importer *importer, rondo_onnx_scaled_image *image,
                                                  rondo_value *out);

#endif
