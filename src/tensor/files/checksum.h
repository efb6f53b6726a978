/* SPDX-License-Identifier: MIT
 * Checksums of a set of weights, in the metadata of its file. The text has 16 hexadecimal digits for the description of
 * the set (names, types, shapes, and all metadata except this text), then 16 for the bytes of each tensor, in the order
 * of the names. Another key says that the checksums exist, so their loss is detected if their key is damaged.
 */
#ifndef RONDO_TENSOR_FILES_CHECKSUM_H
#define RONDO_TENSOR_FILES_CHECKSUM_H

#include "tensor/files/weights_internal.h"

#define RONDO_CHECKSUM_KEY "rondo.checksum"
#define RONDO_CHECKSUM_FORM_KEY "rondo.weights"
#define RONDO_CHECKSUM_FORM "1"

/* Whether the key belongs to the metadata that are made again when a set is saved. */
bool rondo_checksum_is_key(const char *key);

/* Makes the value of RONDO_CHECKSUM_KEY for the set's file, in which RONDO_CHECKSUM_FORM_KEY has the value
 * RONDO_CHECKSUM_FORM. The caller frees it with rondo_release_text. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_checksum_make(const rondo_weights *set, char **out);

/* Checks a set that was read from a file, with the two keys among its metadata. A set that has neither key was not
 * saved by Rondo and is accepted. Entries without data are not compared. Releases the pages of a mapped file as it
 * proceeds. Errors: INVALID_DATA with CHECKSUM (the message names the tensor) or MALFORMED; UNSUPPORTED for another
 * form. */
RONDO_MUST_USE rondo_status rondo_checksum_check(const rondo_weights *set);

#endif
