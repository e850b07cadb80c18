#include "regie/tile/codec.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>

#include "regie/op_blob.hpp"

namespace regie::tile {

namespace {

uint32_t crc32(std::string_view bytes) {
  static constexpr auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = ~0u;
  for (char b : bytes) c = table[(c ^ static_cast<uint8_t>(b)) & 255] ^ (c >> 8);
  return ~c;
}

struct ExprLess {
  static auto key(const Term& t) { return std::tuple(t.factor, t.divisor, t.modulus, t.variable); }
  bool operator()(const Expr& a, const Expr& b) const {
    auto head = [](const Expr& e) { return std::tuple(e.constant, e.low, e.high, e.terms.size()); };
    if (head(a) != head(b)) return head(a) < head(b);
    for (size_t i = 0; i < a.terms.size(); ++i)
      if (a.terms[i] != b.terms[i]) return key(a.terms[i]) < key(b.terms[i]);
    return false;
  }
};

constexpr size_t kLargest = size_t{1} << 26;

template <class T>
void put(sdk::BlobWriter& out, const T& value) {
  out.raw(&value, sizeof value);
}

// The first version of the format that has all instructions of a program.
uint16_t version_of(const Program& p) {
  return std::any_of(p.code.begin(), p.code.end(),
                     [](const Instruction& i) { return i.op == REGIE_TILE_OP_REQUANT; })
             ? 2
             : 1;
}

}  // namespace

std::string encode(const Program& p) {
  if (std::string wrong = check_form(p); !wrong.empty()) throw sdk::Failure(REGIE_INVALID_INPUT, wrong);
  std::map<Expr, uint32_t, ExprLess> numbers;
  sdk::BlobWriter gm, code, args, exprs, terms;
  uint32_t arg_count = 0, term_count = 0;
  for (const GlobalBuffer& g : p.gm) put(gm, regie_tile_gm{g.bytes, g.index, g.kind, g.access, 0});
  for (const Instruction& i : p.code) {
    regie_tile_instruction raw{i.op, {}, static_cast<uint16_t>(i.args.size())};
    std::copy(i.mode.begin(), i.mode.end(), raw.mode);
    put(code, raw);
    for (const Expr& e : i.args) {
      auto [at, fresh] = numbers.try_emplace(e, static_cast<uint32_t>(numbers.size()));
      args.put(at->second);
      ++arg_count;
      if (!fresh) continue;
      uint32_t n = static_cast<uint32_t>(e.terms.size());
      put(exprs, regie_tile_expression{e.constant, e.low, e.high, n ? term_count : 0, n});
      for (const Term& t : e.terms)
        put(terms, regie_tile_term{t.factor, t.divisor, t.modulus, t.variable, 0});
      term_count += n;
    }
  }
  std::string body = gm.take() + code.take() + args.take() + exprs.take() + terms.take();
  regie_tile_header h{};
  h.magic = REGIE_TILE_MAGIC;
  h.version = version_of(p);
  h.header_bytes = sizeof h;
  h.cores = p.cores;
  h.l1 = p.chip.l1;
  h.l0a = p.chip.l0a;
  h.l0b = p.chip.l0b;
  h.l0c = p.chip.l0c;
  h.ub = p.chip.ub;
  h.c0 = 16;
  h.gm_count = static_cast<uint32_t>(p.gm.size());
  h.instruction_count = static_cast<uint32_t>(p.code.size());
  h.arg_count = arg_count;
  h.expression_count = static_cast<uint32_t>(numbers.size());
  h.term_count = term_count;
  std::string bytes = std::string(reinterpret_cast<const char*>(&h), sizeof h) + body;
  uint32_t sum = crc32(bytes);
  std::memcpy(bytes.data() + offsetof(regie_tile_header, checksum), &sum, sizeof sum);
  return bytes;
}

Program decode(std::string_view bytes) {
  sdk::BlobReader in(bytes.data(), bytes.size(), "tile program");
  if (bytes.size() > kLargest) in.corrupt("it is impossibly large");
  auto take = [&in]<class T>(T& to) { std::memcpy(&to, in.raw(sizeof to), sizeof to); };
  regie_tile_header h;
  take(h);
  if (h.magic != REGIE_TILE_MAGIC) in.corrupt("its mark is missing");
  if (h.version < 1 || h.version > REGIE_TILE_VERSION)
    throw sdk::Failure(REGIE_UNSUPPORTED, "tile program of version " + std::to_string(h.version) +
                                              "; this build reads version " +
                                              std::to_string(REGIE_TILE_VERSION));
  if (h.header_bytes != sizeof h || h.c0 != 16 || h.reserved) in.corrupt("its header is of another kind");
  uint64_t size = sizeof h + uint64_t{h.gm_count} * sizeof(regie_tile_gm) +
                  uint64_t{h.instruction_count} * sizeof(regie_tile_instruction) + uint64_t{h.arg_count} * 4 +
                  uint64_t{h.expression_count} * sizeof(regie_tile_expression) +
                  uint64_t{h.term_count} * sizeof(regie_tile_term);
  if (h.instruction_count > REGIE_TILE_MAX_INSTRUCTIONS || h.gm_count > REGIE_TILE_MAX_GM)
    in.corrupt("it has too many instructions or global buffers");
  if (size != bytes.size()) in.corrupt("its size does not match its header");
  std::string unsummed(bytes);
  std::memset(unsummed.data() + offsetof(regie_tile_header, checksum), 0, sizeof h.checksum);
  if (h.checksum != crc32(unsummed)) in.corrupt("its checksum does not match");

  Program p;
  p.cores = h.cores;
  p.chip = {h.l1, h.l0a, h.l0b, h.l0c, h.ub};
  for (uint32_t i = 0; i < h.gm_count; ++i) {
    regie_tile_gm g;
    take(g);
    p.gm.push_back({g.kind, g.access, g.index, g.bytes});
  }
  p.code.resize(h.instruction_count);
  uint64_t named = 0;
  for (Instruction& i : p.code) {
    regie_tile_instruction raw;
    take(raw);
    const InstructionInfo* info = instruction_info(raw.op);
    if (!info) in.corrupt("unknown operation " + std::to_string(raw.op));
    if (raw.args != info->args.size()) in.corrupt("an instruction has the wrong number of arguments");
    i.op = raw.op;
    std::copy(raw.mode, raw.mode + 4, i.mode.begin());
    named += raw.args;
  }
  if (named != h.arg_count) in.corrupt("its arguments do not match its instructions");
  std::string_view arg_bytes(in.raw(uint64_t{h.arg_count} * 4), size_t{h.arg_count} * 4);
  std::vector<regie_tile_expression> raw_exprs(h.expression_count);
  for (auto& e : raw_exprs) take(e);
  std::vector<regie_tile_term> raw_terms(h.term_count);
  for (auto& t : raw_terms) take(t);
  std::vector<Expr> exprs(h.expression_count);
  for (uint32_t i = 0; i < h.expression_count; ++i) {
    const regie_tile_expression& raw = raw_exprs[i];
    if (raw.terms > REGIE_TILE_MAX_TERMS || raw.first_term > h.term_count ||
        raw.terms > h.term_count - raw.first_term)
      in.corrupt("an expression's terms are out of range");
    Expr& e = exprs[i];
    e.constant = raw.constant;
    e.low = raw.low;
    e.high = raw.high;
    for (uint32_t k = 0; k < raw.terms; ++k) {
      const regie_tile_term& t = raw_terms[raw.first_term + k];
      e.terms.push_back({t.factor, t.divisor, t.modulus, t.variable});
    }
  }
  size_t at = 0;
  for (Instruction& i : p.code) {
    size_t count = instruction_info(i.op)->args.size();
    i.args.reserve(count);
    for (size_t k = 0; k < count; ++k, at += 4) {
      uint32_t number;
      std::memcpy(&number, arg_bytes.data() + at, 4);
      if (number >= exprs.size()) in.corrupt("an argument is out of range");
      i.args.push_back(exprs[number]);
    }
  }
  if (std::string wrong = check_form(p); !wrong.empty()) in.corrupt(wrong);
  if (encode(p) != bytes) in.corrupt("it is not in canonical order");
  return p;
}

}  // namespace regie::tile
