/* SPDX-License-Identifier: MIT
 * Element types. Programs (<rondo/program.h>) use all of them except F64. Collectives (<rondo/collective.h>) use all
 * except BOOL and the two of 8-bit floats, which are stored, converted, and multiplied by rondo_op_matmul_scaled alone.
 */
#ifndef RONDO_TYPE_H
#define RONDO_TYPE_H

#include <stddef.h>

#include <rondo/version.h>

RONDO_EXTERN_C_BEGIN

typedef enum rondo_type {
  RONDO_F32 = 1,
  RONDO_I32 = 2,
  RONDO_F64 = 3,
  RONDO_I64 = 4,
  RONDO_F16 = 5,  /* IEEE 754 half precision */
  RONDO_BF16 = 6, /* the upper half of an F32 */
  RONDO_BOOL = 7, /* a byte: 0 is false, all other values are true. Operators write 0 or 1; those that only copy keep
                     the byte. */
  RONDO_I8 = 8,
  RONDO_U8 = 9,
  RONDO_F8_E4M3 = 10, /* 4 bits of exponent, 3 of mantissa, no infinity, up to 448: torch.float8_e4m3fn */
  RONDO_F8_E5M2 = 11  /* the upper half of an F16, up to 57344: torch.float8_e5m2 */
} rondo_type;

/* "f32", "i32", "f64", "i64", "f16", "bf16", "bool", "i8", "u8", "f8_e4m3", "f8_e5m2"; "unknown" for another
 * number. Thread-safe. */
RONDO_API const char *rondo_type_name(rondo_type type);

/* The size of an element in bytes; 0 for another number. Thread-safe. */
RONDO_API size_t rondo_type_bytes(rondo_type type);

RONDO_EXTERN_C_END

#endif
