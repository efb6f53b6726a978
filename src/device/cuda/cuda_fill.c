/* SPDX-License-Identifier: MIT
 * The kernel behind fill nodes. The driver takes no memset node on memory that is not mapped yet, and maps graph memory
 * at the first launch; a kernel node takes any address. It is text that every driver compiles by itself, so that no
 * NVRTC is needed; loaded when the device is opened, since loading waits for all that the device runs.
 */
#include "device/cuda/cuda_fill.h"
#include "base/error.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_kernel.h"

/* Of each row the part that is aligned to 16 is written in such pieces, the bytes in front of it and behind it one by
 * one. `value` is the element repeated to four bytes; rows begin with an element, so that the byte at offset k of a row
 * is byte k % 4 of it. */
static const char fill_source[] =
    ".version 6.3\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry " CUDA_FILL_NAME
    "(.param .u64 p_dst, .param .u64 p_pitch, .param .u64 p_width, .param .u64 p_height, .param .u32 p_value)\n"
    "{\n"
    "  .reg .pred %done;\n"
    "  .reg .b32 %value, %a, %b, %byte;\n"
    "  .reg .b64 %dst, %pitch, %width, %height, %first, %step, %rows, %y, %row, %end, %head, %body, %tail, %at, %c;\n"
    "  ld.param.u64 %dst, [p_dst];\n"
    "  ld.param.u64 %pitch, [p_pitch];\n"
    "  ld.param.u64 %width, [p_width];\n"
    "  ld.param.u64 %height, [p_height];\n"
    "  ld.param.u32 %value, [p_value];\n"
    "  mov.u32 %a, %ctaid.x;\n"
    "  mov.u32 %b, %ntid.x;\n"
    "  mul.wide.u32 %first, %a, %b;\n"
    "  mov.u32 %a, %tid.x;\n"
    "  cvt.u64.u32 %c, %a;\n"
    "  add.u64 %first, %first, %c;\n" /* this thread among those of a row */
    "  mov.u32 %a, %nctaid.x;\n"
    "  mul.wide.u32 %step, %a, %b;\n"
    "  mov.u32 %a, %nctaid.y;\n"
    "  cvt.u64.u32 %rows, %a;\n"
    "  mov.u32 %a, %ctaid.y;\n"
    "  cvt.u64.u32 %y, %a;\n"
    "next_row:\n"
    "  setp.ge.u64 %done, %y, %height;\n"
    "  @%done bra finished;\n"
    "  mad.lo.u64 %row, %y, %pitch, %dst;\n"
    "  add.u64 %end, %row, %width;\n"
    "  neg.s64 %head, %row;\n"
    "  and.b64 %head, %head, 15;\n"
    "  min.u64 %head, %head, %width;\n" /* bytes in front of the aligned part */
    "  add.u64 %body, %row, %head;\n"
    "  sub.u64 %c, %end, %body;\n"
    "  and.b64 %c, %c, -16;\n"
    "  add.u64 %tail, %body, %c;\n" /* where the aligned part ends */
    "  shl.b64 %c, %first, 4;\n"
    "  add.u64 %at, %body, %c;\n"
    "  shl.b64 %c, %step, 4;\n"
    "next_piece:\n"
    "  setp.ge.u64 %done, %at, %tail;\n"
    "  @%done bra edges;\n"
    "  st.global.v4.u32 [%at], {%value, %value, %value, %value};\n"
    "  add.u64 %at, %at, %c;\n"
    "  bra next_piece;\n"
    "edges:\n"
    "  setp.ge.u64 %done, %first, %head;\n"
    "  @%done bra behind;\n"
    "  cvt.u32.u64 %a, %first;\n"
    "  and.b32 %a, %a, 3;\n"
    "  shl.b32 %a, %a, 3;\n"
    "  shr.u32 %byte, %value, %a;\n"
    "  add.u64 %at, %row, %first;\n"
    "  st.global.u8 [%at], %byte;\n"
    "behind:\n"
    "  add.u64 %at, %tail, %first;\n"
    "  setp.ge.u64 %done, %at, %end;\n"
    "  @%done bra row_done;\n"
    "  sub.u64 %c, %at, %row;\n"
    "  cvt.u32.u64 %a, %c;\n"
    "  and.b32 %a, %a, 3;\n"
    "  shl.b32 %a, %a, 3;\n"
    "  shr.u32 %byte, %value, %a;\n"
    "  st.global.u8 [%at], %byte;\n"
    "row_done:\n"
    "  add.u64 %y, %y, %rows;\n"
    "  bra next_row;\n"
    "finished:\n"
    "  ret;\n"
    "}\n";

enum { FILL_THREADS = 256, FILL_PIECE = 16, FILL_MAX_ROWS = 65535 };

rondo_status cuda_fill_load(cuda_device *device) {
  return cuda_kernel_load(device, CUDA_FILL_NAME, fill_source, &device->fill);
}

static uint32_t repeat_element(const rondo_fill *fill) {
  if (fill->element_bytes == 1) return (fill->value & 0xff) * UINT32_C(0x01010101);
  if (fill->element_bytes == 2) return (fill->value & 0xffff) * UINT32_C(0x00010001);
  return fill->value;
}

/* As many blocks as there are pieces, but not many more than the device runs at once. */
static unsigned blocks_of(const cuda_device *device, uint64_t width, unsigned rows) {
  const uint64_t pieces = (width + FILL_PIECE - 1) / FILL_PIECE, blocks = (pieces + FILL_THREADS - 1) / FILL_THREADS;
  const uint64_t most = (uint64_t)device->processors * 16 / rows + 1;
  return (unsigned)(blocks < most ? blocks : most);
}

void cuda_fill_params(const cuda_device *device, const rondo_fill *fill, cuda_fill *out) {
  const uint64_t width = fill->width * fill->element_bytes, height = fill->height;
  const unsigned rows = height < FILL_MAX_ROWS ? (unsigned)height : FILL_MAX_ROWS;
  *out = (cuda_fill){.dst = cuda_address(fill->dst),
                     .pitch = fill->pitch,
                     .width = width,
                     .height = height,
                     .value = repeat_element(fill)};
  void *const addresses[] = {&out->dst, &out->pitch, &out->width, &out->height, &out->value};
  for (size_t i = 0; i < 5; i++) out->addresses[i] = addresses[i];
  out->params = (cu_kernel_params){.function = device->fill->function,
                                   .grid_x = blocks_of(device, width, rows),
                                   .grid_y = rows,
                                   .grid_z = 1,
                                   .block_x = FILL_THREADS,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .params = out->addresses};
}
