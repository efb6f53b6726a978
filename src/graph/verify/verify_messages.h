/* SPDX-License-Identifier: MIT
 * From mistakes to findings: which nodes, which edge would mend it, and the words.
 */
#ifndef RONDO_GRAPH_VERIFY_VERIFY_MESSAGES_H
#define RONDO_GRAPH_VERIFY_VERIFY_MESSAGES_H

#include "graph/verify/verifier_internal.h"

/* Step 4. */
RONDO_MUST_USE rondo_status rondo_verify_report(rondo_verifier *verifier, rondo_findings *findings);

#endif
