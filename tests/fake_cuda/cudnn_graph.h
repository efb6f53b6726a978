/* SPDX-License-Identifier: MIT
 * What the fake cuDNN makes of graphs of products, convolutions, pointwise operations, reductions and reshapes: it
 * computes one operation after the other, so attention is right only if Rondo's description of it is. A tensor has a
 * buffer for all that its strides reach; what is not F32 is rounded whenever it is written. Header only, as the library
 * is one source.
 */
#ifndef RONDO_TESTS_FAKE_CUDNN_GRAPH_H
#define RONDO_TESTS_FAKE_CUDNN_GRAPH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/operators/common/element.h"
#include "tensor/vendor/cudnn_abi.h"

enum { GRAPH_RANK = 4, GRAPH_OPERATIONS = 32, GRAPH_TENSORS = 64, GRAPH_PACKED = 24 };

typedef struct graph_tensor {
  int64_t number, sizes[GRAPH_RANK], strides[GRAPH_RANK];
  int type;
  bool is_virtual, is_value;
} graph_tensor;

/* Tensors by index in the graph; -1: none. kind: of the operation's descriptor. */
typedef struct graph_operation {
  int kind, mode;
  int64_t axis;
  int64_t stride[2], before[2], dilation[2]; /* of a convolution, whose weights are b */
  int x, b, t, y;
} graph_operation;

typedef struct operation_graph {
  size_t uses; /* descriptors that have it */
  graph_tensor tensors[GRAPH_TENSORS];
  graph_operation operations[GRAPH_OPERATIONS];
  int tensor_count, operation_count;
} operation_graph;

/* What the kernel gets. */
typedef struct graph_run {
  const operation_graph *graph;
  int64_t numbers[GRAPH_PACKED];
  void *addresses[GRAPH_PACKED];
  int64_t count;
} graph_run;

typedef int64_t graph_place[GRAPH_RANK];

static rondo_type graph_type(int type) {
  return type == CUDNN_F16 ? RONDO_F16 : type == CUDNN_BF16 ? RONDO_BF16 : RONDO_F32;
}

static size_t graph_extent(const graph_tensor *t) {
  int64_t last = 0;
  for (int i = 0; i < GRAPH_RANK; i++) last += (t->sizes[i] - 1) * t->strides[i];
  return (size_t)last + 1;
}

/* Where the element lies; dimensions of size 1 are broadcast, and several heads may share one. */
static size_t graph_offset(const graph_tensor *t, const graph_tensor *like, const graph_place place) {
  int64_t offset = 0;
  for (int i = 0; i < GRAPH_RANK; i++) {
    const int64_t shared = like->sizes[i] / t->sizes[i];
    offset += (t->sizes[i] == 1 ? 0 : i == 1 ? place[i] / shared : place[i]) * t->strides[i];
  }
  return (size_t)offset;
}

/* The loop over the elements of a tensor. */
static bool graph_next(const graph_tensor *t, graph_place place) {
  for (int i = GRAPH_RANK - 1; i >= 0; i--) {
    if (++place[i] < t->sizes[i]) return true;
    place[i] = 0;
  }
  return false;
}

static float graph_rounded(const graph_tensor *t, float x) {
  uint16_t room = 0;
  if (graph_type(t->type) == RONDO_F32) return x;
  rondo_store_one(graph_type(t->type), &room, 0, x);
  return rondo_load_one(graph_type(t->type), &room, 0);
}

static float graph_apply(const graph_operation *o, const graph_place place, float x, float b, float t) {
  switch (o->mode) {
    case CUDNN_ADD:
      return x + b;
    case CUDNN_MUL:
      return x * b;
    case CUDNN_DIV:
      return x / b;
    case CUDNN_SUB:
      return x - b;
    case CUDNN_EXP:
      return expf(x);
    case CUDNN_LOG:
      return logf(x);
    case CUDNN_RELU:
      return x < 0 ? 0 : x; /* keeps NaN */
    case CUDNN_GREATER:
      return x > b ? 1 : 0;
    case CUDNN_GREATER_OR_EQUAL:
      return x >= b ? 1 : 0;
    case CUDNN_INDICES:
      return (float)place[o->axis];
    default:
      return t != 0 ? x : b; /* CUDNN_SELECT */
  }
}

static void graph_multiply(const operation_graph *g, const graph_operation *o, float *const *values) {
  const graph_tensor *a = &g->tensors[o->x], *b = &g->tensors[o->b], *c = &g->tensors[o->y];
  graph_place place = {0};
  do {
    graph_place left = {place[0], place[1], place[2], 0}, right = {place[0], place[1], 0, place[3]};
    float sum = 0;
    for (int64_t k = 0; k < a->sizes[3]; k++) {
      left[3] = right[2] = k;
      sum += values[o->x][graph_offset(a, c, left)] * values[o->b][graph_offset(b, c, right)];
    }
    values[o->y][graph_offset(c, c, place)] = graph_rounded(c, sum);
  } while (graph_next(c, place));
}

/* Where the element of the image lies for a tap along an axis; -1: in the padding. */
static int64_t graph_tap(const graph_tensor *x, const graph_operation *o, int axis, int64_t at, int64_t tap) {
  const int64_t in = at * o->stride[axis] + tap * o->dilation[axis] - o->before[axis];
  return in < 0 || in >= x->sizes[2 + axis] ? -1 : in * x->strides[2 + axis];
}

static float graph_window(const operation_graph *g, const graph_operation *o, float *const *values,
                          const graph_place at) {
  const graph_tensor *x = &g->tensors[o->x], *w = &g->tensors[o->b];
  const float *image = values[o->x] + at[0] * x->strides[0], *weight = values[o->b] + at[1] * w->strides[0];
  float sum = 0;
  for (int64_t i = 0; i < w->sizes[2]; i++) {
    for (int64_t j = 0; j < w->sizes[3]; j++) {
      const int64_t down = graph_tap(x, o, 0, at[2], i), across = graph_tap(x, o, 1, at[3], j);
      const float *factors = weight + i * w->strides[2] + j * w->strides[3];
      for (int64_t c = 0; c < w->sizes[1] && down >= 0 && across >= 0; c++)
        sum += image[down + across + c * x->strides[1]] * factors[c * w->strides[1]];
    }
  }
  return sum;
}

static void graph_convolve(const operation_graph *g, const graph_operation *o, float *const *values) {
  const graph_tensor *y = &g->tensors[o->y];
  graph_place place = {0};
  do {
    values[o->y][graph_offset(y, y, place)] = graph_rounded(y, graph_window(g, o, values, place));
  } while (graph_next(y, place));
}

/* Over what the result has fewer of: columns, or heads. */
static void graph_reduce(const operation_graph *g, const graph_operation *o, float *const *values) {
  const graph_tensor *x = &g->tensors[o->x], *y = &g->tensors[o->y];
  graph_place place = {0};
  float *to = values[o->y];
  for (size_t i = 0; i < graph_extent(y); i++) to[i] = o->mode == CUDNN_REDUCE_MAX ? -INFINITY : 0;
  do {
    const float from = values[o->x][graph_offset(x, x, place)];
    float *at = &to[graph_offset(y, x, place)];
    *at = o->mode == CUDNN_REDUCE_MAX ? fmaxf(*at, from) : *at + from;
  } while (graph_next(x, place));
  for (size_t i = 0; i < graph_extent(y); i++) to[i] = graph_rounded(y, to[i]);
}

static void graph_compute(const operation_graph *g, const graph_operation *o, float *const *values) {
  const graph_tensor *y = &g->tensors[o->y];
  graph_place place = {0};
  if (o->kind == CUDNN_MATMUL_OPERATION) {
    graph_multiply(g, o, values);
  } else if (o->kind == CUDNN_FORWARD) {
    graph_convolve(g, o, values);
  } else if (o->kind == CUDNN_REDUCTION_OPERATION) {
    graph_reduce(g, o, values);
  } else if (o->kind == CUDNN_RESHAPE_OPERATION) {
    for (size_t i = 0; i < graph_extent(y); i++) values[o->y][i] = graph_rounded(y, values[o->x][i]);
  } else {
    do {
      const float x = values[o->x][graph_offset(&g->tensors[o->x], y, place)];
      const float b = o->b < 0 ? 0 : values[o->b][graph_offset(&g->tensors[o->b], y, place)];
      const float t = o->t < 0 ? 0 : values[o->t][graph_offset(&g->tensors[o->t], y, place)];
      values[o->y][graph_offset(y, y, place)] = graph_rounded(y, graph_apply(o, place, x, b, t));
    } while (graph_next(y, place));
  }
}

static void *graph_address(const graph_run *run, const graph_tensor *t) {
  for (int64_t i = 0; i < run->count; i++)
    if (run->numbers[i] == t->number) return run->addresses[i];
  return NULL;
}

static float graph_load(const graph_tensor *t, const void *memory, size_t at) {
  if (t->type == CUDNN_I32) return (float)((const int32_t *)memory)[at];
  return rondo_load_one(graph_type(t->type), memory, at);
}

static bool graph_is_written(const operation_graph *g, int tensor) {
  for (int i = 0; i < g->operation_count; i++)
    if (g->operations[i].y == tensor) return true;
  return false;
}

/* The buffer of a tensor, filled from memory where the graph only reads it. */
static float *graph_buffer(const graph_run *run, int tensor) {
  const graph_tensor *t = &run->graph->tensors[tensor];
  const void *address = t->is_virtual ? NULL : graph_address(run, t);
  float *values = calloc(graph_extent(t), sizeof *values);
  if (values == NULL) abort();
  for (size_t i = 0; address != NULL && !graph_is_written(run->graph, tensor) && i < graph_extent(t); i++)
    values[i] = graph_load(t, address, i);
  return values;
}

static void graph_store(const graph_run *run, int tensor, const float *values) {
  const graph_tensor *t = &run->graph->tensors[tensor];
  graph_place place = {0};
  if (t->is_virtual || !graph_is_written(run->graph, tensor)) return;
  do {
    const size_t at = graph_offset(t, t, place);
    rondo_store_one(graph_type(t->type), graph_address(run, t), at, values[at]);
  } while (graph_next(t, place));
}

static void graph_evaluate(const graph_run *run) {
  const operation_graph *g = run->graph;
  float *values[GRAPH_TENSORS];
  for (int i = 0; i < g->tensor_count; i++) values[i] = graph_buffer(run, i);
  for (int i = 0; i < g->operation_count; i++) graph_compute(g, &g->operations[i], values);
  for (int i = 0; i < g->tensor_count; i++) graph_store(run, i, values[i]);
  for (int i = 0; i < g->tensor_count; i++) free(values[i]);
}

/* Whether the run has an address for each tensor that is stored. */
static bool graph_has_memory(const graph_run *run) {
  for (int i = 0; i < run->graph->tensor_count; i++) {
    const graph_tensor *t = &run->graph->tensors[i];
    if (!t->is_virtual && graph_address(run, t) == NULL) return false;
  }
  return true;
}

#endif
