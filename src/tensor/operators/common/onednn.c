/* SPDX-License-Identifier: MIT
 * What convolutions use of oneDNN, as a library of its own: products do without.
 */
#include "tensor/operators/common/onednn.h"

#include <stdio.h>

#include "base/log.h"
#include "tensor/operators/matmul/gemm_onednn.h"
#include "tensor/vendor/libraries.h"

onednn_api rondo_onednn;

static const rondo_library_symbol symbols[] = {{ONEDNN_SIZE_SYMBOL, offsetof(onednn_api, layout_bytes)},
                                               {ONEDNN_QUERY_SYMBOL, offsetof(onednn_api, way_layout)},
#define SYMBOL(member, symbol, arguments) {#symbol, offsetof(onednn_api, member)},
                                               ONEDNN_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static const char *make_engine(const rondo_dylib *file) {
  static char fault[64]; /* of the one search that there is */
  (void)file;
  if (rondo_onednn_major() != 2) return "it is another release than oneDNN 2";
  const int code = rondo_onednn.engine_create(&rondo_onednn.engine, ONEDNN_CPU, 0);
  if (code == ONEDNN_OK) return NULL;
  rondo_onednn_convolutions.is_faulty = true;
  (void)snprintf(fault, sizeof fault, "it makes no engine for the CPU (code %d)", code);
  return fault;
}

rondo_library rondo_onednn_convolutions = {.name = "oneDNN",
                                           .purpose = "convolutions on CPU devices",
                                           .needed = "oneDNN 2",
                                           .option = RONDO_OPTION_ONEDNN_LIBRARY,
                                           .symbols = symbols,
                                           .symbol_count = sizeof symbols / sizeof symbols[0],
                                           .functions = &rondo_onednn,
                                           .base = &rondo_onednn_library,
                                           .accept = make_engine,
                                           .search = PTHREAD_MUTEX_INITIALIZER};

bool rondo_onednn_makes_convolutions(void) { return rondo_library_find(&rondo_onednn_convolutions); }

void rondo_onednn_say_no_way(int pass, int code) {
  rondo_log(RONDO_LOG_DEBUG, "tensor", "oneDNN has no way of making pass %d of a convolution: code %d", pass, code);
}
