/* SPDX-License-Identifier: MIT
 * What rondo_random_cuda_source gives.
 */
#include "exec/random.cuh"
