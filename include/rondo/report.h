/* SPDX-License-Identifier: MIT
 * A graph as a page to look at: one HTML file for any browser, that needs nothing else (GX-7).
 */
#ifndef RONDO_REPORT_H
#define RONDO_REPORT_H

#include <rondo/program.h>

RONDO_EXTERN_C_BEGIN

/* Bytes that hold something from the begin of one node to the end of another: memory that nodes share without alloc
 * nodes, such as the arena of a compiled program. */
typedef struct rondo_report_range {
  const char *name; /* may be NULL */
  const void *address;
  size_t bytes;
  rondo_node first, last; /* of the graph, or of child graphs in it */
} rondo_report_range;

/* A section of the host's own: curves of a training, say. */
typedef struct rondo_report_section {
  const char *title; /* its heading, and its link in the list of sections */
  const char
      *markup; /* what stands below the heading, put in as it is: well-formed elements of HTML that are XML too */
} rondo_report_section;

typedef struct rondo_report_options {
  uint32_t struct_size;
  bool skip_verify;             /* do not look for mistakes */
  bool no_addresses;            /* leave pointers out, so that two runs give the same page */
  const char *title;            /* NULL: the graph's name */
  const rondo_node_time *times; /* by rondo_exec_measure, of an exec of this graph; NULL: none */
  size_t time_count;
  const rondo_report_range *ranges; /* drawn in the memory map beside the graph's own allocations; NULL: none */
  size_t range_count;
  const rondo_report_section *sections; /* ahead of the page's own; NULL: none */
  size_t section_count;
} rondo_report_options;
#define RONDO_REPORT_OPTIONS_INIT .struct_size = sizeof(rondo_report_options)

/* Writes the page of a graph, also of one of data only: figures (nodes by kind, edges, depth, width, critical path,
 * bytes, peak, lower bound), what rondo_graph_verify finds, a drawing of the graph and of each child graph, the memory
 * map (address against time), and the nodes with their parameters and times. It works without a network and without
 * scripts, with the keyboard, and in light and dark.
 *
 * Time, in the memory map, is the order of rondo_graph_sort, with what is in a child graph in the place of its node;
 * the lower bound is that of rondo_plan_make. Drawings have edges for up to 400 nodes a graph, then one cell a node.
 * However large the graph, the page has no more than 20,000 nodes drawn, 2,000 listed and 20,000 allocations, the first
 * ones in that order, and says what is left out; names are cut at 120 bytes, and what is not UTF-8 in them is shown as
 * U+FFFD.
 *
 * Markup of the host's sections follows light and dark when its colours are the page's variables of CSS: --ink,
 * --faint,
 * --line, --rule, --paper, --panel, --accent, --bad and --warn. What it is made of is not checked.
 *
 * options may be NULL. *out_text is freed with rondo_text_free. Work is O((nodes + edges) log nodes) but for the
 * verification. Errors: INVALID_ARGUMENT (NULL, UNKNOWN_NODE: a time or range of a node that is not in the graph);
 * INVALID_GRAPH/CYCLE; LIMIT_EXCEEDED (2^32 nodes); OUT_OF_MEMORY. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_report(const rondo_graph *graph, const rondo_report_options *options,
                                                         char **out_text);

/* The page of a compiled program's recorded run: as rondo_graph_report of its graph, with what the arena holds while it
 * runs as ranges, behind those of the options: each input and result, by its name or that of its operator and its
 * number. Errors: as rondo_graph_report; INVALID_STATE when it was not recorded. Thread-compatible. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compiled_report(const rondo_compiled *compiled,
                                                            const rondo_report_options *options, char **out_text);

RONDO_EXTERN_C_END

#endif
