/* SPDX-License-Identifier: MIT
 * The numbers that gradient_control's rows and those that add them agree on.
 */
#ifndef RONDO_TENSOR_PROGRAM_NORM_PARTS_H
#define RONDO_TENSOR_PROGRAM_NORM_PARTS_H

#define RONDO_NORM_PARTS 64       /* sums of squares; NORM_PARTS in gradient_control.cu */
#define RONDO_SQUARED_GRADIENTS 7 /* of one gradient_squares */

#endif
