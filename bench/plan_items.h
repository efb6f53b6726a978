/* SPDX-License-Identifier: MIT
 * Lifetimes for the benchmarks of planning and of graph memory: random items, a training step of layers, inference of
 * layers, a training step of blocks, inference of a chain, or the lines `id,lower,upper,size` of a CSV with a header,
 * as in the MiniMalloc benchmark. An error ends the program.
 */
#ifndef RONDO_BENCH_PLAN_ITEMS_H
#define RONDO_BENCH_PLAN_ITEMS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/plan.h>

#include "../tools/rondo/common/random_numbers.h"

typedef struct input {
  const char *name;
  rondo_plan_item *items;
  size_t count, capacity;
} input;

static inline uint64_t random_below(uint64_t *state, uint64_t bound) { return draw_next(state) % bound; }

/* Every range from a power of two to the next, from 512 bytes on, is equally likely. */
static inline size_t random_bytes(uint64_t *state, unsigned doublings) {
  const size_t least = (size_t)512 << random_below(state, doublings);
  return least + 512 * (size_t)random_below(state, least / 512);
}

static inline void add(input *in, size_t bytes, uint32_t lower, uint32_t upper) {
  if (in->count == in->capacity) {
    in->capacity = in->capacity == 0 ? 1024 : 2 * in->capacity;
    in->items = realloc(in->items, in->capacity * sizeof *in->items);
    if (in->items == NULL) exit(EXIT_FAILURE);
  }
  in->items[in->count++] = (rondo_plan_item){.bytes = bytes, .lower = lower, .upper = upper};
}

/* Generators ------------------------------------------------------------------------------------------------------- */

/* Each statement draws once, because the arguments of a call are evaluated in any order. */

static inline void make_random(input *in, size_t items, uint64_t state) {
  for (size_t i = 0; i < items; i++) {
    const uint32_t lower = (uint32_t)random_below(&state, items);
    const uint32_t longest = (uint32_t)1 << random_below(&state, 12);
    const uint32_t upper = lower + 1 + (uint32_t)random_below(&state, longest);
    add(in, random_bytes(&state, 12), lower, upper);
  }
}

/* A layer keeps what its backward pass needs; both passes use workspaces; gradients of weights live until the
 * optimizer, which updates layer by layer after the backward pass. */
static inline void make_training(input *in, size_t items, uint64_t state) {
  const uint32_t layers = (uint32_t)(items / 8);
  const uint32_t back = 4 * layers;
  for (uint32_t layer = 0; layer < layers; layer++) {
    const uint32_t forward = 4 * layer;
    const uint32_t backward = back + 4 * (layers - 1 - layer);
    const size_t width = 512 * (64 + (size_t)random_below(&state, 4) * 64);
    for (int kept = 0; kept < 3; kept++) add(in, width * (1 + random_below(&state, 4)), forward + 1, backward + 3);
    add(in, width * 4, forward, forward + 3);
    add(in, width * (1 + random_below(&state, 8)), forward + 2, forward + 4);
    add(in, width * 4, backward, backward + 4);
    add(in, width * (1 + random_below(&state, 8)), backward + 1, backward + 3);
    add(in, random_bytes(&state, 10), backward + 2, 2 * back + layer + 1);
  }
}

/* Short lifetimes in a chain, some that skip layers, and blocks of branches that are joined. */
static inline void make_inference(input *in, size_t items, uint64_t state) {
  for (uint32_t step = 0; in->count < items; step += 8) {
    const size_t width = 512 * (1 + (size_t)random_below(&state, 4096));
    add(in, width, step, step + 9);
    for (uint32_t branch = 0; branch < 3; branch++) {
      add(in, width * (1 + random_below(&state, 4)), step + 1 + branch, step + 4 + branch);
      add(in, random_bytes(&state, 8), step + 2 + branch, step + 8);
    }
    if (random_below(&state, 4) == 0) add(in, width, step, step + 8 * (2 + (uint32_t)random_below(&state, 16)));
  }
}

/* A training step of blocks with several operators, as in large models: weights that live for the whole step, many of
 * them tiny; activations that live until their backward operator; large workspaces for a few steps, mainly where the
 * backward pass begins; gradients that live until the optimizer. Few steps are crowded, and they decide the plan. */
static inline void make_blocks(input *in, size_t items, uint64_t state) {
  const uint32_t blocks = (uint32_t)(items / 40);
  const uint32_t passes = 20 * blocks;
  const uint32_t end = 3 * passes;
  for (uint32_t block = 0; block < blocks; block++) {
    const size_t width = 512 * (48 + 16 * (size_t)random_below(&state, 6)) + 1;
    for (uint32_t op = 0; op < 5; op++) {
      const uint32_t forward = 10 * block + 2 * op;
      const uint32_t backward = 2 * passes - 10 * block - 2 * op;
      add(in, 1 + (size_t)random_below(&state, 64) * 16, 0, end); /* a bias and its moments */
      add(in, width * (1 + random_below(&state, 3)), forward + 1, backward);
      add(in, width / (2 + random_below(&state, 7)), forward, backward - 1);
      const uint32_t forward_end = forward + 2 + (uint32_t)random_below(&state, 4);
      add(in, width * (8 + random_below(&state, 24)), forward, forward_end);
      const uint32_t backward_end = backward + (uint32_t)random_below(&state, 4);
      add(in, width * (8 + random_below(&state, 24)), backward - 2, backward_end);
      const uint32_t gradient_end = backward + 2 + (uint32_t)random_below(&state, 9);
      add(in, width * (2 + random_below(&state, 4)), backward, gradient_end);
      add(in, random_bytes(&state, 6), backward - 1, 2 * passes + 2 * block + 2);
      add(in, 1 + (size_t)random_below(&state, 900), forward, backward + 2);
    }
  }
  for (uint32_t i = 0; i < 24; i++) { /* the loss and what follows it */
    const uint32_t first = 10 * blocks - 12 + i + (uint32_t)random_below(&state, 3);
    const size_t large = 512 * (size_t)blocks * (64 + 32 * (size_t)random_below(&state, 6));
    add(in, large, first, first + 2 + (uint32_t)random_below(&state, 5));
    add(in, large / 8, first, 2 * passes - 10 * (uint32_t)random_below(&state, blocks));
  }
}

/* Inference of a long chain of layers: a value lives for a few layers, a few values are read by a much later layer, and
 * sizes of many magnitudes are equally likely. */
static inline void make_chain(input *in, size_t items, uint64_t state) {
  for (uint32_t layer = 0; in->count < items; layer++) {
    const uint64_t made = 1 + random_below(&state, 4);
    for (uint64_t i = 0; i < made; i++) {
      const uint32_t end = layer + 2 + (uint32_t)random_below(&state, 20);
      add(in, random_bytes(&state, 8), layer, end);
    }
    if (random_below(&state, 50) == 0) {
      const uint32_t end = layer + 2 + (uint32_t)random_below(&state, 5000);
      add(in, random_bytes(&state, 8), layer, end);
    }
  }
}

typedef struct generator {
  const char *name;
  void (*make)(input *in, size_t items, uint64_t seed);
  uint64_t seed;
} generator;

enum { GENERATORS = 5 };
static const generator generators[GENERATORS] = {{"random", make_random, 1},
                                                 {"training", make_training, 2},
                                                 {"inference", make_inference, 3},
                                                 {"blocks", make_blocks, 4},
                                                 {"chain", make_chain, 1}};

/* Files ------------------------------------------------------------------------------------------------------------ */

/* The items of a CSV; the name of the input is that of the file. */
static inline input open_file(const char *path) {
  char line[256];
  const char *slash = strrchr(path, '/');
  input in = {.name = slash == NULL ? path : slash + 1};
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(EXIT_FAILURE);
  }
  while (fgets(line, sizeof line, file) != NULL) {
    uint32_t lower = 0, upper = 0;
    size_t bytes = 0;
    if (sscanf(line, "%*[^,],%" SCNu32 ",%" SCNu32 ",%zu", &lower, &upper, &bytes) == 3) add(&in, bytes, lower, upper);
  }
  fclose(file);
  return in;
}

#endif
