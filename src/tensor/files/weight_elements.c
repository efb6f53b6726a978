/* SPDX-License-Identifier: MIT
 * Reads elements of tensors piece by piece. A piece has whole rows where they fit, so that transposing reads several
 * neighbours of each cache line.
 */
#include "tensor/files/weight_elements.h"

#include <assert.h>
#include <string.h>

#include "base/numbers/float8.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define BLOCK_COLUMNS 32 /* of which the cache holds a line each */
#define DATA_ALIGNMENT 64

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Transposing ------------------------------------------------------------------------------------------------------ */

/* Some rows of a matrix: `columns` elements of each, from `row` and `column` on. The data have its columns one after
 * the other. */
typedef struct block {
  const void *data;
  size_t height; /* elements of a column */
  size_t row, rows, column, columns;
} block;

#define DEFINE_COPY_BLOCK(name, type)                                                            \
  static void name(const block *b, void *to) {                                                   \
    const type *from = (const type *)b->data + b->column * b->height + b->row;                   \
    type *out = to;                                                                              \
    for (size_t first = 0; first < b->columns; first += BLOCK_COLUMNS) {                         \
      const size_t last = smaller(first + BLOCK_COLUMNS, b->columns);                            \
      for (size_t i = 0; i < b->rows; i++)                                                       \
        for (size_t j = first; j < last; j++) out[i * b->columns + j] = from[j * b->height + i]; \
    }                                                                                            \
  }

DEFINE_COPY_BLOCK(copy_bytes, uint8_t)
DEFINE_COPY_BLOCK(copy_halves, uint16_t)
DEFINE_COPY_BLOCK(copy_words, uint32_t)
DEFINE_COPY_BLOCK(copy_doubles, uint64_t)

static void copy_block(const block *b, size_t width, void *to) {
  assert(width == 1 || width == 2 || width == 4 || width == 8);
  switch (width) {
    case 1:
      copy_bytes(b, to);
      return;
    case 2:
      copy_halves(b, to);
      return;
    case 4:
      copy_words(b, to);
      return;
    default:
      copy_doubles(b, to);
      return;
  }
}

/* Elements of a transposed entry in the order of its shape. */
static void transpose(const rondo_weights_entry *entry, size_t first, size_t count, unsigned char *out) {
  const rondo_shape *shape = &entry->shape;
  const size_t width = rondo_type_bytes(shape->type), columns = shape->dims[shape->rank - 1];
  const size_t height = shape->dims[shape->rank - 2], plane = height * columns;
  while (count > 0) {
    const size_t in_plane = first % plane, column = in_plane % columns;
    block b = {.data = (const unsigned char *)entry->data + (first - in_plane) * width,
               .height = height,
               .row = in_plane / columns,
               .rows = 1,
               .column = column,
               .columns = smaller(columns - column, count)};
    if (b.columns == columns) b.rows = smaller(height - b.row, count / columns);
    copy_block(&b, width, out);
    const size_t copied = b.rows * b.columns;
    first += copied;
    count -= copied;
    out += copied * width;
  }
}

/* Copies ----------------------------------------------------------------------------------------------------------- */

static void repeat(const rondo_weights_entry *entry, size_t count, unsigned char *out) {
  const size_t width = rondo_type_bytes(entry->shape.type), bytes = count * width;
  size_t done = width;
  memcpy(out, entry->data, width);
  for (; done < bytes; done += smaller(done, bytes - done)) memcpy(out + done, out, smaller(done, bytes - done));
}

/* Some elements in the order of the shape. */
static void copy_plain(const rondo_weights_entry *entry, size_t first, size_t count, void *out) {
  const size_t width = rondo_type_bytes(entry->shape.type);
  assert(count > 0);
  if (entry->is_repeated)
    repeat(entry, count, out);
  else if (entry->is_transposed)
    transpose(entry, first, count, out);
  else
    memcpy(out, (const unsigned char *)entry->data + first * width, count * width);
}

bool rondo_weights_is_plain(const rondo_weights_entry *entry) {
  const size_t width = rondo_type_bytes(entry->shape.type);
  return !entry->is_transposed && !entry->is_repeated && (uintptr_t)entry->data % width == 0;
}

rondo_status rondo_weights_make_plain(const rondo_weights *weights, rondo_weights_entry *entry) {
  const size_t bytes = rondo_shape_bytes(&entry->shape);
  void *data;
  if (rondo_weights_is_plain(entry)) return RONDO_OK;
  RONDO_TRY(rondo_allocate_aligned(&weights->allocator, bytes, 1, DATA_ALIGNMENT, &data));
  copy_plain(entry, 0, rondo_shape_elements(&entry->shape), data);
  rondo_weights_drop(weights, entry->data, entry->is_repeated ? 0 : bytes);
  rondo_weights_free_data(weights, entry);
  entry->data = data;
  entry->owns_data = true;
  entry->is_transposed = entry->is_repeated = false;
  return RONDO_OK;
}

/* Converting ------------------------------------------------------------------------------------------------------- */

#define DEFINE_FLOAT(type, bits, from_bits, to_bits)                                                  \
  static float load_##type(const void *data, size_t i) { return from_bits(((const bits *)data)[i]); } \
  static void store_##type(void *data, size_t i, float x) { ((bits *)data)[i] = to_bits(x); }

DEFINE_FLOAT(f32, float, , )
DEFINE_FLOAT(f16, uint16_t, rondo_from_f16, rondo_to_f16)
DEFINE_FLOAT(bf16, uint16_t, rondo_from_bf16, rondo_to_bf16)
DEFINE_FLOAT(f8_e4m3, uint8_t, rondo_from_f8_e4m3, rondo_to_f8_e4m3)
DEFINE_FLOAT(f8_e5m2, uint8_t, rondo_from_f8_e5m2, rondo_to_f8_e5m2)

/* Rows of the float types. */
static const struct {
  float (*load)(const void *data, size_t i);
  void (*store)(void *data, size_t i, float x);
} floats[] = {[RONDO_F32] = {load_f32, store_f32},
              [RONDO_F16] = {load_f16, store_f16},
              [RONDO_BF16] = {load_bf16, store_bf16},
              [RONDO_F8_E4M3] = {load_f8_e4m3, store_f8_e4m3},
              [RONDO_F8_E5M2] = {load_f8_e5m2, store_f8_e5m2}};

static bool is_float(rondo_type type) { return type < sizeof floats / sizeof floats[0] && floats[type].load != NULL; }

bool rondo_weights_can_convert(const rondo_weights *weights, rondo_type from, rondo_type to) {
  return from == to || (weights->converts_floats && is_float(from) && is_float(to));
}

static void convert(rondo_type from, const void *data, rondo_type to, void *out, size_t count) {
  assert(is_float(from) && is_float(to));
  for (size_t i = 0; i < count; i++) floats[to].store(out, i, floats[from].load(data, i));
}

/* Pieces ----------------------------------------------------------------------------------------------------------- */

typedef struct reading {
  const rondo_weights *weights;
  const rondo_weights_entry *entry;
  rondo_type type;
  size_t first, count;
  rondo_take_elements *take;
  void *user;
  unsigned char *copied, *converted; /* buffers of a piece; NULL: not needed */
} reading;

/* Whether all pieces read the same pages. */
static bool needs_all_pages(const rondo_weights_entry *entry) { return entry->is_transposed || entry->is_repeated; }

static rondo_status read_piece(const reading *r, size_t at, size_t count) {
  const rondo_type stored = r->entry->shape.type;
  const unsigned char *data = (const unsigned char *)r->entry->data + (r->first + at) * rondo_type_bytes(stored);
  const void *made = data;
  if (r->copied != NULL) {
    copy_plain(r->entry, r->first + at, count, r->copied);
    made = r->copied;
  }
  if (r->converted != NULL) {
    convert(stored, made, r->type, r->converted, count);
    made = r->converted;
  }
  const size_t width = rondo_type_bytes(r->type);
  RONDO_TRY(r->take(r->user, at * width, made, count * width));
  if (!needs_all_pages(r->entry)) rondo_weights_drop(r->weights, data, count * rondo_type_bytes(stored));
  return RONDO_OK;
}

static size_t piece_of(const rondo_weights_entry *entry) {
  const rondo_shape *shape = &entry->shape;
  const size_t most = PIECE_BYTES / sizeof(uint64_t), row = shape->rank == 0 ? 1 : shape->dims[shape->rank - 1];
  return row < most ? most / row * row : most;
}

static rondo_status read_pieces(const reading *r) {
  const size_t piece = piece_of(r->entry);
  for (size_t at = 0; at < r->count; at += piece) RONDO_TRY(read_piece(r, at, smaller(piece, r->count - at)));
  if (r->entry->is_transposed) rondo_weights_drop(r->weights, r->entry->data, rondo_shape_bytes(&r->entry->shape));
  return RONDO_OK;
}

rondo_status rondo_weights_read_elements(const rondo_weights *weights, const rondo_weights_entry *entry,
                                         rondo_type type, size_t first, size_t count, rondo_take_elements *take,
                                         void *user) {
  reading r = {
      .weights = weights, .entry = entry, .type = type, .first = first, .count = count, .take = take, .user = user};
  const bool converts = type != entry->shape.type;
  const bool copies = needs_all_pages(entry) || (converts && !rondo_weights_is_plain(entry));
  const size_t buffers = (copies ? 1u : 0u) + (converts ? 1u : 0u);
  unsigned char *memory;
  assert(first + count <= rondo_shape_elements(&entry->shape));
  RONDO_TRY(rondo_allocate_items(&weights->allocator, buffers, PIECE_BYTES, &memory));
  if (copies) r.copied = memory;
  if (converts) r.converted = memory + (buffers - 1) * PIECE_BYTES;
  const rondo_status status = read_pieces(&r);
  rondo_release(&weights->allocator, memory, buffers, PIECE_BYTES);
  return status;
}
