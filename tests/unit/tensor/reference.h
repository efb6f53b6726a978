/* SPDX-License-Identifier: MIT
 * Every operator in plain C and double precision, by its definition: one function a public operator. The tests compare
 * the operators with them, and their gradients with finite differences of them.
 */
#ifndef RONDO_TESTS_TENSOR_REFERENCE_H
#define RONDO_TESTS_TENSOR_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* y[i] = table[indices[i]], rows of d. */
static inline void reference_embedding(const double *table, size_t d, const int *indices, size_t count, double *y) {
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < d; j++) y[i * d + j] = table[(size_t)indices[i] * d + j];
  }
}

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

static inline void reference_column_sum(const double *x, size_t m, size_t n, double *y) {
  for (size_t j = 0; j < n; j++) {
    y[j] = 0;
    for (size_t i = 0; i < m; i++) y[j] += x[i * n + j];
  }
}

static inline void reference_tanh(const double *x, size_t count, double *y) {
  for (size_t i = 0; i < count; i++) y[i] = tanh(x[i]);
}

static inline void reference_add(const double *a, const double *b, size_t count, double *y) {
  for (size_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

static inline void reference_softmax(const double *x, size_t rows, size_t columns, double *y) {
  for (size_t i = 0; i < rows; i++, x += columns, y += columns) {
    double most = x[0];
    double sum = 0;
    for (size_t j = 1; j < columns; j++) most = fmax(most, x[j]);
    for (size_t j = 0; j < columns; j++) sum += y[j] = exp(x[j] - most);
    for (size_t j = 0; j < columns; j++) y[j] /= sum;
  }
}

static inline double reference_cross_entropy(const double *logits, const int *labels, size_t rows, size_t columns) {
  double loss = 0;
  for (size_t i = 0; i < rows; i++, logits += columns) {
    double most = logits[0];
    double sum = 0;
    for (size_t j = 1; j < columns; j++) most = fmax(most, logits[j]);
    for (size_t j = 0; j < columns; j++) sum += exp(logits[j] - most);
    loss += log(sum) - (logits[labels[i]] - most);
  }
  return loss / (double)rows;
}

#endif
