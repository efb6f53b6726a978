/* SPDX-License-Identifier: MIT
 * Finding what convolutions use of oneDNN.
 */
#include "tensor/operators/onednn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/logging.h"
#include "tensor/libraries.h"
#include "tensor/operators/gemm.h"
#include "tensor/operators/gemm_onednn.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_usable;
static char why_not[128]; /* and was found all the same; "" otherwise */

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
    (void)snprintf(why_not, sizeof why_not, "it is oneDNN %d, and 2 is needed", rondo_onednn_major());
    return;
  }
  const char *missing = find_missing();
  if (missing != NULL) {
    (void)snprintf(why_not, sizeof why_not, "it has no %s", missing);
    return;
  }
  is_usable = rondo_onednn.engine_create(&rondo_onednn.engine, ONEDNN_CPU, 0) == ONEDNN_OK;
}

/* Not in pthread_once: a function of the user's may be behind the log. */
static void say_why_not(void) {
  static atomic_flag is_said = ATOMIC_FLAG_INIT;
  if (why_not[0] == '\0' || atomic_flag_test_and_set(&is_said)) return;
  rondo_log(rondo_onednn_major() != 2 ? RONDO_LOG_DEBUG : RONDO_LOG_WARNING, "tensor", "no convolutions from %s: %s",
            rondo_onednn_library.file.path, why_not);
}

bool rondo_onednn_makes_convolutions(void) {
  rondo_gemm_prepare();
  const int failed = pthread_once(&once, find_functions);
  (void)failed; /* it has no errors but those of a wrong argument */
  say_why_not();
  return is_usable;
}

void rondo_onednn_say_no_way(int pass, int code) {
  rondo_log(RONDO_LOG_DEBUG, "tensor", "oneDNN has no way of making pass %d of a convolution: code %d", pass, code);
}
