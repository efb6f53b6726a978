/* SPDX-License-Identifier: MIT
 * Compares Rondo's header for cuBLASLt with the real one, if the compiler finds it: values, layouts and the types of
 * all functions, at compile time. Skipped otherwise.
 */
#include <stdio.h>

#include "tensor/vendor/cublaslt_abi.h"

#if defined(__has_include) && __has_include(<cublasLt.h>)
#include <cublasLt.h>

#define SAME(own, real) _Static_assert((int)(own) == (int)(real), #own)
SAME(CUBLASLT_OK, CUBLAS_STATUS_SUCCESS);
SAME(CUBLASLT_NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLASLT_BAD_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(CUBLASLT_NO_SUCH, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUBLASLT_F32, CUDA_R_32F);
SAME(CUBLASLT_F16, CUDA_R_16F);
SAME(CUBLASLT_BF16, CUDA_R_16BF);
SAME(CUBLASLT_I8, CUDA_R_8I);
SAME(CUBLASLT_I32, CUDA_R_32I);
SAME(CUBLASLT_F8_E4M3, CUDA_R_8F_E4M3);
SAME(CUBLASLT_F8_E5M2, CUDA_R_8F_E5M2);
SAME(CUBLASLT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(CUBLASLT_COMPUTE_I32, CUBLAS_COMPUTE_32I);
SAME(CUBLASLT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CUBLASLT_AS_IT_IS, CUBLAS_OP_N);
SAME(CUBLASLT_TRANSPOSED, CUBLAS_OP_T);
SAME(CUBLASLT_PRODUCT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_PRODUCT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_PRODUCT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLASLT_PRODUCT_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLASLT_PRODUCT_KEPT, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(CUBLASLT_PRODUCT_KEPT_STRIDE, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(CUBLASLT_PRODUCT_KEPT_BATCH, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
SAME(CUBLASLT_PRODUCT_SCALE_A, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(CUBLASLT_PRODUCT_SCALE_B, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
#if CUBLAS_VERSION >= 120900
SAME(CUBLASLT_PRODUCT_SCALE_MODE_A, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
SAME(CUBLASLT_PRODUCT_SCALE_MODE_B, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
SAME(CUBLASLT_SCALE_OF_ROWS, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#endif
SAME(CUBLASLT_EPILOGUE_ADD_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(CUBLASLT_EPILOGUE_BE_GELU, CUBLASLT_EPILOGUE_GELU);
SAME(CUBLASLT_EPILOGUE_BE_GELU | CUBLASLT_EPILOGUE_ADD_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(CUBLASLT_EPILOGUE_BE_GELU | CUBLASLT_EPILOGUE_KEEP, CUBLASLT_EPILOGUE_GELU_AUX);
SAME(CUBLASLT_EPILOGUE_BE_GELU | CUBLASLT_EPILOGUE_KEEP | CUBLASLT_EPILOGUE_ADD_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(CUBLASLT_LAYOUT_BATCHES, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLASLT_LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CUBLASLT_WISH_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLASLT_WISH_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUBLASLT_REDUCE_IN_PLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(CUBLASLT_REDUCE_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(CUBLASLT_REDUCE_OUTPUT_TYPE, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

#define SAME_PLACE(member, real) \
  SAME(offsetof(cublaslt_choice, member), offsetof(cublasLtMatmulHeuristicResult_t, real))
SAME(sizeof(cublaslt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(sizeof(cublaslt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME_PLACE(workspace_bytes, workspaceSize);
SAME_PLACE(status, state);
SAME(sizeof(cublaslt_status), sizeof(cublasStatus_t));
SAME(sizeof(cublaslt_compute), sizeof(cublasComputeType_t));
SAME(sizeof(cublaslt_type), sizeof(cudaDataType_t));
SAME(sizeof(cublaslt_attribute), sizeof(cublasLtMatmulDescAttributes_t));
SAME(sizeof(cublaslt_layout_attribute), sizeof(cublasLtMatrixLayoutAttribute_t));
SAME(sizeof(cublaslt_wish), sizeof(cublasLtMatmulPreferenceAttributes_t));

/* The table of functions once more, with the real types. */
#define cublaslt_status cublasStatus_t
#define cublaslt_compute cublasComputeType_t
#define cublaslt_type cudaDataType_t
#define cublaslt_attribute cublasLtMatmulDescAttributes_t
#define cublaslt_layout_attribute cublasLtMatrixLayoutAttribute_t
#define cublaslt_wish cublasLtMatmulPreferenceAttributes_t
#define cublaslt_handle cublasLtHandle_t
#define cublaslt_product cublasLtMatmulDesc_t
#define cublaslt_layout cublasLtMatrixLayout_t
#define cublaslt_wishes cublasLtMatmulPreference_t
#define cublaslt_stream cudaStream_t
#define cublaslt_algorithm cublasLtMatmulAlgo_t
#define cublaslt_choice cublasLtMatmulHeuristicResult_t
#define SAME_FUNCTION(result, member, symbol, arguments) \
  typedef result member##_type arguments;                \
  _Static_assert(__builtin_types_compatible_p(member##_type, __typeof__(symbol)), #symbol);
CUBLASLT_FUNCTIONS(SAME_FUNCTION)

int main(void) {
  puts("the header agrees with cublasLt.h");
  return 0;
}
#else
int main(void) {
  puts("skipped: there is no cublasLt.h");
  return 77;
}
#endif
