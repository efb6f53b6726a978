/* SPDX-License-Identifier: MIT
 * Units of 2, 4, 8 or 16 bytes, for kernels that copy elements whatever their type is.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct alignas(16) unit16 {
  u64 halves[2];
};

/* Of up to so many things, positions are counted by 32 bits, because to divide those takes a fraction of the time. */
#define FEW 0x7fffffffu

/* Calls work.run<unit>() with the unit of so many bytes. */
template <class T>
__device__ inline void run_by_unit(size_t unit_bytes, const T &work) {
  if (unit_bytes == 2)
    work.template run<unsigned short>();
  else if (unit_bytes == 4)
    work.template run<unsigned>();
  else if (unit_bytes == 8)
    work.template run<u64>();
  else
    work.template run<unit16>();
}
