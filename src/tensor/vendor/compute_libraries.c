/* SPDX-License-Identifier: MIT
 * Where each library is found, and which functions it must have.
 */
#include "tensor/vendor/compute_libraries.h"

rondo_cublaslt_table rondo_cublaslt_api;
rondo_cudnn_table rondo_cudnn_api;
rondo_cblas_table rondo_cblas_api;

static const char *const cublaslt_symbols[] = {CUBLASLT_FUNCTIONS(RONDO_LIBRARY_NAME)};
static const char *const cudnn_symbols[] = {CUDNN_FUNCTIONS(RONDO_LIBRARY_NAME)};
static const char *const cblas_symbols[] = {CBLAS_FUNCTIONS(RONDO_LIBRARY_NAME)};

rondo_library rondo_cublaslt = {.name = "cuBLASLt",
                                .purpose = "matrix products on CUDA devices",
                                .needed = "cuBLAS of CUDA 12 or 13",
                                .option = RONDO_OPTION_CUBLASLT_LIBRARY,
                                .usual = {"libcublasLt.so.13", "libcublasLt.so.12"},
                                RONDO_LIBRARY_FUNCTIONS(cublaslt_symbols, rondo_cublaslt_api),
                                .search = PTHREAD_MUTEX_INITIALIZER};

rondo_library rondo_cudnn = {.name = "cuDNN",
                             .purpose = "convolutions and attention on CUDA devices",
                             .needed = "cuDNN 9",
                             .option = RONDO_OPTION_CUDNN_LIBRARY,
                             .usual = {"libcudnn.so.9"},
                             RONDO_LIBRARY_FUNCTIONS(cudnn_symbols, rondo_cudnn_api),
                             .search = PTHREAD_MUTEX_INITIALIZER};

rondo_library rondo_cblas = {.name = "CBLAS",
                             .purpose = "matrix products on CPU devices",
                             .needed = "a BLAS with the CBLAS interface",
                             .option = RONDO_OPTION_CBLAS_LIBRARY,
                             .usual = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"},
                             RONDO_LIBRARY_FUNCTIONS(cblas_symbols, rondo_cblas_api),
                             .search = PTHREAD_MUTEX_INITIALIZER};
