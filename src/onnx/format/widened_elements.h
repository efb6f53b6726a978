/* SPDX-License-Identifier: MIT
 * Elements of types that programs lack, as those of the wider types in which programs compute them: F32 for double and
 * for floats of 4 and 8 bits, I8 and U8 for integers of 2 and 4 bits, I32 for those of 16, I64 for unsigned ones of 32
 * and 64. I64 has the bits of the largest integers of 64.
 *
 * The formats of small floats are those of Micikevicius et al. 2022 (FP8 Formats for Deep Learning), Noune et al. 2022
 * (FNUZ) and the OCP Microscaling Formats (E2M1, E8M0). Threads: any.
 */
#ifndef RONDO_ONNX_FORMAT_WIDENED_ELEMENTS_H
#define RONDO_ONNX_FORMAT_WIDENED_ELEMENTS_H

#include "onnx/format/tensor_data.h"

/* The wider type; 0 if programs have the type itself, or none for it. */
rondo_type rondo_onnx_widened_type(rondo_onnx_type type);

/* The type with which programs compute values of this type: its own or the wider one; 0: none. */
rondo_type rondo_onnx_program_type_of(int32_t onnx_type);

/* How many bits an integer has that is held in a wider type, and whether it is signed; false for others. */
bool rondo_onnx_is_narrow_integer(rondo_onnx_type type, unsigned *out_bits, bool *out_signed);

/* A float of few bits. */
typedef struct rondo_onnx_small_float {
  unsigned mantissa_bits;
  int bias;       /* of the exponent */
  float largest;  /* the largest number */
  int nan;        /* the bits of NaN without a sign; -1 if the type has no NaN */
  bool is_scale;  /* powers of two alone: no sign, no zero */
  bool has_zeros; /* two: one is negative */
} rondo_onnx_small_float;

/* The float type that is held as F32; NULL for others. */
const rondo_onnx_small_float *rondo_onnx_small_float_of(rondo_onnx_type type);

/* An integer of any type, of elements that may not be aligned. Unsigned ones of 64 bits keep their bits. False if the
 * type is no integer. */
bool rondo_onnx_integer_at(rondo_onnx_type type, const void *elements, size_t index, int64_t *out);

/* Convert `count` elements to the wider type, and back. Numbers that a small float does not have become the nearest. */
void rondo_onnx_widen(rondo_onnx_type type, const void *elements, size_t count, void *out);
void rondo_onnx_narrow(rondo_onnx_type type, const void *wide, size_t count, void *out_elements);

#endif
