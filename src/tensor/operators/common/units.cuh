/* SPDX-License-Identifier: MIT
 * Units of 1, 2, 4, 8 or 16 bytes, for kernels that copy elements of any type.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct alignas(16) unit16 {
  u64 halves[2];
};

/* Calls work.walk<unit, number>(). Up to 2^31 - 1 positions, numbers have 32 bits, because 32-bit division is much
 * faster. */
template <class unit, class T>
__device__ inline void walk_by_count(size_t count, const T &work) {
  if (count <= 0x7fffffffu)
    work.template walk<unit, unsigned>();
  else
    work.template walk<unit, size_t>();
}

/* Calls work.run<unit>() with the unit of this size. */
template <class T>
__device__ inline void run_by_unit(size_t unit_bytes, const T &work) {
  if (unit_bytes == 1)
    work.template run<unsigned char>();
  else if (unit_bytes == 2)
    work.template run<unsigned short>();
  else if (unit_bytes == 4)
    work.template run<unsigned>();
  else if (unit_bytes == 8)
    work.template run<u64>();
  else
    work.template run<unit16>();
}
