/* SPDX-License-Identifier: MIT
 * What rondo serve was told, and what it has found.
 */
#ifndef RONDO_TOOL_SERVE_H
#define RONDO_TOOL_SERVE_H

#include "models/recommender.h"
#include "serve/request_load.h"
#include "serve/size_comparison.h"
#include "serve/soak_test.h"

typedef struct serve_settings {
  const char *device, *look_ups, *history, *report;
  uint64_t streams, sizes, delay_us, clients, requests, least, most, seed, table_rows, batch, batch_rows;
  double seconds, rate, median, spread, soak, answer_seconds;
  bool load, json, regret;
} serve_settings;

/* Loads with the same requests. */
enum {
  CLOSED_RECORDED,
  CLOSED_EAGER,
  CLOSED_CHOSEN, /* by the session, for each request */
  CLOSED_WHOLE,  /* recorded, undivided, beside a divided model */
  OPEN_RECORDED,
  OPEN_EAGER,
  OPEN_CHOSEN,
  OPEN_WHOLE,
  SERVE_LOADS
};
enum { SERVE_WAYS = 4 };

/* Rates of the latency curve, as parts of what there can be. */
enum { SERVE_POINTS = 8 };

typedef struct serving {
  serve_settings settings;
  const char *name;
  recommender model;
  traffic history; /* what sizes are chosen for */
  traffic traffic; /* what comes */
  size_t most_rows;
  recommender_inputs inputs;
  rondo_device *device, *look_ups; /* NULL: the model is not divided */
  bool has_whole;                  /* nor is the one that it is compared with, if there is memory for that */
  rondo_session *session;
  rondo_device_info device_info, look_ups_info;
  rondo_model_info info;
  size_t sizes[RONDO_SESSION_MAX_SIZES];                                       /* rows of graphs */
  double run_us[RONDO_SESSION_MAX_SIZES], current_us[RONDO_SESSION_MAX_SIZES]; /* of theirs, measured and at the end */
  double start_seconds;                                                        /* until all graphs stood */
  double rate;
  double saturation; /* requests a second, recorded, before the soak */
  double decide_ns;  /* to say what runs a request, its model looked up by name */
  load_result results[SERVE_LOADS];
  load_result curve[2][SERVE_POINTS]; /* recorded, eager */
  choice_answer choice;
  ladder ladders[LADDERS]; /* for --regret, as is the choice */
  soak_result soaked;
} serving;

/* Share of padding in the rows that ran. */
double serve_padding(const load_result *r);

/* Compared with eager runs: requests a second of a load of the closed loop, the median of one of the open loop. */
double serve_gain(const serving *s, int closed);
double serve_median_ratio(const serving *s, int open);

/* Whether there was this load. */
bool serve_has_load(const serving *s, int which);

extern const char *const serve_load_labels[SERVE_LOADS];

/* serve_show.c: prints the results. serve_page.c: writes them as a page. TOOL_OK, or TOOL_FAILURE after a message. */
int serve_show_text(const serving *s);
int serve_show_json(const serving *s);
int serve_write_page(const serving *s);

#endif
