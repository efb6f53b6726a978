/* SPDX-License-Identifier: MIT
 * The libraries that Rondo loads at run time, and their tables of functions. oneDNN and the CUDA driver have their own
 * headers (onednn.h, cuda_driver.h, nvrtc.h). A table may be used once rondo_library_find or rondo_library_require has
 * found its library; from then on it is constant. Threads: any.
 */
#ifndef RONDO_VENDOR_VENDOR_LIBRARIES_H
#define RONDO_VENDOR_VENDOR_LIBRARIES_H

#include "vendor/cblas_abi.h"
#include "vendor/cublaslt_abi.h"
#include "vendor/cudnn_abi.h"
#include "vendor/library_loader.h"
#include "vendor/nccl_abi.h"

typedef struct rondo_cublaslt_table {
  CUBLASLT_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cublaslt_table;

typedef struct rondo_cudnn_table {
  CUDNN_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cudnn_table;

typedef struct rondo_nccl_table {
  NCCL_FUNCTIONS(RONDO_LIBRARY_MEMBER)
  NCCL_OPTIONAL_FUNCTIONS(RONDO_LIBRARY_MEMBER) /* may be NULL */
} rondo_nccl_table;

typedef struct rondo_cblas_table {
  CBLAS_FUNCTIONS(RONDO_LIBRARY_MEMBER)
} rondo_cblas_table;

extern rondo_library rondo_cublaslt, rondo_cudnn, rondo_nccl;                       /* on CUDA */
extern rondo_library rondo_cblas, rondo_onednn_products, rondo_onednn_convolutions; /* on a CPU */

extern rondo_cublaslt_table rondo_cublaslt_api;
extern rondo_cudnn_table rondo_cudnn_api;
extern rondo_nccl_table rondo_nccl_api;
extern rondo_cblas_table rondo_cblas_api;

#endif
