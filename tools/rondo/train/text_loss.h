/* SPDX-License-Identifier: MIT
 * The mean loss of a model over a text that it need not have been trained on: how well it predicts each byte.
 */
#ifndef RONDO_TOOL_TEXT_LOSS_H
#define RONDO_TOOL_TEXT_LOSS_H

#include "models/model.h"

/* Reads a text as tokens of the model's vocabulary. Returns TOOL_OK, or TOOL_FAILURE after a message: also if the text
 * has a byte that the vocabulary lacks, or no more bytes than the context. */
int text_loss_load(const char *path, const language_model *model, corpus *out);

/* The mean cross-entropy over at most 16 batches of windows, at even distances. Every call with this text and a model
 * of these sizes takes the same windows. `name` is the model's, for messages. out_labels: how many bytes were
 * predicted. Returns TOOL_OK, or TOOL_FAILURE after a message. */
int text_loss_measure(const language_model *model, const rondo_weights *weights, const char *name, rondo_device *device,
                      const corpus *text, double *out_loss, size_t *out_labels);

#endif
