/* SPDX-License-Identifier: MIT
 * The picture of a plan as an SVG element, for a page or, with its style, for its own file. The same input always gives
 * the same text.
 */
#ifndef RONDO_RENDER_PLAN_PICTURE_H
#define RONDO_RENDER_PLAN_PICTURE_H

#include <rondo/plan.h>

#include "base/text.h"

/* Writes the tooltip of an item into the text. */
typedef void (*rondo_picture_describe)(rondo_text *text, const void *user, size_t item);

typedef struct rondo_picture {
  const rondo_plan_problem *problem; /* checked */
  const size_t *offsets;
  uint32_t width, height; /* pixels */
  const char *title;
  const char *time_name;    /* the label of the time axis: "step" */
  const char *const *names; /* as in rondo_plan_picture_options */
  const uint64_t *times;
  size_t capacity;
  rondo_picture_describe describe; /* NULL: name, bytes, offset, lifetime */
  const void *user;
} rondo_picture;

/* Adds an <svg> element of the class "rondo-map". `with_style`: with its CSS rules inside. Errors are kept in the text.
 */
void rondo_picture_add(rondo_text *text, const rondo_picture *picture, bool with_style);

/* Adds the CSS rules for "rondo-map" and both colour schemes. Call it once for a page. */
void rondo_picture_add_style(rondo_text *text);

#endif
