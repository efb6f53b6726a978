/* SPDX-License-Identifier: MIT
 * The CUDA kernel of batch_norm_update in batch_norm.c.
 */
#include "tensor/operators/common/joined.cuh"

struct update_numbers {
  float momentum[MAX_JOINED], unbiased[MAX_JOINED];
};

#define PARAMETERS(i) , float *of_mean##i, float *of_variance##i, const float *mean##i, const float *variance##i
#define PICK(i)                                                                                 \
  case i:                                                                                       \
    of_mean = of_mean##i, of_variance = of_variance##i, mean = mean##i, variance = variance##i; \
    break;

extern "C" __global__ void batch_norm_update(joined_table table, GATE, update_numbers numbers EACH_JOINED(PARAMETERS)) {
  const joined_share share = share_of(table);
  float *of_mean = 0, *of_variance = 0;
  const float *mean = 0, *variance = 0;
  if (!may_update(TO_GATE)) return;
  switch (share.operation) { EACH_JOINED(PICK) }
  const float momentum = numbers.momentum[share.operation], unbiased = numbers.unbiased[share.operation];
  for (size_t i = share.first; i < share.elements; i += share.stride) {
    of_mean[i] += momentum * (mean[i] - of_mean[i]);
    of_variance[i] += momentum * (variance[i] * unbiased - of_variance[i]);
  }
}
