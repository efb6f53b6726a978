/* SPDX-License-Identifier: MIT
 * Finding what convolutions use of oneDNN.
 */
#include "tensor/operators/onednn.h"

#include <pthread.h>

#include "base/logging.h"
#include "tensor/operators/gemm.h"
#include "tensor/operators/gemm_onednn.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_usable;

onednn_api rondo_onednn;

static const char *find_missing(void) {
#define FIND(member, symbol, arguments) \
  if (!rondo_onednn_find(#symbol, &rondo_onednn.member)) return #symbol;
  ONEDNN_FUNCTIONS(FIND)
#undef FIND
  if (!rondo_onednn_find(ONEDNN_SIZE_SYMBOL, &rondo_onednn.layout_bytes)) return ONEDNN_SIZE_SYMBOL;
  return rondo_onednn_find(ONEDNN_QUERY_SYMBOL, &rondo_onednn.way_layout) ? NULL : ONEDNN_QUERY_SYMBOL;
}

static void find_functions(void) {
  if (!rondo_gemm_has_onednn()) return;
  if (rondo_onednn_major() != 2) {
    rondo_log(RONDO_LOG_DEBUG, "tensor", "no convolutions from %s: it is oneDNN %d, and 2 is needed",
              rondo_gemm_library(), rondo_onednn_major());
    return;
  }
  const char *missing = find_missing();
  if (missing != NULL) {
    rondo_log(RONDO_LOG_WARNING, "tensor", "no convolutions from %s: it has no %s", rondo_gemm_library(), missing);
    return;
  }
  is_usable = rondo_onednn.engine_create(&rondo_onednn.engine, ONEDNN_CPU, 0) == ONEDNN_OK;
}

bool rondo_onednn_makes_convolutions(void) {
  rondo_gemm_prepare();
  const int failed = pthread_once(&once, find_functions);
  (void)failed; /* it has no errors but those of a wrong argument */
  return is_usable;
}

void rondo_onednn_say_no_way(int pass, int code) {
  rondo_log(RONDO_LOG_DEBUG, "tensor", "oneDNN has no way of making pass %d of a convolution: code %d", pass, code);
}
