/* SPDX-License-Identifier: MIT
 * Compares Rondo's header for NCCL with the real one, if the compiler finds it: values, layouts and the types of all
 * functions, at compile time. Skipped otherwise.
 */
#include <stdio.h>

#include "vendor/nccl_abi.h"

#if defined(__has_include) && __has_include(<nccl.h>)
#define __CUDA_BF16_TYPES_EXIST__ /* NCCL before 2.24 hides BF16 from C */
#include <nccl.h>

#define SAME(own, real) _Static_assert((int)(own) == (int)(real), #own)
SAME(NCCL_OK, ncclSuccess);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_I32, ncclInt32);
SAME(NCCL_I64, ncclInt64);
SAME(NCCL_F16, ncclFloat16);
SAME(NCCL_F32, ncclFloat32);
SAME(NCCL_F64, ncclFloat64);
SAME(NCCL_BF16, ncclBfloat16);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(NCCL_AVG, ncclAvg);
SAME(sizeof(nccl_unique_id), sizeof(ncclUniqueId));
SAME(_Alignof(nccl_unique_id), _Alignof(ncclUniqueId));
SAME(sizeof(nccl_result), sizeof(ncclResult_t));
SAME(sizeof(nccl_type), sizeof(ncclDataType_t));
SAME(sizeof(nccl_reduction), sizeof(ncclRedOp_t));

/* The table of functions once more, with the real types. */
#define nccl_result ncclResult_t
#define nccl_type ncclDataType_t
#define nccl_reduction ncclRedOp_t
#define nccl_comm ncclComm_t
#define nccl_unique_id ncclUniqueId
#define nccl_stream cudaStream_t
#define nccl_config ncclConfig_t
#define SAME_FUNCTION(result, member, symbol, arguments) \
  typedef result member##_type arguments;                \
  _Static_assert(__builtin_types_compatible_p(member##_type, __typeof__(symbol)), #symbol);
NCCL_FUNCTIONS(SAME_FUNCTION)
NCCL_OPTIONAL_FUNCTIONS(SAME_FUNCTION)

int main(void) {
  (void)printf("NCCL %d.%d.%d has the values, layouts and functions that Rondo counts on\n", NCCL_MAJOR, NCCL_MINOR,
               NCCL_PATCH);
  return 0;
}
#else
int main(void) {
  (void)puts("skipped: there is no nccl.h");
  return 77;
}
#endif
