/* SPDX-License-Identifier: MIT
 * Memory as the verifier sees it: points, cells and regions; what nodes access; which free belongs to which alloc.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFY_LIFETIMES_H
#define RONDO_GRAPH_VERIFY_VERIFY_LIFETIMES_H

#include "graph/verify/verifier_internal.h"

/* Steps 1 and 2. */
RONDO_MUST_USE rondo_status rondo_verify_collect(rondo_verifier *verifier);
RONDO_MUST_USE rondo_status rondo_verify_pair_frees(rondo_verifier *verifier);

#endif
