/* SPDX-License-Identifier: MIT
 * What the JSON writer and reader agree on.
 */
#ifndef RONDO_GRAPH_GRAPH_JSON_H
#define RONDO_GRAPH_GRAPH_JSON_H

#define RONDO_GRAPH_JSON_VERSION 1

/* By rondo_access; "" for 0. */
#define RONDO_ACCESS_COUNT 5
extern const char *const rondo_access_names[RONDO_ACCESS_COUNT];

#endif
