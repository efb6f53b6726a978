/* SPDX-License-Identifier: MIT
 * The CUDA kernel of the series in zeros.c.
 */
#include "tensor/operators/common/numbers.cuh"

/* As rondo_type. */
enum { F32 = 1, I32 = 2, F16 = 5, BF16 = 6, BOOL = 7, I8 = 8, U8 = 9 };

struct series_shape {
  size_t count;
  double first, step;
  unsigned type, unused;
};

__device__ inline double number_of(const series_shape &shape, size_t i) {
  return __dadd_rn(shape.first, __dmul_rn((double)i, shape.step)); /* rounded twice, as on a CPU */
}

extern "C" __global__ void series(series_shape shape, void *__restrict__ to) {
  for (size_t i = first_element(); i < shape.count; i += element_stride()) {
    const double x = number_of(shape, i);
    switch (shape.type) {
      case F32:
        ((float *)to)[i] = (float)x;
        break;
      case F16:
        ((f16 *)to)[i] = from_float<f16>((float)x);
        break;
      case BF16:
        ((bf16 *)to)[i] = from_float<bf16>((float)x);
        break;
      case I32:
        ((int *)to)[i] = (int)x;
        break;
      case BOOL:
        ((boolean *)to)[i] = rounded<boolean>::of((i64)x);
        break;
      case I8:
        ((i8 *)to)[i] = (i8)x;
        break;
      case U8:
        ((u8 *)to)[i] = (u8)x;
        break;
      default:
        ((i64 *)to)[i] = (i64)x;
    }
  }
}
