/* SPDX-License-Identifier: MIT
 * A oneDNN with matrix products but without the functions for convolutions, so that Rondo's own kernels compute
 * convolutions with its products. With WITHOUT_ENGINE it has all functions, but fails to create an engine.
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

#ifdef WITHOUT_ENGINE
enum { RUNTIME_ERROR = 5 };
#define REFUSING(name)   \
  EXPORT int name(void); \
  int name(void) { return RUNTIME_ERROR; }
REFUSING(dnnl_engine_create)
REFUSING(dnnl_stream_create)
REFUSING(dnnl_stream_destroy)
REFUSING(dnnl_memory_desc_init_by_tag)
REFUSING(dnnl_memory_desc_init_by_strides)
REFUSING(dnnl_memory_desc_equal)
REFUSING(dnnl_memory_desc_get_size)
REFUSING(dnnl_memory_create)
REFUSING(dnnl_memory_set_data_handle)
REFUSING(dnnl_memory_destroy)
REFUSING(dnnl_dilated_convolution_forward_desc_init)
REFUSING(dnnl_dilated_convolution_backward_data_desc_init)
REFUSING(dnnl_dilated_convolution_backward_weights_desc_init)
REFUSING(dnnl_primitive_desc_create)
REFUSING(dnnl_primitive_desc_query)
REFUSING(dnnl_primitive_desc_query_md)
REFUSING(dnnl_reorder_primitive_desc_create)
REFUSING(dnnl_primitive_desc_destroy)
REFUSING(dnnl_primitive_create)
REFUSING(dnnl_primitive_destroy)
REFUSING(dnnl_primitive_execute)
REFUSING(dnnl_primitive_attr_create)
REFUSING(dnnl_primitive_attr_set_scratchpad_mode)
REFUSING(dnnl_primitive_attr_set_post_ops)
REFUSING(dnnl_primitive_attr_destroy)
REFUSING(dnnl_post_ops_create)
REFUSING(dnnl_post_ops_append_eltwise)
REFUSING(dnnl_post_ops_destroy)
#endif
