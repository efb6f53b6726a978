/* SPDX-License-Identifier: MIT
 * Where NCCL is found, and which functions it must have.
 */
#include "vendor/nccl.h"

rondo_nccl_table rondo_nccl_api;

static const char *const nccl_symbols[] = {NCCL_FUNCTIONS(RONDO_LIBRARY_NAME)
                                               NCCL_OPTIONAL_FUNCTIONS(RONDO_LIBRARY_NAME)};

rondo_library rondo_nccl = {
    .name = "NCCL",
    .purpose = "collectives on CUDA devices",
    .needed = "NCCL 2",
    .missing = "collectives on CUDA need NCCL, which was not found (install it, or name it by RONDO_NCCL_LIBRARY)",
    .option = RONDO_OPTION_NCCL_LIBRARY,
    .usual = {"libnccl.so.2"},
    RONDO_LIBRARY_FUNCTIONS(nccl_symbols, rondo_nccl_api),
    .optional_count = 0 NCCL_OPTIONAL_FUNCTIONS(RONDO_LIBRARY_COUNT),
    .search = PTHREAD_MUTEX_INITIALIZER};
