/* SPDX-License-Identifier: MIT
 * The version of the library, which may differ from that of the headers that a program was built with.
 */
#include <rondo/version.h>

const char *rondo_version(void) { return RONDO_VERSION_STRING; }
