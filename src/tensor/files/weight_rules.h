/* SPDX-License-Identifier: MIT
 * Rules that name tensors of a file in a set (rondo_weight_rule). In `from`, "*" stands for a part of a name that has
 * no dot, and there is at most one between two dots, so each tensor has one reading, found without backtracking.
 * Threads: any.
 */
#ifndef RONDO_TENSOR_FILES_WEIGHT_RULES_H
#define RONDO_TENSOR_FILES_WEIGHT_RULES_H

#include "tensor/files/weights_internal.h"

/* BAD_OPTIONS, naming the rule, unless all are as <rondo/weights.h> says. `call` starts the message. */
RONDO_MUST_USE rondo_status rondo_weight_rules_check(const char *call, const rondo_weights_options *options);

/* The name in the set of a tensor of a file, by rondo_release_text, or NULL if it is left out. The rule is NULL if none
 * applies. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weight_rules_name(const rondo_weights_options *options,
                                                    const rondo_allocator *allocator, const char *name, char **out_name,
                                                    const rondo_weight_rule **out_rule);

/* Whether a tensor of this name in the file is requested. Calls options->wanted. */
RONDO_MUST_USE rondo_status rondo_weight_rules_choose(const rondo_weights_options *options,
                                                      const rondo_allocator *allocator, const char *name,
                                                      bool *out_is_wanted);

/* Applies the rules to a set, which has the names of a file, and sorts it. Removes skipped tensors that are left out.
 * Errors: INVALID_ARGUMENT with DUPLICATE_NAME, SHAPE, MALFORMED (a name that cannot be one of a tensor);
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_weight_rules_apply(const rondo_weights_options *options, rondo_weights *weights);

#endif
