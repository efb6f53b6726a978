/* SPDX-License-Identifier: MIT
 * add_integer: the sum of two quantised tensors of one shape, quantised, as residual networks have it between their
 * convolutions. Threads: as tensor/program/operator.h says.
 */
#include <assert.h>
#include <math.h>

#include "tensor/operators/integer/integer_lanes.h"
#include "tensor/operators/integer/integer_product.h"

enum { A, B, A_ZERO, B_ZERO, RESULT_ZERO, INPUTS };
enum { TYPE, ACTIVATION, SIZES };        /* sizes */
enum { A_SCALE, B_SCALE, RESULT_SCALE }; /* numbers */

/* A scalar argument of the kernel; without padding. */
typedef struct sum_shape {
  size_t count;
  uint32_t a_unsigned, b_unsigned, result_unsigned, relu;
  float a_scale, b_scale, result_scale;
  uint32_t unused;
} sum_shape;

/* Kernel ----------------------------------------------------------------------------------------------------------- */

/* What is the same for all elements: bytes of I8 are turned to those of U8, whose zeros are 128 more. */
typedef struct sum_form {
  uint8_t a_turned, b_turned, result_turned;
  int32_t a_zero, b_zero;
  float a_scale, b_scale, result_scale, least, result_zero; /* least: of the activation */
} sum_form;

RONDO_INLINE uint8_t sum_of(const sum_form *f, uint8_t a, uint8_t b) {
  const float sum =
      (float)((a ^ f->a_turned) - f->a_zero) * f->a_scale + (float)((b ^ f->b_turned) - f->b_zero) * f->b_scale;
  const float active = sum > f->least ? sum : f->least;
  const float whole = rintf(active / f->result_scale) + f->result_zero;
  const float above = whole > 0 ? whole : 0;
  return (uint8_t)((uint8_t)(int32_t)(above < 255 ? above : 255) ^ f->result_turned);
}

RONDO_VECTORISED(add_bytes,
                 (const sum_form *form, const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict y,
                  size_t count),
                 (form, a, b, y, count)) {
  const sum_form f = *form;
  RONDO_EACH_LANE(i, lane, count, y[i] = sum_of(&f, a[i], b[i]));
}

#ifdef RONDO_HAS_X86

/* What is the same for all elements of `a` or `b`. */
typedef struct term_form {
  int32_t zero;
  float scale;
  __m128i turned;
} term_form;

static term_form form_of(uint8_t turned, int32_t zero, float scale) {
  return (term_form){zero, scale, _mm_set1_epi8((char)turned)};
}

RONDO_FOR_AVX2 RONDO_INLINE __m256 term_of_8(const term_form *f, const uint8_t *bytes) {
  const __m128i eight = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)bytes), f->turned);
  const __m256i number = _mm256_sub_epi32(_mm256_cvtepu8_epi32(eight), _mm256_set1_epi32(f->zero));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(number), _mm256_set1_ps(f->scale));
}

/* As sum_of: where the operands of max and min are equal or no numbers, the result is the second one. */
RONDO_FOR_AVX2 RONDO_INLINE __m256i sum_of_8(const sum_form *f, const term_form *of_a, const term_form *of_b,
                                             const uint8_t *a, const uint8_t *b) {
  const __m256 sum = _mm256_add_ps(term_of_8(of_a, a), term_of_8(of_b, b));
  const __m256 quotient = _mm256_div_ps(_mm256_max_ps(sum, _mm256_set1_ps(f->least)), _mm256_set1_ps(f->result_scale));
  const __m256 rounded = _mm256_round_ps(quotient, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m256 above = _mm256_max_ps(_mm256_add_ps(rounded, _mm256_set1_ps(f->result_zero)), _mm256_setzero_ps());
  return _mm256_cvttps_epi32(_mm256_min_ps(above, _mm256_set1_ps(255)));
}

/* Returns how many were done: whole groups of 32. Packing works in halves of vectors. */
RONDO_FOR_AVX2 static size_t add_groups(const sum_form *f, const uint8_t *a, const uint8_t *b, uint8_t *y,
                                        size_t count) {
  const term_form of_a = form_of(f->a_turned, f->a_zero, f->a_scale);
  const term_form of_b = form_of(f->b_turned, f->b_zero, f->b_scale);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), turned = _mm256_set1_epi8((char)f->result_turned);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i first =
        _mm256_packs_epi32(sum_of_8(f, &of_a, &of_b, a + i, b + i), sum_of_8(f, &of_a, &of_b, a + i + 8, b + i + 8));
    const __m256i last = _mm256_packs_epi32(sum_of_8(f, &of_a, &of_b, a + i + 16, b + i + 16),
                                            sum_of_8(f, &of_a, &of_b, a + i + 24, b + i + 24));
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, last), order);
    _mm256_storeu_si256((__m256i *)(void *)(y + i), _mm256_xor_si256(bytes, turned));
  }
  return i;
}

RONDO_FOR_AVX512 RONDO_INLINE __m512 term_of_16(const term_form *f, __m128i bytes) {
  const __m512i number =
      _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm_xor_si128(bytes, f->turned)), _mm512_set1_epi32(f->zero));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(number), _mm512_set1_ps(f->scale));
}

/* Limited before it is rounded, to integers without the zero, which gives the same. */
RONDO_FOR_AVX512 RONDO_INLINE __m512i sum_of_16(const sum_form *f, const term_form *of_a, const term_form *of_b,
                                                __m128i a, __m128i b) {
  const __m512 sum = _mm512_add_ps(term_of_16(of_a, a), term_of_16(of_b, b));
  const __m512 quotient = _mm512_div_ps(_mm512_max_ps(sum, _mm512_set1_ps(f->least)), _mm512_set1_ps(f->result_scale));
  const __m512 above = _mm512_max_ps(quotient, _mm512_set1_ps(-f->result_zero));
  const __m512i whole = _mm512_cvtps_epi32(_mm512_min_ps(above, _mm512_set1_ps(255 - f->result_zero)));
  return _mm512_add_epi32(whole, _mm512_set1_epi32((int32_t)f->result_zero));
}

#define SUM_AT(i)                                                                       \
  sum_of_16(f, &of_a, &of_b, _mm_loadu_si128((const __m128i *)(const void *)(a + (i))), \
            _mm_loadu_si128((const __m128i *)(const void *)(b + (i))))

/* The same for all elements. */
RONDO_FOR_AVX512 static void add_all(const sum_form *f, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t count) {
  const term_form of_a = form_of(f->a_turned, f->a_zero, f->a_scale);
  const term_form of_b = form_of(f->b_turned, f->b_zero, f->b_scale);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i turned = _mm512_set1_epi8((char)f->result_turned);
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i first = _mm512_packs_epi32(SUM_AT(i), SUM_AT(i + 16));
    const __m512i last = _mm512_packs_epi32(SUM_AT(i + 32), SUM_AT(i + 48));
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, last));
    _mm512_storeu_si512(y + i, _mm512_xor_si512(bytes, turned));
  }
  for (; i < count; i += 16) {
    const __mmask16 inside = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1) : 0xffff;
    const __m512i sum =
        sum_of_16(f, &of_a, &of_b, _mm_maskz_loadu_epi8(inside, a + i), _mm_maskz_loadu_epi8(inside, b + i));
    _mm_mask_storeu_epi8(y + i, inside, _mm_xor_si128(_mm512_cvtepi32_epi8(sum), _mm512_castsi512_si128(turned)));
  }
}

#endif

static void add_some(const sum_form *form, const uint8_t *a, const uint8_t *b, uint8_t *y, size_t count) {
  size_t done = 0;
#ifdef RONDO_HAS_X86
  if (rondo_vectors_used() == RONDO_VECTORS_AVX512) {
    add_all(form, a, b, y, count);
    return;
  }
  if (rondo_vectors_used() == RONDO_VECTORS_AVX2) done = add_groups(form, a, b, y, count);
#endif
  add_bytes(form, a + done, b + done, y + done, count - done);
}

/* 128 more for bytes that are turned. */
static int32_t zero_of(const void *zero, uint32_t is_unsigned) {
  return (zero == NULL ? 0 : rondo_byte_at(zero, is_unsigned, 0)) + (is_unsigned != 0 ? 0 : 128);
}

/* shape, a, b, a_zero, b_zero, result_zero, y */
static void add_integer_cpu(rondo_blocks blocks, void *const *args) {
  const sum_shape *s = args[0];
  const sum_form form = {.a_turned = rondo_to_unsigned(s->a_unsigned),
                         .b_turned = rondo_to_unsigned(s->b_unsigned),
                         .result_turned = rondo_to_unsigned(s->result_unsigned),
                         .a_zero = zero_of(RONDO_ARG(const void *, 3), s->a_unsigned),
                         .b_zero = zero_of(RONDO_ARG(const void *, 4), s->b_unsigned),
                         .a_scale = s->a_scale,
                         .b_scale = s->b_scale,
                         .result_scale = s->result_scale,
                         .least = s->relu != 0 ? 0 : -INFINITY,
                         .result_zero = (float)zero_of(RONDO_ARG(const void *, 5), s->result_unsigned)};
  const rondo_span span = rondo_blocks_span(blocks, s->count, RONDO_LANES);
  if (span.first < span.last)
    add_some(&form, RONDO_ARG(const uint8_t *, 1) + span.first, RONDO_ARG(const uint8_t *, 2) + span.first,
             RONDO_ARG(uint8_t *, 6) + span.first, span.last - span.first);
}

RONDO_UNTYPED_KERNEL(add_integer, add_integer, RONDO_SCALAR(sum_shape), RONDO_READS, RONDO_READS, RONDO_READS,
                     RONDO_READS, RONDO_READS, RONDO_WRITES);

/* Row -------------------------------------------------------------------------------------------------------------- */

/* An optional scalar of this type. */
static rondo_status require_zero(const rondo_program *program, const rondo_operation *operation, uint32_t input,
                                 rondo_type type) {
  const rondo_shape *shape = rondo_operation_input(program, operation, input);
  if (shape == NULL || (shape->type == type && rondo_shape_elements(shape) == 1)) return RONDO_OK;
  return rondo_fail_operation(program, operation, shape->type != type ? RONDO_REASON_TYPE : RONDO_REASON_SHAPE,
                              "%s must be %s, a scalar", operation->row->inputs[input], rondo_type_name(type));
}

static rondo_status infer_add_integer(const rondo_program *program, const rondo_operation *operation,
                                      rondo_shape *results) {
  const rondo_shape *a = rondo_operation_input(program, operation, A),
                    *b = rondo_operation_input(program, operation, B);
  const rondo_type type = (rondo_type)operation->attributes.sizes[TYPE];
  rondo_shape alike = *b;
  alike.type = a->type;
  for (uint32_t i = A; i <= B; i++) {
    const rondo_type given = rondo_operation_input(program, operation, i)->type;
    if (given != RONDO_I8 && given != RONDO_U8)
      return rondo_fail_operation(program, operation, RONDO_REASON_TYPE, "%s is %s; it must be i8 or u8",
                                  operation->row->inputs[i], rondo_type_name(given));
  }
  if (!rondo_shape_same(a, &alike))
    return rondo_fail_operation(program, operation, RONDO_REASON_SHAPE, "a and b must have one shape");
  RONDO_TRY(require_zero(program, operation, A_ZERO, a->type));
  RONDO_TRY(require_zero(program, operation, B_ZERO, b->type));
  RONDO_TRY(require_zero(program, operation, RESULT_ZERO, type));
  return rondo_shape_make("add_integer", type, a->dims, a->rank, &results[0]);
}

static rondo_status emit_add_integer(rondo_emitter *emitter, const rondo_operation *operation) {
  const rondo_shape *a = rondo_emit_shape(emitter, operation->inputs[A]);
  const rondo_attributes *attributes = &operation->attributes;
  const sum_shape shape = {.count = rondo_shape_elements(a),
                           .a_unsigned = a->type == RONDO_U8,
                           .b_unsigned = rondo_emit_shape(emitter, operation->inputs[B])->type == RONDO_U8,
                           .result_unsigned = attributes->sizes[TYPE] == RONDO_U8,
                           .relu = attributes->sizes[ACTIVATION] == RONDO_ACTIVATION_RELU,
                           .a_scale = attributes->numbers[A_SCALE],
                           .b_scale = attributes->numbers[B_SCALE],
                           .result_scale = attributes->numbers[RESULT_SCALE]};
  return rondo_emit_operands(emitter, operation, &add_integer_code,
                             rondo_emit_grid(emitter, shape.count, RONDO_ELEMENTWISE_GRAIN),
                             RONDO_OPERANDS(RONDO_OBJECT(shape), RONDO_INPUT(A), RONDO_INPUT(B), RONDO_INPUT(A_ZERO),
                                            RONDO_INPUT(B_ZERO), RONDO_INPUT(RESULT_ZERO), RONDO_RESULT(0)));
}

RONDO_OPERATOR(add_integer, .types = RONDO_TYPE_BIT(RONDO_I8) | RONDO_TYPE_BIT(RONDO_U8),
               .inputs = {"a", "b", "a_zero", "b_zero", "result_zero"}, .required = 2, .result_count = 1,
               .infer = infer_add_integer, .emit = emit_add_integer);

static rondo_status fail_option(const char *what, double given, const char *use) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "add_integer: %s is %g: use %s", what, given,
                    use);
}

static rondo_status require_scale(const char *what, float given) {
  if (given >= 0 && isfinite(given)) return RONDO_OK;
  return fail_option(what, (double)given, "a positive number, or 0 for 1");
}

rondo_status rondo_op_add_integer(rondo_program *program, rondo_value a, rondo_value b,
                                  const rondo_add_integer_options *options, rondo_value *out_value) {
  rondo_add_integer_options given;
  RONDO_TRY(rondo_program_begin(program, "add_integer", out_value));
  RONDO_TRY(rondo_versioned_read("rondo_add_integer_options", options, &given, sizeof given));
  if (given.result_type == 0) given.result_type = RONDO_U8;
  if (given.result_type != RONDO_I8 && given.result_type != RONDO_U8)
    return fail_option("the type of the result", (double)given.result_type, "RONDO_I8, RONDO_U8, or 0 for RONDO_U8");
  if (given.activation != RONDO_ACTIVATION_NONE && given.activation != RONDO_ACTIVATION_RELU)
    return fail_option("the activation", (double)given.activation, "RONDO_ACTIVATION_NONE or _RELU");
  RONDO_TRY(require_scale("a_scale", given.a_scale));
  RONDO_TRY(require_scale("b_scale", given.b_scale));
  RONDO_TRY(require_scale("result_scale", given.result_scale));
  const rondo_value inputs[INPUTS] = {a, b, given.a_zero, given.b_zero, given.result_zero};
  const rondo_attributes attributes = {.sizes = {[TYPE] = given.result_type, [ACTIVATION] = given.activation},
                                       .size_count = SIZES,
                                       .numbers = {[A_SCALE] = given.a_scale == 0 ? 1 : given.a_scale,
                                                   [B_SCALE] = given.b_scale == 0 ? 1 : given.b_scale,
                                                   [RESULT_SCALE] = given.result_scale == 0 ? 1 : given.result_scale}};
  return rondo_program_apply(program, &rondo_operator_add_integer, inputs, INPUTS, &attributes, out_value);
}
