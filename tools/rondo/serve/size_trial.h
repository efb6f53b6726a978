/* SPDX-License-Identifier: MIT
 * Sizes on trial: graphs of a network for given sizes, recorded in a session that has nothing else to do, and measured
 * there. Sizes that are measured together can be compared.
 */
#ifndef RONDO_TOOL_SIZE_TRIAL_H
#define RONDO_TOOL_SIZE_TRIAL_H

#include "models/recommender.h"

/* Of `count` sizes, descending and no two alike, what a graph on one stream costs, by index. Returns TOOL_OK, or
 * TOOL_FAILURE having said why. */
int trial_measure(rondo_device *device, const recommender *model, const size_t *sizes, size_t count,
                  rondo_size_candidate *out);

#endif
