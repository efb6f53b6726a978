/* SPDX-License-Identifier: MIT
 * A oneDNN that makes products and lacks what convolutions need: these are then made by own kernels, of its products.
 */
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime, gpu_runtime;
} version;

EXPORT const version *dnnl_version(void);
EXPORT int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                      int64_t a_stride, const float *b, int64_t b_stride, float beta, float *c, int64_t c_stride);

/* Its threads: none. */
const version *dnnl_version(void) {
  static const version own = {.major = 2, .hash = "", .cpu_runtime = 1};
  return &own;
}

int dnnl_sgemm(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
               int64_t a_stride, const float *b, int64_t b_stride, float beta, float *c, int64_t c_stride) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t p = 0; p < k; p++)
        sum += (transpose_a == 'T' ? a[p * a_stride + i] : a[i * a_stride + p]) *
               (transpose_b == 'T' ? b[j * b_stride + p] : b[p * b_stride + j]);
      c[i * c_stride + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * c_stride + j]);
    }
  }
  return 0;
}
