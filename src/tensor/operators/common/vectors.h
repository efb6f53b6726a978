/* SPDX-License-Identifier: MIT
 * Loops that are compiled for several vector widths. The widest that the processor supports is chosen once, at run
 * time.
 *
 * RONDO_VECTORISED compiles one body several times: for any processor of the architecture (SSE2 on x86-64; NEON on
 * arm64, where it is the only form), for AVX2 and for AVX-512. RONDO_INLINE functions that the body calls are compiled
 * into each form. All forms give the same bits: sums have RONDO_LANES partial sums at every width, and compilers may
 * not contract a product and a sum (-ffp-contract=off).
 *
 * Threads: any. Call rondo_vectors_choose again only while no kernel runs.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_VECTORS_H
#define RONDO_TENSOR_OPERATORS_COMMON_VECTORS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rondo/kernel.h>
#include <rondo/type.h>

#include "base/numbers/always_inline.h"

typedef enum rondo_vectors {
  RONDO_VECTORS_UNKNOWN,
  RONDO_VECTORS_PLAIN,
  RONDO_VECTORS_AVX2,
  RONDO_VECTORS_AVX512
} rondo_vectors;

extern _Atomic(rondo_vectors) rondo_vectors_chosen;

/* Chooses the widest that the processor, the system and RONDO_CPU_VECTORS allow, for all later calls. */
rondo_vectors rondo_vectors_choose(void);

/* The widest that the processor and the system allow. Libraries use these, whatever RONDO_CPU_VECTORS says. */
rondo_vectors rondo_vectors_of_processor(void);

/* Whether the processor multiplies BF16 with vectors (AVX512-BF16), and RONDO_CPU_VECTORS allows that. */
bool rondo_vectors_multiply_bf16(void);

static inline rondo_vectors rondo_vectors_used(void) {
  const rondo_vectors chosen = atomic_load_explicit(&rondo_vectors_chosen, memory_order_relaxed);
  return chosen != RONDO_VECTORS_UNKNOWN ? chosen : rondo_vectors_choose();
}

/* RONDO_VECTORISED(sum_rows, (const float *x, float *y, size_t count), (x, y, count)) { .. } defines a void function.
 * It pays off from some hundred elements for each call: choosing the form costs a load and a branch. Builds with a
 * sanitizer define RONDO_SINGLE_VECTOR_FORM: they are not vectorised, so the forms would be the same code. */
#if defined(__x86_64__) && defined(__GNUC__)
#define RONDO_FOR_AVX2 __attribute__((target("avx2")))
#define RONDO_FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#endif
#if defined(RONDO_FOR_AVX2) && !defined(RONDO_SINGLE_VECTOR_FORM)
#define RONDO_VECTORISED(name, parameters, arguments)                                     \
  RONDO_INLINE void name##_body parameters;                                               \
  static inline void name##_plain parameters { name##_body arguments; }                   \
  RONDO_FOR_AVX2 static inline void name##_avx2 parameters { name##_body arguments; }     \
  RONDO_FOR_AVX512 static inline void name##_avx512 parameters { name##_body arguments; } \
  static inline void name parameters {                                                    \
    const rondo_vectors used = rondo_vectors_used();                                      \
    if (used == RONDO_VECTORS_AVX512)                                                     \
      name##_avx512 arguments;                                                            \
    else if (used == RONDO_VECTORS_AVX2)                                                  \
      name##_avx2 arguments;                                                              \
    else                                                                                  \
      name##_plain arguments;                                                             \
  }                                                                                       \
  RONDO_INLINE void name##_body parameters
#else
#define RONDO_VECTORISED(name, parameters, arguments) static inline void name parameters
#endif

/* The same for the CPU function of a typed kernel (RONDO_TYPED_KERNEL). */
#define RONDO_VECTORISED_KERNEL(name) \
  RONDO_VECTORISED(name, (rondo_type type, rondo_blocks blocks, void *const *args), (type, blocks, args))

#endif
