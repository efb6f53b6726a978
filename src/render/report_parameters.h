/* SPDX-License-Identifier: MIT
 * What a report says of one node, in words: the same under the pointer and in the table.
 */
#ifndef RONDO_RENDER_REPORT_PARAMETERS_H
#define RONDO_RENDER_REPORT_PARAMETERS_H

#include "render/report_parts.h"

/* "kernel saxpy (node 3.1)", escaped, and after a colon its parameters, dependencies and time. `brief` leaves pointers
 * out. */
void rondo_report_add_node(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief);

/* The same without a name: "4 x 1 x 1 blocks, reads 0x7f00". */
void rondo_report_add_parameters(rondo_text *text, const rondo_report_model *model, uint32_t place, bool brief);

/* "3.1": the numbers from the outermost graph on. */
void rondo_report_add_number(rondo_text *text, const rondo_report_model *model, uint32_t graph, uint32_t slot);

/* "12.3 \xC2\xB5s", "4.56 ms". */
void rondo_report_add_time(rondo_text *text, double us);

#endif
