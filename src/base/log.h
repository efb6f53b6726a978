/* SPDX-License-Identifier: MIT
 * Saying things through the log sink (<rondo/log.h>) from inside the library.
 */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>

#include <rondo/log.h>

/* What `area` may be: the layers, and parts of them that have much to say. RONDO_LOG names them. */
#define RONDO_LOG_AREAS "check", "cuda", "device", "exec", "memory", "options", "tensor", "trace", "tree", "vendor"

/* Whether the text is one that RONDO_LOG may have: levels, areas, and areas with levels, separated by commas. */
bool rondo_log_is_setting(const char *text);

/* Whether a sink takes messages of this level of any area: one load, to spare the work of making a message. */
bool rondo_log_on(rondo_log_level level);

/* Says one line: what is too long is cut, line ends become blanks. Never fails, keeps no lock while the sink runs. */
void rondo_log(rondo_log_level level, const char *area, const char *format, ...) RONDO_PRINTF(3, 4);

#endif
