/* SPDX-License-Identifier: MIT
 * Folding: what depends on constants alone is computed at import, by the operators of programs on a CPU device. Nodes
 * add their operators to the current folding program, and their results are deferred constants. When the elements of
 * one are needed, its program is compiled and run once; small results of the same program are computed by the same run,
 * so that a chain of shape arithmetic takes one. Then the next node begins another program, in which the results are
 * states. Nodes that read large constants have a program of their own, so that runs of the other copy no weights.
 *
 * Invariant: a deferred constant is in the list of its folding program until it is computed. Threads: one at a time.
 */
#ifndef RONDO_ONNX_IMPORT_FOLDING_H
#define RONDO_ONNX_IMPORT_FOLDING_H

#include "onnx/import/importer.h"

/* Larger constants are not computed together with others, and none from values that the caller gave. */
#define RONDO_ONNX_SMALL_BYTES 65536

/* How many programs are compiled and run at most, so that a loop in a bad file takes seconds: one whose condition is
 * computed takes a program in each iteration. */
#define RONDO_ONNX_MOST_FOLDINGS 8192u

/* The current folding program for nodes with these inputs, or another one. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_onnx_folding_open(rondo_onnx_importer *importer,
                                                    const rondo_onnx_import_value *inputs, size_t count,
                                                    rondo_onnx_folding **out);
rondo_program *rondo_onnx_folding_program(const rondo_onnx_folding *folding);

/* The constant as a value of the folding program. A constant that another program has deferred is computed. */
RONDO_MUST_USE rondo_status rondo_onnx_folding_operand(rondo_onnx_importer *importer, rondo_onnx_folding *folding,
                                                       rondo_onnx_constant *constant, rondo_value *out);

/* A constant that is deferred: `result` of the program, with the type that the model gives it. */
RONDO_MUST_USE rondo_status rondo_onnx_folding_defer(rondo_onnx_importer *importer, rondo_onnx_folding *folding,
                                                     const rondo_onnx_shape *shape, rondo_value result,
                                                     rondo_onnx_constant **out);

/* Makes a deferred or filled constant a held one. Errors: LIMIT_EXCEEDED; those of compiling and running. */
RONDO_MUST_USE rondo_status rondo_onnx_folding_compute(rondo_onnx_importer *importer, rondo_onnx_constant *constant);

/* The next nodes begin other folding programs. */
void rondo_onnx_folding_leave(rondo_onnx_importer *importer);

/* Frees all folding programs, and closes the device. */
RONDO_MUST_USE rondo_status rondo_onnx_folding_end(rondo_onnx_importer *importer);

#endif
