/* SPDX-License-Identifier: MIT
 * The networks that `rondo serve` and `rondo session plan` serve, and requests for them. "recommender" (Naumov et al.,
 * Deep Learning Recommendation Model for Personalization and Recommendation Systems, 2019): 13 numbers pass layers of
 * 512, 256, 64 and 16; 26 ids are looked up in tables with rows of 16; the dot products of all pairs of the 27 vectors
 * pass layers of 512, 256 and 1, which give a score. "dense": the same with the looked-up rows as an input.
 */
#ifndef RONDO_TOOL_RECOMMENDER_H
#define RONDO_TOOL_RECOMMENDER_H

#include <rondo/rondo.h>

enum { RECOMMENDER_NUMBERS = 13, RECOMMENDER_TABLES = 26, RECOMMENDER_WIDTH = 16 };

typedef struct recommender {
  bool has_tables;
  size_t table_rows;
} recommender;

/* Finds a network by name; returns false if there is none. */
bool recommender_find(const char *name, recommender *out);

/* A rondo_model_build callback; `user` is the recommender. */
rondo_status recommender_build(void *user, size_t rows, rondo_program *program);

/* Creates states with random values from the seed. The caller destroys them. */
rondo_status recommender_weights(const recommender *model, uint64_t seed, rondo_weights **out);

/* Random inputs for up to `rows` rows. One object serves all requests with that many rows or fewer. */
typedef struct recommender_inputs {
  rondo_device *device; /* allocates the host memory, from which the device copies */
  float *numbers;
  void *looked_up; /* ids, or vectors */
  const void *inputs[2];
} recommender_inputs;

/* Returns TOOL_OK, or TOOL_FAILURE after a message. Destroy the inputs before closing the device. */
int recommender_inputs_create(const recommender *model, rondo_device *device, size_t rows, uint64_t seed,
                              recommender_inputs *out);
/* Pointers to the inputs from row `first` on, in the form of a request. */
void recommender_inputs_from(const recommender *model, const recommender_inputs *inputs, size_t first,
                             const void *out[2]);
int recommender_inputs_destroy(recommender_inputs *inputs);

#endif
