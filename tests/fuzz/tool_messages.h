/* SPDX-License-Identifier: MIT
 * Replaces the tool's tool.c in fuzz targets of its readers: messages are stored, so that a target can compare them.
 */
#ifndef RONDO_TESTS_FUZZ_TOOL_MESSAGES_H
#define RONDO_TESTS_FUZZ_TOOL_MESSAGES_H

/* The last message of tool_fail and similar functions. */
extern char tool_message[1400];

#endif
