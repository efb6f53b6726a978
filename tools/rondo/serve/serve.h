/* SPDX-License-Identifier: MIT
 * The settings and the results of rondo serve.
 */
#ifndef RONDO_TOOL_SERVE_H
#define RONDO_TOOL_SERVE_H

#include "onnx/served_onnx.h"
#include "serve/answer_check.h"
#include "serve/request_load.h"
#include "serve/size_comparison.h"
#include "serve/soak_test.h"

typedef struct serve_settings {
  const char *device, *look_ups, *history, *report;
  served_onnx_settings file;
  uint64_t streams, sizes, delay_us, clients, requests, least, most, longest, seed, table_rows, batch, batch_rows;
  double seconds, rate, median, spread, soak, answer_seconds;
  bool load, json, regret;
} serve_settings;

/* Loads with the same requests. */
enum {
  CLOSED_RECORDED,
  CLOSED_EAGER,
  CLOSED_CHOSEN, /* the session chooses the mode for each request */
  CLOSED_WHOLE,  /* recorded and undivided, to compare with a divided model */
  OPEN_RECORDED,
  OPEN_EAGER,
  OPEN_CHOSEN,
  OPEN_WHOLE,
  SERVE_LOADS
};
enum { SERVE_WAYS = 4 };

/* Points of the latency curve, as parts of the saturation rate. */
enum { SERVE_POINTS = 8 };

enum { SERVE_SIZES = RONDO_SESSION_MAX_SIZES * RONDO_SESSION_MAX_LENGTHS };

typedef struct serving {
  serve_settings settings;
  const char *name;
  served_model model;
  traffic history; /* sizes are chosen for these requests */
  traffic traffic; /* requests that are sent */
  size_t most_rows;
  answer_check check;
  answer_tally answers;
  rondo_device *device, *look_ups; /* NULL: the model is not divided */
  bool has_whole;                  /* whether the undivided model fits into memory and is measured, too */
  rondo_session *session;
  rondo_device_info device_info, look_ups_info;
  rondo_model_info info;
  size_t sizes[SERVE_SIZES];                           /* rows of graphs, */
  size_t lengths[SERVE_SIZES];                         /* ... and the positions of a row; 0: the model has no lengths */
  double run_us[SERVE_SIZES], current_us[SERVE_SIZES]; /* of these graphs: measured at the start, and at the end */
  double start_seconds;                                /* until all graphs were recorded */
  double rate;
  double saturation; /* requests per second, recorded, before the soak */
  double decide_ns;  /* to choose what runs a request, including the look-up of the model by name */
  load_result results[SERVE_LOADS];
  load_result curve[2][SERVE_POINTS]; /* recorded, eager */
  choice_answer choice;
  ladder ladders[LADDERS]; /* for --regret, like the choice */
  soak_result soaked;
} serving;

/* Share of padding in all rows that ran. */
double serve_padding(const load_result *r);

/* Compared with eager runs: the rate of a closed-loop load, and the median of an open-loop load. */
double serve_gain(const serving *s, int closed);
double serve_median_ratio(const serving *s, int open);

/* Whether this load was run. */
bool serve_has_load(const serving *s, int which);

extern const char *const serve_load_labels[SERVE_LOADS];

/* serve_show.c: prints the results. serve_page.c: writes them as a page. TOOL_OK, or TOOL_FAILURE after a message. */
int serve_show_text(const serving *s);
int serve_show_json(const serving *s);
int serve_write_page(const serving *s);

#endif
