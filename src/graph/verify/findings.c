/* SPDX-License-Identifier: MIT
 * The findings that the user reads. If the list is full, errors replace warnings, so warnings never hide an error.
 */
#include "graph/verify/findings.h"

#include <assert.h>

#include "base/error.h"
#include "base/versioned_struct.h"
#include "graph/node.h"
#include "graph/verify/verifier.h"

#define DEFAULT_MAX 100

typedef RONDO_ARRAY(rondo_finding) finding_list;

struct rondo_findings {
  rondo_allocator allocator;
  uint32_t max;
  finding_list errors, warnings; /* together max at most; texts are owned */
  uint64_t error_count, warning_count;
  uint32_t first_number; /* of the first error's node, for rondo_error.node */
};

const char *rondo_severity_name(rondo_severity severity) {
  if (severity == RONDO_SEVERITY_ERROR) return "error";
  return severity == RONDO_SEVERITY_WARNING ? "warning" : "unknown";
}

rondo_status rondo_findings_make(const rondo_allocator *allocator, uint32_t max, rondo_findings **out) {
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof **out, out));
  (*out)->allocator = *allocator;
  (*out)->max = max == 0 ? DEFAULT_MAX : max;
  return RONDO_OK;
}

static void free_texts(const rondo_allocator *allocator, const rondo_finding *finding) {
  rondo_release_text(allocator, (char *)(uintptr_t)finding->allocation);
  rondo_release_text(allocator, (char *)(uintptr_t)finding->message);
}

static void drop_last(const rondo_allocator *allocator, finding_list *list) {
  assert(list->count > 0);
  free_texts(allocator, &list->items[--list->count]);
}

void rondo_findings_destroy(rondo_findings *findings) {
  if (findings == NULL) return;
  const rondo_allocator allocator = findings->allocator;
  while (findings->errors.count > 0) drop_last(&allocator, &findings->errors);
  while (findings->warnings.count > 0) drop_last(&allocator, &findings->warnings);
  rondo_array_free(&allocator, &findings->errors);
  rondo_array_free(&allocator, &findings->warnings);
  rondo_release(&allocator, findings, 1, sizeof *findings);
}

bool rondo_findings_count_one(rondo_findings *findings, rondo_severity severity) {
  if (severity == RONDO_SEVERITY_ERROR) {
    findings->error_count++;
    return findings->errors.count < findings->max;
  }
  findings->warning_count++;
  return rondo_findings_count(findings) < findings->max;
}

void rondo_findings_count_more(rondo_findings *findings, uint64_t errors, uint64_t warnings) {
  findings->error_count += errors;
  findings->warning_count += warnings;
}

rondo_status rondo_findings_add(rondo_findings *findings, const rondo_finding *finding, uint32_t number) {
  const rondo_allocator *allocator = &findings->allocator;
  finding_list *list = finding->severity == RONDO_SEVERITY_ERROR ? &findings->errors : &findings->warnings;
  char *allocation, *message;
  RONDO_TRY(rondo_array_reserve(allocator, list, list->count + 1));
  RONDO_TRY(rondo_allocate_text(allocator, finding->allocation, &allocation));
  const rondo_status status = rondo_allocate_text(allocator, finding->message, &message);
  if (status != RONDO_OK) {
    rondo_release_text(allocator, allocation);
    return status;
  }
  if (list == &findings->errors && list->count == 0) findings->first_number = number;
  assert(rondo_findings_count(findings) <= findings->max);
  if (rondo_findings_count(findings) == findings->max) drop_last(allocator, &findings->warnings);
  rondo_finding *kept = &list->items[list->count++];
  *kept = *finding;
  kept->struct_size = sizeof *kept;
  kept->allocation = allocation;
  kept->message = message;
  return RONDO_OK;
}

size_t rondo_findings_count(const rondo_findings *findings) {
  return findings == NULL ? 0 : findings->errors.count + findings->warnings.count;
}

void rondo_findings_totals(const rondo_findings *findings, uint64_t *out_errors, uint64_t *out_warnings) {
  if (out_errors != NULL) *out_errors = findings == NULL ? 0 : findings->error_count;
  if (out_warnings != NULL) *out_warnings = findings == NULL ? 0 : findings->warning_count;
}

rondo_status rondo_findings_get(const rondo_findings *findings, size_t index, rondo_finding *out_finding) {
  RONDO_TRY(rondo_require("rondo_findings_get", "the out-parameter", out_finding));
  RONDO_TRY(rondo_require("rondo_findings_get", "findings", findings));
  if (index >= rondo_findings_count(findings))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "rondo_findings_get: there are %zu findings, and none at index %zu",
                      rondo_findings_count(findings), index);
  const size_t errors = findings->errors.count;
  const rondo_finding *at = index < errors ? &findings->errors.items[index] : &findings->warnings.items[index - errors];
  return rondo_versioned_write("rondo_finding", at, out_finding, sizeof *at);
}

rondo_status rondo_findings_raise(const rondo_findings *findings) {
  if (findings->error_count == 0) return RONDO_OK;
  const rondo_finding *first = &findings->errors.items[0];
  const uint32_t node = findings->first_number;
  if (findings->error_count == 1) return rondo_fail_node(first->status, first->reason, node, "%s", first->message);
  return rondo_fail_node(first->status, first->reason, node, "%s (and %llu more: rondo_graph_verify lists them)",
                         first->message, (unsigned long long)(findings->error_count - 1));
}
