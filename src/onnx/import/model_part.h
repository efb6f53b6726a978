/* SPDX-License-Identifier: MIT
 * Parts of a model that runs with waits. Where a node must know a value, or the size of a result, that earlier nodes
 * compute, the import *cuts* the model: the nodes before the cut are one part, with a program of its own, and the next
 * part is imported once the host has read the values. It is the same import again, in which the nodes that earlier
 * parts have done are left out: their results are inputs of the program (*handed* values), and those that were read are
 * constants as well.
 *
 * A *trace* says which nodes were done, by their places: node of a graph, and graphs that a node imports, in their
 * order. An import is deterministic, so a later part comes by the same places.
 *
 * Invariant: what a node that is not done reads is handed on, unless it is a constant or an input of the model; sizes
 * of handed values are known to later parts. A part lives as long as those that come after it. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_MODEL_PART_H
#define RONDO_ONNX_IMPORT_MODEL_PART_H

#include "onnx/import/import_node.h"

/* A result that later parts may read, or an input of the model whose value they may need to know. */
struct rondo_onnx_handed {
  const rondo_onnx_model_part *part; /* whose program computes it; NULL: an input of the model, */
  size_t input;                      /* ... which has this index in the list of inputs */
  rondo_onnx_shape shape;            /* with the most indices of a counted dimension */
  bool is_counted;
  size_t counted_axis;
  const rondo_onnx_import_value *value; /* during the import of its part */
  const char *name;                     /* an output of the part's program; NULL: no later part reads it */
  const char *count_name;               /* likewise; NULL: it is not counted */
  void *memory;                         /* of the one who runs the part: device memory for the whole shape */
};

/* What the host reads after a part has run, at an offset in the values of all cuts. */
typedef struct rondo_onnx_cut {
  const rondo_onnx_handed *handed;
  bool is_count;        /* how many indices are used, an I64; otherwise the elements, of the program's type */
  size_t offset, bytes; /* offsets are multiples of 8 */
} rondo_onnx_cut;

/* A handed value that is an input of the part's program, by its name. */
typedef struct rondo_onnx_part_input {
  const rondo_onnx_handed *handed;
  size_t bytes;
} rondo_onnx_part_input;

typedef struct rondo_onnx_traced_graph rondo_onnx_traced_graph;

struct rondo_onnx_model_part {
  const rondo_onnx_model_part *before;            /* NULL: the first part */
  const unsigned char *known;                     /* the values of its cuts, in order; a copy */
  size_t number;                                  /* of parts before it */
  rondo_scratch scratch;                          /* the trace, and what it refers to */
  rondo_onnx_traced_graph *trace;                 /* of the main graph */
  rondo_onnx_handed *model_inputs;                /* by their indices in the list; all parts share them */
  RONDO_ARRAY(rondo_onnx_handed *) handed;        /* outputs of the program */
  RONDO_ARRAY(rondo_onnx_cut) cuts;               /* none: it is the last part */
  RONDO_ARRAY(rondo_onnx_part_input) inputs;      /* of the program, besides those of the model */
  RONDO_ARRAY(const rondo_onnx_handed *) outputs; /* of the last part, by index: from an earlier part; or NULL */
  size_t cut_bytes;
};

/* Makes the part of this import, if the model may be cut, and frees it. */
RONDO_MUST_USE rondo_status rondo_onnx_part_begin(rondo_onnx_importer *importer);
void rondo_onnx_part_destroy(const rondo_allocator *allocator, rondo_onnx_model_part *part);

/* After the inputs of the model were imported: `value` is the one with this index. What was read of it is known. */
RONDO_MUST_USE rondo_status rondo_onnx_part_add_input(rondo_onnx_importer *importer, size_t index,
                                                      rondo_onnx_import_value *value);

/* Before and after the nodes of a graph; `outer` is for the end. Between them, before each node. */
RONDO_MUST_USE rondo_status rondo_onnx_trace_begin(rondo_onnx_importer *importer, size_t nodes,
                                                   rondo_onnx_trace *outer);
void rondo_onnx_trace_node(rondo_onnx_importer *importer, size_t index);
void rondo_onnx_trace_end(rondo_onnx_importer *importer, const rondo_onnx_trace *outer);

/* The outputs of the graph that was traced last. */
RONDO_MUST_USE rondo_status rondo_onnx_trace_outputs(rondo_onnx_importer *importer, rondo_onnx_import_value *outputs,
                                                     size_t count);

/* Whether an earlier part has done the node; its results. */
bool rondo_onnx_is_traced(const rondo_onnx_importer *importer);
RONDO_MUST_USE rondo_status rondo_onnx_take_traced(rondo_onnx_node *node);

/* After a node was imported, or not: traces its results, or hands on what it reads. */
RONDO_MUST_USE rondo_status rondo_onnx_note_traced(rondo_onnx_node *node);

/* The node cannot be imported before the value is known, or its size if it is counted. */
void rondo_onnx_need_value(rondo_onnx_importer *importer, const rondo_onnx_import_value *value);

/* Cuts the model at what the refused node needs. False: it needs nothing that can be read, or no cuts are allowed. */
RONDO_MUST_USE rondo_status rondo_onnx_cut_at_node(rondo_onnx_node *node, bool *out_is_cut);

/* Notes the next output of the last part: `value` is in a program, of this part or of an earlier one; NULL: it is not.
 */
RONDO_MUST_USE rondo_status rondo_onnx_part_add_output(rondo_onnx_importer *importer,
                                                       const rondo_onnx_import_value *value);

/* The part is complete: lists the inputs of its program, and frees what no later part needs. */
RONDO_MUST_USE rondo_status rondo_onnx_part_finish(rondo_onnx_importer *importer);

/* After all nodes: cuts at the counts of outputs. If the part is not the last one, makes the outputs of its program. */
RONDO_MUST_USE rondo_status rondo_onnx_part_end(rondo_onnx_importer *importer);

/* Whether a later part has to run. */
static inline bool rondo_onnx_is_cut(const rondo_onnx_model_part *part) { return part != NULL && part->cuts.count > 0; }

/* Whether an earlier part has computed the value, which is then in its memory. */
static inline bool rondo_onnx_is_handed(const rondo_onnx_importer *importer, const rondo_onnx_import_value *value) {
  return value->handed != NULL && value->handed->part != NULL && value->handed->part != importer->part;
}

/* How many indices of the counted dimension of a value of this part are used, among the values of its cuts. */
size_t rondo_onnx_cut_count(const rondo_onnx_model_part *part, const unsigned char *values,
                            const rondo_onnx_handed *handed);

#endif
