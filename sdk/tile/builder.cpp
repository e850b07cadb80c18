#include "regie/tile/builder.h"

#include "regie/plugin.hpp"
#include "regie/tile/codec.h"

namespace regie::tile {

Builder::Builder(uint32_t cores, OnChip chip) {
  program_.cores = cores;
  program_.chip = chip;
}

uint32_t Builder::operand(uint64_t index, uint64_t bytes) {
  program_.gm.push_back({REGIE_TILE_OPERAND, REGIE_TILE_READ, index, bytes});
  return static_cast<uint32_t>(program_.gm.size() - 1);
}

uint32_t Builder::result(uint64_t index, uint64_t bytes, bool also_read) {
  uint16_t access = also_read ? REGIE_TILE_READ | REGIE_TILE_WRITE : REGIE_TILE_WRITE;
  program_.gm.push_back({REGIE_TILE_RESULT, access, index, bytes});
  return static_cast<uint32_t>(program_.gm.size() - 1);
}

uint32_t Builder::scratch(uint64_t offset, uint64_t bytes) {
  program_.gm.push_back({REGIE_TILE_SCRATCH, REGIE_TILE_READ | REGIE_TILE_WRITE, offset, bytes});
  return static_cast<uint32_t>(program_.gm.size() - 1);
}

void Builder::emit(uint16_t op, std::array<uint8_t, 4> mode, std::vector<Expr> args) {
  program_.code.push_back({op, mode, std::move(args)});
}

Expr Builder::open_loop(Expr trips) {
  uint32_t v = static_cast<uint32_t>(open_.size()) + 1;
  if (v >= REGIE_TILE_MAX_VARIABLES)
    throw sdk::Failure(REGIE_LIMIT, "loops of a tile program are nested too deep");
  open_.push_back(v);
  emit(REGIE_TILE_OP_LOOP, {static_cast<uint8_t>(v)}, {std::move(trips)});
  return variable(v);
}

void Builder::close_loop() {
  if (open_.empty()) throw sdk::Failure(REGIE_INTERNAL, "a tile program closes a loop that is not open");
  open_.pop_back();
  emit(REGIE_TILE_OP_END, {}, {});
}

void Builder::set(uint8_t from, uint8_t to, Expr id) { emit(REGIE_TILE_OP_SET, {from, to}, {std::move(id)}); }
void Builder::wait(uint8_t from, uint8_t to, Expr id) {
  emit(REGIE_TILE_OP_WAIT, {from, to}, {std::move(id)});
}
void Builder::barrier() { emit(REGIE_TILE_OP_BARRIER, {}, {}); }

void Builder::copy(Place to, Place from, Expr bytes, Repeat r1, Repeat r2, Repeat r3) {
  emit(REGIE_TILE_OP_COPY, {to.place, from.place},
       {to.offset, from.offset, bytes, r1.count, r1.to, r1.a, r2.count, r2.to, r2.a, r3.count, r3.to, r3.a});
}

void Builder::fill(Place to, uint8_t type, Expr value, Expr count, Repeat r1) {
  emit(REGIE_TILE_OP_FILL, {to.place, type}, {to.offset, value, count, r1.count, r1.to});
}

void Builder::fractal(Place to, Place from, Repeat r1, Repeat r2, bool transpose) {
  if (from.place != REGIE_TILE_L1) throw sdk::Failure(REGIE_INVALID_INPUT, "fractals come from l1");
  emit(REGIE_TILE_OP_FRACTAL, {to.place, transpose},
       {to.offset, from.offset, r1.count, r1.to, r1.a, r2.count, r2.to, r2.a});
}

void Builder::im2col(Place to, Place from, uint8_t type, const Im2col& w) {
  if (from.place != REGIE_TILE_L1) throw sdk::Failure(REGIE_INVALID_INPUT, "im2col reads l1");
  emit(REGIE_TILE_OP_IM2COL, {to.place, type},
       {to.offset,  from.offset,  w.height,     w.width,    w.top,        w.left,      w.stride_h,
        w.stride_w, w.dilation_h, w.dilation_w, w.kernel_h, w.kernel_w,   w.out_width, w.first_row,
        w.rows,     w.first_k,    w.k_blocks,   w.plane,    w.row_stride, w.pad});
}

void Builder::mmad(uint8_t type, Place c, Place a, Place b, Expr m, Expr n, Expr k, Expr accumulate,
                   Expr c_stride, Expr a_stride, Expr b_stride) {
  if (c.place != REGIE_TILE_L0C || a.place != REGIE_TILE_L0A || b.place != REGIE_TILE_L0B)
    throw sdk::Failure(REGIE_INVALID_INPUT, "mmad works on l0c, l0a, l0b");
  emit(REGIE_TILE_OP_MMAD, {type},
       {c.offset, a.offset, b.offset, m, n, k, accumulate, c_stride, a_stride, b_stride});
}

void Builder::drain(uint8_t from_type, uint8_t to_type, Place to, Place from, Expr rows, Expr column_blocks,
                    Expr to_stride, Expr from_stride) {
  if (to.place != REGIE_TILE_UB || from.place != REGIE_TILE_L0C)
    throw sdk::Failure(REGIE_INVALID_INPUT, "drain goes from l0c to ub");
  emit(REGIE_TILE_OP_DRAIN, {from_type, to_type},
       {to.offset, from.offset, rows, column_blocks, to_stride, from_stride});
}

void Builder::requant(uint8_t from_type, uint8_t to_type, Place to, Place from, const Requant& q, Expr rows,
                      Repeat r1, Repeat r2) {
  if (to.place != REGIE_TILE_UB || from.place != REGIE_TILE_L0C || q.factor.place != REGIE_TILE_UB ||
      (q.addend && q.addend->place != REGIE_TILE_UB))
    throw sdk::Failure(REGIE_INVALID_INPUT, "requant goes from l0c to ub, with numbers of ub");
  const bool added = q.addend.has_value();
  emit(REGIE_TILE_OP_REQUANT, {from_type, to_type},
       {to.offset, from.offset, q.factor.offset, added ? q.addend->offset : Expr(0), added, q.relu, q.offset,
        std::move(rows), q.row, r1.count, r1.to, r1.a, r1.b, added ? r1.b : Expr(0), r2.count, r2.to, r2.a,
        r2.b, added ? r2.b : Expr(0)});
}

namespace {

void in_ub(std::initializer_list<const Place*> places) {
  for (const Place* p : places)
    if (p->place != REGIE_TILE_UB) throw sdk::Failure(REGIE_INVALID_INPUT, "vector instructions work on ub");
}

std::vector<Expr> two(const Place& to, const Place& a, const Expr& b, const Expr& n, const Repeat& r1,
                      const Repeat& r2) {
  return {to.offset, a.offset, b, n, r1.count, r1.to, r1.a, r1.b, r2.count, r2.to, r2.a, r2.b};
}

std::vector<Expr> one(const Place& to, const Place& a, const Expr& n, const Repeat& r1, const Repeat& r2) {
  return {to.offset, a.offset, n, r1.count, r1.to, r1.a, r2.count, r2.to, r2.a};
}

}  // namespace

void Builder::binary(uint8_t op, uint8_t type, Place to, Place a, Place b, Expr n, Repeat r1, Repeat r2) {
  in_ub({&to, &a, &b});
  emit(REGIE_TILE_OP_BINARY, {op, type, REGIE_TILE_BY_VECTOR}, two(to, a, b.offset, n, r1, r2));
}

void Builder::binary_row(uint8_t op, uint8_t type, Place to, Place a, Place b, Expr n, Repeat r1, Repeat r2) {
  in_ub({&to, &a, &b});
  emit(REGIE_TILE_OP_BINARY, {op, type, REGIE_TILE_BY_ROW}, two(to, a, b.offset, n, r1, r2));
}

void Builder::binary_scalar(uint8_t op, uint8_t type, Place to, Place a, Expr value, Expr n, Repeat r1,
                            Repeat r2) {
  in_ub({&to, &a});
  r1.b = r2.b = 0;
  emit(REGIE_TILE_OP_BINARY, {op, type, REGIE_TILE_BY_SCALAR}, two(to, a, value, n, r1, r2));
}

void Builder::unary(uint8_t op, uint8_t type, Place to, Place a, Expr n, Repeat r1, Repeat r2) {
  in_ub({&to, &a});
  emit(REGIE_TILE_OP_UNARY, {op, type}, one(to, a, n, r1, r2));
}

void Builder::cast(uint8_t from_type, uint8_t to_type, uint8_t round, Place to, Place a, Expr n, Repeat r1,
                   Repeat r2) {
  in_ub({&to, &a});
  emit(REGIE_TILE_OP_CAST, {from_type, to_type, round}, one(to, a, n, r1, r2));
}

void Builder::compare(uint8_t op, uint8_t type, Place mask, Place a, Place b, Expr n, Repeat r1, Repeat r2) {
  in_ub({&mask, &a, &b});
  emit(REGIE_TILE_OP_COMPARE, {op, type, REGIE_TILE_BY_VECTOR}, two(mask, a, b.offset, n, r1, r2));
}

void Builder::compare_scalar(uint8_t op, uint8_t type, Place mask, Place a, Expr value, Expr n, Repeat r1,
                             Repeat r2) {
  in_ub({&mask, &a});
  r1.b = r2.b = 0;
  emit(REGIE_TILE_OP_COMPARE, {op, type, REGIE_TILE_BY_SCALAR}, two(mask, a, value, n, r1, r2));
}

void Builder::select(uint8_t type, Place to, Place mask, Place a, Place b, Expr n, Repeat r1, Repeat r2) {
  in_ub({&to, &mask, &a, &b});
  emit(REGIE_TILE_OP_SELECT, {type, REGIE_TILE_BY_VECTOR},
       {to.offset, mask.offset, a.offset, b.offset, n, r1.count, r1.to, r1.c, r1.a, r1.b, r2.count, r2.to,
        r2.c, r2.a, r2.b});
}

void Builder::select_scalar(uint8_t type, Place to, Place mask, Place a, Expr b, Expr n, Repeat r1,
                            Repeat r2) {
  in_ub({&to, &mask, &a});
  emit(REGIE_TILE_OP_SELECT, {type, REGIE_TILE_BY_SCALAR},
       {to.offset, mask.offset, a.offset, b, n, r1.count, r1.to, r1.c, r1.a, 0, r2.count, r2.to, r2.c, r2.a,
        0});
}

void Builder::reduce(uint8_t op, uint8_t type, Place to, Place a, Expr n, Repeat r1, Repeat r2) {
  in_ub({&to, &a});
  emit(REGIE_TILE_OP_REDUCE, {op, type}, one(to, a, n, r1, r2));
}

void Builder::transpose(Place to, Place from, Expr to_row, Expr from_row, Repeat r1, Repeat r2,
                        uint8_t width) {
  in_ub({&to, &from});
  emit(REGIE_TILE_OP_TRANSPOSE, {width},
       {to.offset, from.offset, to_row, from_row, r1.count, r1.to, r1.a, r2.count, r2.to, r2.a});
}

Program Builder::finish() {
  if (std::string wrong = check_form(program_); !wrong.empty())
    throw sdk::Failure(REGIE_INVALID_INPUT, wrong);
  return std::move(program_);
}

}  // namespace regie::tile
