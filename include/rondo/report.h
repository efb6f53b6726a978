/* SPDX-License-Identifier: MIT
 * Reports: a graph as one self-contained HTML file for any browser (GX-7).
 */
#ifndef RONDO_REPORT_H
#define RONDO_REPORT_H

#include <rondo/exec.h>

RONDO_EXTERN_C_BEGIN

/* Bytes that are in use from the start of one node to the end of another: memory that nodes share without alloc nodes,
 * for example the arena of a compiled program. */
typedef struct rondo_report_range {
  const char *name; /* may be NULL */
  const void *address;
  size_t bytes;
  rondo_node first, last; /* of the graph, or of child graphs in it */
} rondo_report_range;

/* An additional section of the caller, for example training curves. */
typedef struct rondo_report_section {
  const char *title;  /* its heading, and its link in the list of sections */
  const char *markup; /* the content below the heading, inserted unchanged: well-formed HTML that is also XML */
} rondo_report_section;

typedef struct rondo_report_options {
  uint32_t struct_size;
  bool skip_verify;             /* do not verify the graph */
  bool no_addresses;            /* omit pointers, so that two runs give the same page */
  const char *title;            /* NULL: the graph's name */
  const rondo_node_time *times; /* of rondo_exec_measure, for an exec of this graph; NULL: none */
  size_t time_count;
  const rondo_report_range *ranges; /* drawn in the memory map with the graph's own allocations; NULL: none */
  size_t range_count;
  const rondo_report_section *sections; /* come before the report's own sections; NULL: none */
  size_t section_count;
} rondo_report_options;
#define RONDO_REPORT_OPTIONS_INIT .struct_size = sizeof(rondo_report_options)

/* Writes the report of a graph, which may be only data. It contains figures (nodes by kind, edges, depth, width,
 * critical path, bytes, peak, lower bound), the findings of rondo_graph_verify, a drawing of the graph and of each
 * child graph, the memory map (address against time), and the nodes with their parameters and times. It works without
 * network and scripts, with the keyboard, and in light and dark mode.
 *
 * Time in the memory map is the order of rondo_graph_sort, with the nodes of a child graph at the position of its child
 * node. The lower bound is that of rondo_plan_make. Drawings show edges for up to 400 nodes in a graph, and otherwise
 * one cell for each node. However large the graph, the page draws at most 20,000 nodes and 20,000 allocations and lists
 * at most 2,000 nodes, the first ones in that order, and says what it omits. Names are truncated at 120 bytes; bytes
 * that are not UTF-8 are shown as U+FFFD.
 *
 * The markup of additional sections follows light and dark mode if it uses the CSS variables of the page as colors:
 * --ink, --faint, --line, --rule, --paper, --panel, --accent, --bad and --warn. The markup is not checked.
 *
 * options may be NULL. *out_text is freed with rondo_text_free. Takes O((nodes + edges) log nodes), without the
 * verification. Errors: INVALID_ARGUMENT (NULL, UNKNOWN_NODE: a time or range of a node that is not in the graph);
 * INVALID_GRAPH/CYCLE; LIMIT_EXCEEDED (2^32 nodes); OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_report(const rondo_graph *graph, const rondo_report_options *options,
                                                         char **out_text);

RONDO_EXTERN_C_END

#endif
