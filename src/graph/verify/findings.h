/* SPDX-License-Identifier: MIT
 * The findings of a verification: errors and warnings, each in the order found. Findings beyond the limit are only
 * counted.
 */
#ifndef RONDO_GRAPH_VERIFY_FINDINGS_H
#define RONDO_GRAPH_VERIFY_FINDINGS_H

#include <rondo/verify.h>

#include "base/array.h"

#define RONDO_FINDING_MESSAGE 960

RONDO_MUST_USE rondo_status rondo_findings_make(const rondo_allocator *allocator, uint32_t max, rondo_findings **out);

/* Counts a finding. True if it is kept: then call rondo_findings_add. */
bool rondo_findings_count_one(rondo_findings *findings, rondo_severity severity);
/* Counts findings of which only the number is known. */
void rondo_findings_count_more(rondo_findings *findings, uint64_t errors, uint64_t warnings);
/* `number` is for rondo_error.node. */
RONDO_MUST_USE rondo_status rondo_findings_add(rondo_findings *findings, const rondo_finding *finding, uint32_t number);

#endif
