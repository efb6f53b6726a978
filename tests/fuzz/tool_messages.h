/* SPDX-License-Identifier: MIT
 * Takes the place of the tool's tool.c in fuzz targets of its readers: messages are kept, so that they can be looked
 * at.
 */
#ifndef RONDO_TESTS_FUZZ_TOOL_MESSAGES_H
#define RONDO_TESTS_FUZZ_TOOL_MESSAGES_H

/* The last message of tool_fail and its kin. */
extern char tool_message[1400];

#endif
