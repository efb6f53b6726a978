/* SPDX-License-Identifier: MIT
 * The part of cuBLASLt that Rondo uses, as cublasLt.h of CUDA 12 and 13 declares it ("cuBLAS", chapter "Using the
 * cuBLASLt API"). Rondo builds without that header. A test compares the two if a real header is installed.
 */
#ifndef RONDO_TENSOR_VENDOR_CUBLASLT_ABI_H
#define RONDO_TENSOR_VENDOR_CUBLASLT_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Enumerations are ints in the interface. */
enum {
  CUBLASLT_OK = 0,            /* CUBLAS_STATUS_SUCCESS */
  CUBLASLT_NO_MEMORY = 3,     /* CUBLAS_STATUS_ALLOC_FAILED */
  CUBLASLT_BAD_VALUE = 7,     /* CUBLAS_STATUS_INVALID_VALUE */
  CUBLASLT_NO_SUCH = 15,      /* CUBLAS_STATUS_NOT_SUPPORTED */
  CUBLASLT_F32 = 0,           /* CUDA_R_32F */
  CUBLASLT_F16 = 2,           /* CUDA_R_16F */
  CUBLASLT_BF16 = 14,         /* CUDA_R_16BF */
  CUBLASLT_I8 = 3,            /* CUDA_R_8I */
  CUBLASLT_I32 = 10,          /* CUDA_R_32I */
  CUBLASLT_F8_E4M3 = 28,      /* CUDA_R_8F_E4M3 */
  CUBLASLT_F8_E5M2 = 29,      /* CUDA_R_8F_E5M2 */
  CUBLASLT_COMPUTE_F32 = 68,  /* CUBLAS_COMPUTE_32F: single precision throughout */
  CUBLASLT_COMPUTE_TF32 = 77, /* CUBLAS_COMPUTE_32F_FAST_TF32: factors rounded to TF32 */
  CUBLASLT_COMPUTE_I32 = 72,  /* CUBLAS_COMPUTE_32I */
  CUBLASLT_AS_IT_IS = 0,      /* CUBLAS_OP_N */
  CUBLASLT_TRANSPOSED = 1,    /* CUBLAS_OP_T */

  CUBLASLT_PRODUCT_TRANSPOSE_A = 3,  /* CUBLASLT_MATMUL_DESC_TRANSA, int32_t */
  CUBLASLT_PRODUCT_TRANSPOSE_B = 4,  /* CUBLASLT_MATMUL_DESC_TRANSB, int32_t */
  CUBLASLT_PRODUCT_EPILOGUE = 7,     /* CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t */
  CUBLASLT_PRODUCT_BIAS = 8,         /* CUBLASLT_MATMUL_DESC_BIAS_POINTER */
  CUBLASLT_PRODUCT_KEPT = 11,        /* CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER */
  CUBLASLT_PRODUCT_KEPT_STRIDE = 12, /* CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t */
  CUBLASLT_PRODUCT_KEPT_BATCH = 13,  /* CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, int64_t */

  /* Of 8-bit floats: the factors of A and B, F32 in device memory, and how many there are. */
  CUBLASLT_PRODUCT_SCALE_A = 17,      /* CUBLASLT_MATMUL_DESC_A_SCALE_POINTER */
  CUBLASLT_PRODUCT_SCALE_B = 18,      /* CUBLASLT_MATMUL_DESC_B_SCALE_POINTER */
  CUBLASLT_PRODUCT_SCALE_MODE_A = 31, /* CUBLASLT_MATMUL_DESC_A_SCALE_MODE, int32_t; since CUDA 12.8 */
  CUBLASLT_PRODUCT_SCALE_MODE_B = 32, /* CUBLASLT_MATMUL_DESC_B_SCALE_MODE, int32_t; since CUDA 12.8 */
  CUBLASLT_SCALE_OF_ROWS = 3,         /* CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F: one for each row of A, and each
                                         column of B. Unless this is set, there is one for the matrix */

  /* The epilogue of a result, applied in this order. cublasLt.h names only some of the combinations. */
  CUBLASLT_EPILOGUE_ADD_BIAS = 4, /* CUBLASLT_EPILOGUE_BIAS: one number for each row */
  CUBLASLT_EPILOGUE_KEEP = 128,   /* as in CUBLASLT_EPILOGUE_GELU_AUX: also writes the input of gelu */
  CUBLASLT_EPILOGUE_BE_GELU = 32, /* CUBLASLT_EPILOGUE_GELU: the tanh approximation */

  CUBLASLT_LAYOUT_BATCHES = 5,      /* CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t */
  CUBLASLT_LAYOUT_BATCH_STRIDE = 6, /* CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t */

  CUBLASLT_WISH_WORKSPACE = 1,      /* CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t */
  CUBLASLT_WISH_REDUCTIONS = 3,     /* CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t */
  CUBLASLT_REDUCE_IN_PLACE = 1,     /* CUBLASLT_REDUCTION_SCHEME_INPLACE: in the order of the parts */
  CUBLASLT_REDUCE_COMPUTE_TYPE = 2, /* CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE */
  CUBLASLT_REDUCE_OUTPUT_TYPE = 4   /* CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE */
};

typedef int cublaslt_status;           /* cublasStatus_t */
typedef int cublaslt_compute;          /* cublasComputeType_t */
typedef int cublaslt_type;             /* cudaDataType_t */
typedef int cublaslt_attribute;        /* cublasLtMatmulDescAttributes_t */
typedef int cublaslt_layout_attribute; /* cublasLtMatrixLayoutAttribute_t */
typedef int cublaslt_wish;             /* cublasLtMatmulPreferenceAttributes_t */

typedef struct cublaslt_context *cublaslt_handle;  /* cublasLtHandle_t */
typedef struct cublaslt_product *cublaslt_product; /* cublasLtMatmulDesc_t */
typedef struct cublaslt_layout *cublaslt_layout;   /* cublasLtMatrixLayout_t */
typedef struct cublaslt_wishes *cublaslt_wishes;   /* cublasLtMatmulPreference_t */
typedef struct cublaslt_queue *cublaslt_stream;    /* cudaStream_t, which is a CUstream */

/* cublasLtMatmulAlgo_t */
typedef struct cublaslt_algorithm {
  uint64_t data[8];
} cublaslt_algorithm;

/* cublasLtMatmulHeuristicResult_t */
typedef struct cublaslt_choice {
  cublaslt_algorithm algorithm;
  size_t workspace_bytes;
  cublaslt_status status;
  float waves;
  int reserved[4];
} cublaslt_choice;

/* ROW(result, member, symbol, (arguments)) */
#define CUBLASLT_FUNCTIONS(ROW)                                                                                      \
  ROW(const char *, status_name, cublasLtGetStatusName, (cublaslt_status status))                                    \
  ROW(cublaslt_status, create, cublasLtCreate, (cublaslt_handle * out))                                              \
  ROW(cublaslt_status, destroy, cublasLtDestroy, (cublaslt_handle handle))                                           \
  ROW(cublaslt_status, product_create, cublasLtMatmulDescCreate,                                                     \
      (cublaslt_product * out, cublaslt_compute compute_type, cublaslt_type scale_type))                             \
  ROW(cublaslt_status, product_set, cublasLtMatmulDescSetAttribute,                                                  \
      (cublaslt_product product, cublaslt_attribute attribute, const void *value, size_t bytes))                     \
  ROW(cublaslt_status, product_destroy, cublasLtMatmulDescDestroy, (cublaslt_product product))                       \
  ROW(cublaslt_status, layout_create, cublasLtMatrixLayoutCreate,                                                    \
      (cublaslt_layout * out, cublaslt_type type, uint64_t rows, uint64_t columns, int64_t stride))                  \
  ROW(cublaslt_status, layout_set, cublasLtMatrixLayoutSetAttribute,                                                 \
      (cublaslt_layout layout, cublaslt_layout_attribute attribute, const void *value, size_t bytes))                \
  ROW(cublaslt_status, layout_destroy, cublasLtMatrixLayoutDestroy, (cublaslt_layout layout))                        \
  ROW(cublaslt_status, wishes_create, cublasLtMatmulPreferenceCreate, (cublaslt_wishes * out))                       \
  ROW(cublaslt_status, wishes_set, cublasLtMatmulPreferenceSetAttribute,                                             \
      (cublaslt_wishes wishes, cublaslt_wish wish, const void *value, size_t bytes))                                 \
  ROW(cublaslt_status, wishes_destroy, cublasLtMatmulPreferenceDestroy, (cublaslt_wishes wishes))                    \
  ROW(cublaslt_status, choose, cublasLtMatmulAlgoGetHeuristic,                                                       \
      (cublaslt_handle handle, cublaslt_product product, cublaslt_layout a, cublaslt_layout b, cublaslt_layout c,    \
       cublaslt_layout d, cublaslt_wishes wishes, int room, cublaslt_choice *choices, int *count))                   \
  ROW(cublaslt_status, multiply, cublasLtMatmul,                                                                     \
      (cublaslt_handle handle, cublaslt_product product, const void *alpha, const void *a, cublaslt_layout a_layout, \
       const void *b, cublaslt_layout b_layout, const void *beta, const void *c, cublaslt_layout c_layout, void *d,  \
       cublaslt_layout d_layout, const cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes,       \
       cublaslt_stream stream))

#endif
