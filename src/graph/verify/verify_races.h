/* SPDX-License-Identifier: MIT
 * Races.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFY_RACES_H
#define RONDO_GRAPH_VERIFY_VERIFY_RACES_H

#include "graph/verify/verifier_internal.h"

/* Step 3, for one exact or loose access; its region is set. */
RONDO_MUST_USE rondo_status rondo_verify_race(rondo_verifier *verifier, uint32_t access);

/* An alloc node covers the cells again. */
void rondo_verify_forget(rondo_verifier *verifier, uint32_t first, uint32_t past);

#endif
