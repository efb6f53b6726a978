/* SPDX-License-Identifier: MIT
 * matmul in plain C and double precision, by its definition.
 */
#ifndef RONDO_TESTS_TENSOR_REFERENCE_H
#define RONDO_TESTS_TENSOR_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

/* c = a' b' + bias; bias may be NULL. a is stored [k, m] when transposed, b [n, k]. */
static inline void reference_matmul(const double *a, const double *b, const double *bias, size_t m, size_t n, size_t k,
                                    bool transpose_a, bool transpose_b, double *c) {
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < n; j++) {
      double sum = bias == NULL ? 0 : bias[j];
      for (size_t p = 0; p < k; p++) {
        sum += a[transpose_a ? p * m + i : i * k + p] * b[transpose_b ? j * k + p : p * n + j];
      }
      c[i * n + j] = sum;
    }
  }
}

#endif
