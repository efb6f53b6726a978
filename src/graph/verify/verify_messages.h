/* SPDX-License-Identifier: MIT
 * Turns mistakes into findings: which nodes they concern, which edge would correct them, and the message.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFY_MESSAGES_H
#define RONDO_GRAPH_VERIFY_VERIFY_MESSAGES_H

#include "graph/verify/verifier_internal.h"

/* Step 4. */
RONDO_MUST_USE rondo_status rondo_verify_report(rondo_verifier *verifier, rondo_findings *findings);

#endif
