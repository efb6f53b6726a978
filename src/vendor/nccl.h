/* SPDX-License-Identifier: MIT
 * NCCL, which is loaded at run time. The table may be used once rondo_library_require has found the library; from then
 * on it is constant. Threads: any.
 */
#ifndef RONDO_VENDOR_NCCL_H
#define RONDO_VENDOR_NCCL_H

#include "vendor/library_loader.h"
#include "vendor/nccl_abi.h"

typedef struct rondo_nccl_table {
  NCCL_FUNCTIONS(RONDO_LIBRARY_MEMBER)
  NCCL_OPTIONAL_FUNCTIONS(RONDO_LIBRARY_MEMBER) /* may be NULL */
} rondo_nccl_table;

extern rondo_library rondo_nccl;
extern rondo_nccl_table rondo_nccl_api;

#endif
