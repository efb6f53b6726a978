/* SPDX-License-Identifier: MIT
 * The CUDA kernels of sgd.c. v and momentum are NULL without momentum.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/sparse_rows.cuh"

struct sgd_rates {
  float rate, momentum, decay, scale;
};

__device__ inline sgd_rates read_rates(float decay, const float *rate, const float *control, const float *momentum) {
  return {*rate, momentum == 0 ? 0.0f : *momentum, decay, control_factor(control)};
}

__device__ inline void sgd_one(const sgd_rates &rates, float *p, float g, float *v, size_t i) {
  float step = fmaf(rates.decay, p[i], g * rates.scale);
  if (v != 0) {
    step = fmaf(rates.momentum, v[i], step);
    v[i] = step;
  }
  p[i] = fmaf(-rates.rate, step, p[i]);
}

/* The slots of each of the joined updates of rows. */
struct joined_slots {
  row_slots of[MAX_JOINED];
};

#define PARAMETERS(i) , float *p##i, const void *g##i, float *v##i
#define PICK(i)                   \
  case i:                         \
    p = p##i, g = g##i, v = v##i; \
    break;

extern "C" __global__ void sgd(joined_table table, GATE, float decay, const float *rate, const float *control,
                               const float *momentum EACH_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  const sgd_rates rates = read_rates(decay, rate, control, momentum);
  float *p = 0, *v = 0;
  const void *g = 0;
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  switch (share.operation) { EACH_JOINED(PICK) }
  each_gradient(share.type, g, share.first, share.elements, share.stride,
                [&](size_t i, float gradient) { sgd_one(rates, p, gradient, v, i); });
}

#define ROWS_PARAMETERS(i) , const long long *keys##i, const float *values##i, float *p##i
#define ROWS_PICK(i)                              \
  case i:                                         \
    keys = keys##i, values = values##i, p = p##i; \
    break;

extern "C" __global__ void sgd_rows(joined_table table, GATE, float decay, const float *rate, const float *control,
                                    const float *momentum, joined_slots all EACH_JOINED(ROWS_PARAMETERS)) {
  const sgd_rates rates = read_rates(decay, rate, control, momentum);
  const joined_block own = block_of(table);
  const row_slots slots = all.of[own.operation];
  const long long *keys = 0;
  const float *values = 0;
  float *p = 0;
  if (!may_update(TO_GATE) || !control_applies(control)) return;
  switch (own.operation) { EACH_JOINED(ROWS_PICK) }
  const row_team team = team_of(slots.columns, own.block, own.blocks);
  each_row(slots, keys, team, [&](size_t row, size_t slot, unsigned lane, unsigned lanes) {
    for (size_t k = lane; k < slots.columns; k += lanes)
      sgd_one(rates, p + row * slots.columns, values[slot * slots.columns + k], 0, k);
  });
}
