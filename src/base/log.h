/* SPDX-License-Identifier: MIT
 * Logging through the sink (<rondo/log.h>) from inside the library.
 */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>

#include <rondo/log.h>

#include "base/component.h"

/* The valid areas: the layers, and some of their parts. RONDO_LOG uses these names. */
#define RONDO_LOG_AREAS "check", "cuda", "device", "exec", "memory", "options", "tensor", "trace", "tree", "vendor"

/* Whether the text is valid for RONDO_LOG: levels, areas, and areas with levels, separated by commas. */
bool rondo_log_is_setting(const char *text);

/* Whether a sink accepts messages of this level in any area. One load; use it to avoid formatting a message. */
bool rondo_log_on(rondo_log_level level);

/* Logs one line. A long message is truncated, and newlines become blanks. Never fails, and holds no lock while the sink
 * runs. */
RONDO_PRIVATE void rondo_log(rondo_log_level level, const char *area, const char *format, ...) RONDO_PRINTF(3, 4);

#endif
