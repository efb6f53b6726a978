/* SPDX-License-Identifier: MIT
 * The kernels of the tests, as a table. Each has code for every kind of device, so that the suite runs on all of them.
 * A block computes one element. Words are uint32_t; sums and products wrap.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_KERNELS_H
#define RONDO_TESTS_SUPPORT_TEST_KERNELS_H

#include <rondo/kernel.h>

typedef enum test_kernel_id {
  TEST_KERNEL_EMPTY,        /* () */
  TEST_KERNEL_SET,          /* (word value, writes out): out[b] = value */
  TEST_KERNEL_AFFINE,       /* (word factor, word term, updates out): out[b] = out[b] * factor + term */
  TEST_KERNEL_PLACE,        /* (writes out): out[b] = x + 100 * y + 10000 * z + 1, of block b's place in the grid */
  TEST_KERNEL_COUNT_BLOCKS, /* (word weight, updates sum): *sum += weight, atomically, in every block */
  TEST_KERNEL_COMBINE,      /* (reads a, reads b, writes out): out[b] = a[b] * 31 + b[b] */
  TEST_KERNEL_SAXPY,        /* (float a, reads x, updates y): y[b] += a * x[b] */
  TEST_KERNEL_MIXED,        /* (uint8, uint64, uint16, double, test_triple, word, writes out): out[0..7] = the values */
  TEST_KERNEL_BARE,         /* (updates out): has no code for any device */
  /* (reads in, writes out): each block reverses its elements, one for each thread, through dynamic shared memory, and
   * writes its dimensions and the bytes of that memory to the four words before the elements of the first block */
  TEST_KERNEL_REVERSE,
  TEST_KERNEL_COUNT
} test_kernel_id;

/* A parameter whose size is not a power of two. */
typedef struct test_triple {
  uint32_t values[3];
} test_triple;

/* Code of a kernel for CPU devices that does nothing. */
void test_kernel_nothing(rondo_blocks blocks, void *const *args);

/* The options for rondo_kernel_create; static. */
const rondo_kernel_options *test_kernel_options(test_kernel_id id);

#endif
