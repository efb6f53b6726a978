/* SPDX-License-Identifier: MIT
 * The networks that `rondo serve` and `rondo session plan` serve, and requests for them. "recommender": 13 numbers go
 * through layers of 512, 256, 64 and 16, 26 ids are looked up in tables of rows of 16, all pairs of the 27 vectors are
 * multiplied, and layers of 512, 256 and 1 make a score of that (Naumov et al., Deep Learning Recommendation Model for
 * Personalization and Recommendation Systems, 2019). "dense": the same with the looked up rows as an input.
 */
#ifndef RONDO_TOOL_RECOMMENDER_H
#define RONDO_TOOL_RECOMMENDER_H

#include <rondo/rondo.h>

enum { RECOMMENDER_NUMBERS = 13, RECOMMENDER_TABLES = 26, RECOMMENDER_WIDTH = 16 };

typedef struct recommender {
  bool has_tables;
  size_t table_rows;
} recommender;

/* By name: false when there is no such network. */
bool recommender_find(const char *name, recommender *out);

/* A rondo_model_build; `user` is the recommender. */
rondo_status recommender_build(void *user, size_t rows, rondo_program *program);

/* States drawn from the seed. The caller destroys them. */
rondo_status recommender_weights(const recommender *model, uint64_t seed, rondo_weights **out);

/* Inputs for up to so many rows, drawn from the seed; one serves all requests of no more rows. */
typedef struct recommender_inputs {
  rondo_device *device; /* the memory is the host's, and it copies from there */
  float *numbers;
  void *looked_up; /* ids, or vectors */
  const void *inputs[2];
} recommender_inputs;

/* Returns TOOL_OK, or TOOL_FAILURE after a message. The device stays open until they are destroyed. */
int recommender_inputs_create(const recommender *model, rondo_device *device, size_t rows, uint64_t seed,
                              recommender_inputs *out);
/* Those of the rows from `first` on, as a request has them. */
void recommender_inputs_from(const recommender *model, const recommender_inputs *inputs, size_t first,
                             const void *out[2]);
int recommender_inputs_destroy(recommender_inputs *inputs);

#endif
