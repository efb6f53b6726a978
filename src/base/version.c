/* SPDX-License-Identifier: MIT
 * The version compiled into the library, which may differ from that of the headers a program was built with.
 */
#include <rondo/version.h>

const char *rondo_version(void) { return RONDO_VERSION_STRING; }
