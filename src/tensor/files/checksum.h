/* SPDX-License-Identifier: MIT
 * Checksums of a set of weights, in the metadata of its file: 16 hexadecimal digits of what describes the set (names,
 * types, shapes, metadata but this text), then as many of each tensor's bytes, in order of the names. Another key says
 * that they are there, so that one whose key was damaged is missed.
 */
#ifndef RONDO_TENSOR_FILES_CHECKSUM_H
#define RONDO_TENSOR_FILES_CHECKSUM_H

#include "tensor/files/weights_internal.h"

#define RONDO_CHECKSUM_KEY "rondo.checksum"
#define RONDO_CHECKSUM_FORM_KEY "rondo.weights"
#define RONDO_CHECKSUM_FORM "1"

/* Metadata of the file, which are made anew when a set is saved. */
bool rondo_checksum_is_key(const char *key);

/* What the file of the set says at RONDO_CHECKSUM_KEY when RONDO_CHECKSUM_FORM stands at RONDO_CHECKSUM_FORM_KEY. The
 * caller frees it with rondo_release_text. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_checksum_make(const rondo_weights *set, char **out);

/* Of a set whose file was read, the two keys among its metadata. One that has neither was not saved by Rondo and is
 * taken as it is. The data of entries without data are not compared. Gives back the pages of a mapped file as it goes.
 * Errors: INVALID_DATA with CHECKSUM (naming the tensor) or MALFORMED; UNSUPPORTED, another form. */
RONDO_MUST_USE rondo_status rondo_checksum_check(const rondo_weights *set);

#endif
