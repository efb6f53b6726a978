/* SPDX-License-Identifier: MIT
 * RONDO_PRIVATE marks the functions that other components of Rondo call, and programs must not: librondo.so exports
 * them with the version RONDO_PRIVATE_X.Y.Z, which only components of this very release ask for. A component of another
 * release does not load. scripts/check-symbols finds marks without a user. What has neither this mark nor RONDO_API is
 * hidden, and so is all data: inside a library, exported data costs a load more.
 */
#ifndef RONDO_BASE_COMPONENT_H
#define RONDO_BASE_COMPONENT_H

#ifdef __GNUC__
#define RONDO_PRIVATE __attribute__((visibility("default")))
#else
#define RONDO_PRIVATE
#endif

#endif
