/* SPDX-License-Identifier: MIT
 * Names and sizes of the element types, in one constant table.
 */
#include <rondo/type.h>
#include <stdint.h>

static const struct {
  const char *name;
  size_t bytes;
} types[] = {
    [RONDO_F32] = {"f32", sizeof(float)},
    [RONDO_I32] = {"i32", sizeof(int32_t)},
    [RONDO_F64] = {"f64", sizeof(double)},
    [RONDO_I64] = {"i64", sizeof(int64_t)},
    [RONDO_F16] = {"f16", 2},
    [RONDO_BF16] = {"bf16", 2},
    [RONDO_BOOL] = {"bool", 1},
    [RONDO_I8] = {"i8", sizeof(int8_t)},
    [RONDO_U8] = {"u8", sizeof(uint8_t)},
    [RONDO_F8_E4M3] = {"f8_e4m3", 1},
    [RONDO_F8_E5M2] = {"f8_e5m2", 1},
};

/* Returns 0, a row without a type, if the type is unknown. */
static size_t row_of(rondo_type type) {
  const size_t number = (size_t)type;
  return number < sizeof types / sizeof types[0] ? number : 0;
}

const char *rondo_type_name(rondo_type type) {
  const char *name = types[row_of(type)].name;
  return name == NULL ? "unknown" : name;
}

size_t rondo_type_bytes(rondo_type type) { return types[row_of(type)].bytes; }
