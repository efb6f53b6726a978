/* SPDX-License-Identifier: MIT
 * All that the file of an operator needs, in one include: its row, types and shapes (tensor/program), its CPU kernels
 * (element.h), and what it emits (tensor/compile/emit.h). It declares nothing itself.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_OPERATOR_TOOLS_H
#define RONDO_TENSOR_OPERATORS_COMMON_OPERATOR_TOOLS_H

#include "base/error.h"
#include "base/versioned_struct.h"
#include "tensor/compile/emit.h"
#include "tensor/operators/common/element.h"
#include "tensor/program/gradients.h"
#include "tensor/program/operation.h"
#include "tensor/program/operators.h"
#include "tensor/program/program.h"
#include "tensor/program/shape.h"

#endif
