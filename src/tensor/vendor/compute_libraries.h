/* SPDX-License-Identifier: MIT
 * The libraries that compute for operators, which are loaded at run time, and their tables of functions. oneDNN has a
 * header of its own (onednn.h). A table may be used once rondo_library_find has found its library; from then on it is
 * constant. Threads: any.
 */
#ifndef RONDO_TENSOR_VENDOR_COMPUTE_LIBRARIES_H
#define RONDO_TENSOR_VENDOR_COMPUTE_LIBRARIES_H

#include "tensor/vendor/cblas_abi.h"
#include "tensor/vendor/cublaslt_abi.h"
#include "tensor/vendor/cudnn_abi.h"
#include "vendor/library_loader.h"

typedef struct rondo_cublaslt_table {
  CUBLASLT_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cublaslt_table;

typedef struct rondo_cudnn_table {
  CUDNN_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cudnn_table;

typedef struct rondo_cblas_table {
  CBLAS_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cblas_table;

extern rondo_library rondo_cublaslt, rondo_cudnn;                                   /* on CUDA */
extern rondo_library rondo_cblas, rondo_onednn_products, rondo_onednn_convolutions; /* on a CPU */

extern rondo_cublaslt_table rondo_cublaslt_api;
extern rondo_cudnn_table rondo_cudnn_api;
extern rondo_cblas_table rondo_cblas_api;

#endif
