/* SPDX-License-Identifier: MIT
 * Which vector width the processor supports. Threads that choose at once choose the same.
 */
#include "tensor/operators/common/vectors.h"

#include <string.h>

#include "base/environment.h"

_Atomic(rondo_vectors) rondo_vectors_chosen;

/* The compiler's functions ask the processor, and ask the system whether it saves the registers. */
rondo_vectors rondo_vectors_of_processor(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return RONDO_VECTORS_AVX512;
  if (__builtin_cpu_supports("avx2")) return RONDO_VECTORS_AVX2;
#endif
  return RONDO_VECTORS_PLAIN;
}

static rondo_vectors allowed(void) {
  const char *limit = rondo_option_text(RONDO_OPTION_CPU_VECTORS);
  if (strcmp(limit, "plain") == 0) return RONDO_VECTORS_PLAIN;
  return strcmp(limit, "avx2") == 0 ? RONDO_VECTORS_AVX2 : RONDO_VECTORS_AVX512;
}

rondo_vectors rondo_vectors_choose(void) {
  const rondo_vectors has = rondo_vectors_of_processor(), may = allowed(), chosen = has < may ? has : may;
  atomic_store_explicit(&rondo_vectors_chosen, chosen, memory_order_relaxed);
  return chosen;
}

bool rondo_vectors_multiply_bf16(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  return rondo_vectors_used() == RONDO_VECTORS_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}
