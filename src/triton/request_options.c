/* SPDX-License-Identifier: MIT
 * Reading of flags, correlation ids and parameters. A server that lacks the functions has no sequences: each request is
 * one of its own.
 */
#include "triton/request_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/server_functions.h"

enum { MOST_TOKENS = 1 << 30 };

/* A correlation id is a number unless the server says that it is not. */
static rondo_status read_correlation(triton_request *request, rondo_triton_correlation *out) {
  const char *text;
  if (rondo_triton_server.request_correlation == NULL) return RONDO_OK;
  triton_error *is_text = rondo_triton_server.request_correlation(request, &out->number);
  if (is_text == NULL) return RONDO_OK;
  if (rondo_triton_server.request_correlation_text == NULL)
    return rondo_triton_check(is_text, "TRITONBACKEND_RequestCorrelationId");
  rondo_triton_ignore(is_text);
  out->number = 0;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_correlation_text(request, &text),
                               "TRITONBACKEND_RequestCorrelationIdString"));
  if (strlen(text) >= sizeof out->text)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "the correlation id has %zu bytes: give at most %zu", strlen(text), sizeof out->text - 1);
  memcpy(out->text, text, strlen(text) + 1);
  return RONDO_OK;
}

static rondo_status read_flags(triton_request *request, rondo_triton_request_options *out) {
  uint32_t flags = 0;
  if (rondo_triton_server.request_flags != NULL)
    RONDO_TRY(rondo_triton_check(rondo_triton_server.request_flags(request, &flags), "TRITONBACKEND_RequestFlags"));
  const bool is_alone = !rondo_triton_has_correlation(&out->correlation);
  out->starts = is_alone || (flags & TRITON_SEQUENCE_START) != 0;
  out->ends = is_alone || (flags & TRITON_SEQUENCE_END) != 0;
  return RONDO_OK;
}

/* An integer, or a text that is one. */
static rondo_status read_number(const char *key, triton_parameter_type type, const void *value, int64_t least,
                                int64_t most, int64_t *out) {
  char *end = NULL;
  bool is_number = type == TRITON_PARAMETER_INT;
  if (is_number) memcpy(out, value, sizeof *out);
  if (type == TRITON_PARAMETER_STRING) {
    const char *text = value;
    errno = 0;
    *out = strtoll(text, &end, 10);
    is_number = end != text && *end == '\0' && errno == 0;
  }
  if (is_number && *out >= least && *out <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "the request's parameter '%s' is not a number from %lld to %lld", key, (long long)least,
                    (long long)most);
}

static rondo_status read_choice(const char *key, triton_parameter_type type, const void *value, bool *out) {
  int64_t number = 0;
  if (type == TRITON_PARAMETER_BOOL) {
    memcpy(out, value, sizeof *out);
    return RONDO_OK;
  }
  RONDO_TRY(read_number(key, type, value, 0, 1, &number));
  *out = number == 1;
  return RONDO_OK;
}

static rondo_status read_parameter(triton_request *request, uint32_t index, bool has_sequences,
                                   rondo_triton_request_options *out) {
  const char *key;
  const void *value;
  triton_parameter_type type;
  int64_t number = 0;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_parameter(request, index, &key, &type, &value),
                               "TRITONBACKEND_RequestParameter"));
  if (strcmp(key, "choose_sizes") == 0) return read_choice(key, type, value, &out->chooses_sizes);
  if (!has_sequences) return RONDO_OK;
  if (strcmp(key, "max_tokens") == 0) {
    RONDO_TRY(read_number(key, type, value, 1, MOST_TOKENS, &number));
    out->max_tokens = (uint32_t)number;
  } else if (strcmp(key, "end_token") == 0) {
    RONDO_TRY(read_number(key, type, value, INT64_MIN, INT64_MAX, &out->end_token));
    out->has_end_token = true;
  }
  return RONDO_OK;
}

rondo_status rondo_triton_read_options(triton_request *request, bool has_sequences, rondo_triton_request_options *out) {
  uint32_t count = 0;
  *out = (rondo_triton_request_options){.max_tokens = 0};
  if (has_sequences) RONDO_TRY(read_correlation(request, &out->correlation));
  if (has_sequences) RONDO_TRY(read_flags(request, out));
  if (rondo_triton_server.request_parameter_count == NULL || rondo_triton_server.request_parameter == NULL)
    return RONDO_OK;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.request_parameter_count(request, &count),
                               "TRITONBACKEND_RequestParameterCount"));
  for (uint32_t i = 0; i < count; i++) RONDO_TRY(read_parameter(request, i, has_sequences, out));
  return RONDO_OK;
}

bool rondo_triton_has_correlation(const rondo_triton_correlation *correlation) {
  return correlation->number != 0 || correlation->text[0] != '\0';
}

bool rondo_triton_is_same_correlation(const rondo_triton_correlation *a, const rondo_triton_correlation *b) {
  return a->number == b->number && strcmp(a->text, b->text) == 0;
}

const char *rondo_triton_sequence_text(const rondo_triton_correlation *correlation,
                                       char buffer[RONDO_TRITON_SEQUENCE_TEXT]) {
  if (correlation->text[0] != '\0')
    (void)snprintf(buffer, RONDO_TRITON_SEQUENCE_TEXT, "sequence '%s'", correlation->text);
  else
    (void)snprintf(buffer, RONDO_TRITON_SEQUENCE_TEXT, "sequence %llu", (unsigned long long)correlation->number);
  return buffer;
}
