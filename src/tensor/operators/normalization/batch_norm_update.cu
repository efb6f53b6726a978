/* SPDX-License-Identifier: MIT
 * The CUDA kernel of batch_norm_update in batch_norm.c.
 */
#include "tensor/operators/common/kernel_support.cuh"

extern "C" __global__ void batch_norm_update(GATE, float *__restrict__ running_mean,
                                             float *__restrict__ running_variance, const float *__restrict__ mean,
                                             const float *__restrict__ variance, float momentum, float unbiased,
                                             size_t count) {
  if (!may_update(TO_GATE)) return;
  for (size_t i = first_element(); i < count; i += element_stride()) {
    running_mean[i] += momentum * (mean[i] - running_mean[i]);
    running_variance[i] += momentum * (variance[i] * unbiased - running_variance[i]);
  }
}
